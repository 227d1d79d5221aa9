"""Tiny checkpoints with random weights: the real classes, in the published file layout."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["cat", "dog", "cup", "fire", "hydrant", "a", "photo", "of", "."]
CLASSES = {0: "cat", 1: "dog", 2: "cup"}


def _bert_tokenizer(folder: Path) -> Any:
    from transformers import BertTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join([*words, *LETTERS, *(f"##{c}" for c in LETTERS)]))
    return BertTokenizerFast.from_pretrained(folder)


def _clip_tokenizer(folder: Path, length: int) -> Any:
    from transformers import CLIPTokenizerFast

    pieces = [*LETTERS, *(f"{c}</w>" for c in LETTERS), "<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return CLIPTokenizerFast.from_pretrained(folder, model_max_length=length)


def grounding_dino(folder: Path) -> None:
    import transformers as t

    text = t.BertConfig(
        vocab_size=80,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    backbone = t.SwinConfig(
        image_size=64,
        patch_size=4,
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 1, 1, 1],
        window_size=2,
        out_features=["stage2", "stage3", "stage4"],
    )
    config = t.GroundingDinoConfig(
        backbone_config=backbone,
        text_config=text,
        d_model=32,
        num_queries=8,
        encoder_layers=1,
        decoder_layers=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        max_text_len=64,
    )
    t.GroundingDinoForObjectDetection(config).save_pretrained(folder)
    images = t.GroundingDinoImageProcessorPil(size={"shortest_edge": 128, "longest_edge": 256})
    t.GroundingDinoProcessor(images, _bert_tokenizer(folder)).save_pretrained(folder)


def owl(folder: Path, version: int = 1) -> None:
    import transformers as t

    text = {
        "vocab_size": 54,
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "max_position_embeddings": 48,
        "bos_token_id": 52,
        "eos_token_id": 53,
        "pad_token_id": 0,
    }
    vision = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 64,
        "patch_size": 16,
    }
    kind = "Owlv2" if version == 2 else "OwlViT"
    config = getattr(t, f"{kind}Config")(text_config=text, vision_config=vision, projection_dim=16)
    getattr(t, f"{kind}ForObjectDetection")(config).save_pretrained(folder)
    images = getattr(t, f"{kind}ImageProcessorPil")(size={"height": 64, "width": 64})
    tokenizer = _clip_tokenizer(folder, 48)
    getattr(t, f"{kind}Processor")(images, tokenizer).save_pretrained(folder)


def owlv2(folder: Path) -> None:
    owl(folder, 2)


def rt_detr(folder: Path) -> None:
    import transformers as t

    backbone = t.RTDetrResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 8, 16, 16],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    config = t.RTDetrConfig(
        backbone_config=backbone,
        encoder_in_channels=[8, 16, 16],
        encoder_hidden_dim=16,
        d_model=16,
        num_queries=6,
        decoder_layers=1,
        encoder_layers=1,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        decoder_in_channels=[16, 16, 16],
        feat_strides=[8, 16, 32],
        num_denoising=0,
        id2label=CLASSES,
        label2id={name: i for i, name in CLASSES.items()},
    )
    t.RTDetrForObjectDetection(config).save_pretrained(folder)
    t.RTDetrImageProcessorPil(size={"height": 64, "width": 64}).save_pretrained(folder)


def mask2former(folder: Path) -> None:
    import transformers as t

    backbone = t.SwinConfig(
        image_size=64,
        patch_size=4,
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 1, 1, 1],
        window_size=2,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    config = t.Mask2FormerConfig(
        backbone_config=backbone,
        hidden_dim=32,
        mask_feature_size=32,
        feature_size=32,
        num_queries=8,
        encoder_layers=1,
        decoder_layers=2,
        num_attention_heads=2,
        encoder_feedforward_dim=32,
        dim_feedforward=32,
        id2label=CLASSES,
        label2id={name: i for i, name in CLASSES.items()},
    )
    t.Mask2FormerForUniversalSegmentation(config).save_pretrained(folder)
    t.Mask2FormerImageProcessorPil(size={"height": 64, "width": 64}).save_pretrained(folder)


def sam2(folder: Path) -> None:
    """Without the processor itself, which can't be made without torchvision."""
    import transformers as t

    backbone = t.Sam2HieraDetConfig(
        hidden_size=8,
        image_size=[64, 64],
        blocks_per_stage=[1, 1, 2, 1],
        embed_dim_per_stage=[8, 16, 32, 64],
        num_attention_heads_per_stage=[1, 1, 2, 2],
        window_size_per_stage=[4, 4, 4, 4],
        global_attention_blocks=[3],
        window_positional_embedding_background_size=[4, 4],
    )
    vision = t.Sam2VisionConfig(
        backbone_config=backbone.to_dict(),
        backbone_channel_list=[64, 32, 16, 8],
        backbone_feature_sizes=[[16, 16], [8, 8], [4, 4]],
        fpn_hidden_size=16,
    )
    mask = {"hidden_size": 16, "mlp_dim": 16, "num_attention_heads": 2, "iou_head_hidden_dim": 16}
    config = t.Sam2Config(
        vision_config=vision,
        prompt_encoder_config={"hidden_size": 16, "image_size": 64},
        mask_decoder_config=mask,
    )
    t.Sam2Model(config).save_pretrained(folder)
    images = {"image_processor_type": "Sam2ImageProcessor", "size": {"height": 64, "width": 64}}
    whole = {"processor_class": "Sam2Processor", "target_size": 64, "image_processor": images}
    (folder / "processor_config.json").write_text(json.dumps(whole))


def sam3(folder: Path) -> None:
    """The tracker of SAM 3, which takes boxes."""
    import transformers as t

    backbone = {
        "model_type": "sam3_vit_model",
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 56,
        "patch_size": 14,
        "window_size": 2,
        "global_attn_indexes": [1],
        "pretrain_image_size": 28,
    }
    vision = {
        "model_type": "sam3_vision_model",
        "backbone_config": backbone,
        "fpn_hidden_size": 16,
        "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]],
    }
    prompt = {"hidden_size": 16, "image_size": 56, "patch_size": 14, "mask_input_channels": 4}
    mask = {
        "hidden_size": 16,
        "mlp_dim": 32,
        "num_attention_heads": 2,
        "iou_head_hidden_dim": 16,
    }
    config = t.Sam3TrackerConfig(
        vision_config=vision, prompt_encoder_config=prompt, mask_decoder_config=mask
    )
    t.Sam3TrackerModel(config).save_pretrained(folder)
    images = {"image_processor_type": "Sam3ImageProcessor", "size": {"height": 56, "width": 56}}
    whole = {"processor_class": "Sam3TrackerProcessor", "target_size": 56}
    (folder / "processor_config.json").write_text(json.dumps(whole | {"image_processor": images}))


def sam(folder: Path) -> None:
    import transformers as t

    vision = {
        "hidden_size": 16,
        "output_channels": 16,
        "num_hidden_layers": 1,
        "mlp_dim": 16,
        "num_attention_heads": 2,
        "image_size": 64,
        "patch_size": 16,
        "window_size": 2,
        "global_attn_indexes": [0],
        "num_pos_feats": 8,
    }
    prompt = {
        "hidden_size": 16,
        "image_size": 64,
        "patch_size": 16,
        "mask_input_channels": 4,
        "image_embedding_size": 4,
    }
    mask = {
        "hidden_size": 16,
        "mlp_dim": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "iou_head_hidden_dim": 16,
        "iou_head_depth": 2,
    }
    config = t.SamConfig(
        vision_config=vision, prompt_encoder_config=prompt, mask_decoder_config=mask
    )
    t.SamModel(config).save_pretrained(folder)
    images = t.SamImageProcessorPil(size={"longest_edge": 64}, pad_size={"height": 64, "width": 64})
    t.SamProcessor(images).save_pretrained(folder)


def clipseg(folder: Path) -> None:
    import transformers as t

    text = {
        "vocab_size": 54,
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "max_position_embeddings": 48,
        "bos_token_id": 52,
        "eos_token_id": 53,
        "pad_token_id": 53,
    }
    vision = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "image_size": 32,
        "patch_size": 8,
    }
    config = t.CLIPSegConfig(
        text_config=text,
        vision_config=vision,
        projection_dim=16,
        reduce_dim=16,
        extract_layers=[0, 1, 2],
        decoder_num_attention_heads=2,
        decoder_intermediate_size=16,
    )
    t.CLIPSegForImageSegmentation(config).save_pretrained(folder)
    images = t.ViTImageProcessorPil(size={"height": 32, "width": 32})
    t.CLIPSegProcessor(images, _clip_tokenizer(folder, 48)).save_pretrained(folder)


def depth_anything(folder: Path) -> None:
    import transformers as t

    backbone = t.Dinov2Config(
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        image_size=56,
        patch_size=14,
        mlp_ratio=1,
        reshape_hidden_states=False,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    config = t.DepthAnythingConfig(
        backbone_config=backbone,
        reassemble_hidden_size=16,
        neck_hidden_sizes=[4, 8, 16, 16],
        fusion_hidden_size=8,
        head_hidden_size=4,
        reassemble_factors=[4, 2, 1, 0.5],
    )
    t.DepthAnythingForDepthEstimation(config).save_pretrained(folder)
    t.DPTImageProcessorPil(
        size={"height": 56, "width": 56}, keep_aspect_ratio=False, ensure_multiple_of=14
    ).save_pretrained(folder)


BUILDERS: dict[str, Callable[[Path], None]] = {
    "grounding-dino": grounding_dino,
    "owl": owl,
    "owlv2": owlv2,
    "detr": rt_detr,
    "mask2former": mask2former,
    "sam": sam,
    "sam2": sam2,
    "sam3": sam3,
    "clipseg": clipseg,
    "depth-anything": depth_anything,
}


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of a checkpoint of a kind, made when it is first asked for."""
    made: dict[str, Path] = {}

    def build(kind: str) -> Path:
        torch = pytest.importorskip("torch")
        pytest.importorskip("transformers")
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind)
            torch.manual_seed(0)
            BUILDERS[kind](made[kind])
        return made[kind]

    return build
