"""`image-reward`: ImageReward (Xu et al. 2023), BLIP and a linear head tuned on people's ranks.

``image-reward:REPO_OR_FOLDER?tokenizer=bert-base-uncased``. The published package wants libraries
of 2022; here its weights (`ImageReward.pt`) go into transformers' own BLIP. Of a prompt it reads
the first 35 tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..checkpoints.placement import Checkpoint
from .local import LocalScorer, LocalScorerOptions
from .transforms import cropped, normalized

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

WEIGHTS = "ImageReward.pt"
TEXT_CONFIG = "med_config.json"
TOKENIZER = "bert-base-uncased"
MOST_TOKENS = 35
MEAN = 0.16717362830052426
STD = 1.0333394966054072
"""Standard deviation of the raw reward over the data of its tuning, by which it is standardized."""
HEAD = 64
"""Width of an attention head in both sizes of BLIP's image encoder."""

_RENAMED = (
    (r"blip\.visual_encoder\.patch_embed\.proj\.", "vision.embeddings.patch_embedding."),
    (r"blip\.visual_encoder\.cls_token", "vision.embeddings.class_embedding"),
    (r"blip\.visual_encoder\.pos_embed", "vision.embeddings.position_embedding"),
    (r"blip\.visual_encoder\.norm\.", "vision.post_layernorm."),
    (r"blip\.visual_encoder\.blocks\.(\d+)\.norm(\d)\.", r"vision.encoder.layers.\1.layer_norm\2."),
    (
        r"blip\.visual_encoder\.blocks\.(\d+)\.attn\.qkv\.",
        r"vision.encoder.layers.\1.self_attn.qkv.",
    ),
    (
        r"blip\.visual_encoder\.blocks\.(\d+)\.attn\.proj\.",
        r"vision.encoder.layers.\1.self_attn.projection.",
    ),
    (r"blip\.visual_encoder\.blocks\.(\d+)\.mlp\.", r"vision.encoder.layers.\1.mlp."),
    (r"blip\.text_encoder\.", "text."),
    (r"mlp\.layers\.", "head."),
)
"""The published names, and those of `_Model`."""
_UNUSED = re.compile(
    r"blip\.(vision_proj|text_proj)\.|blip\.text_encoder\.embeddings\.position_ids"
)
"""Weights of BLIP's other tasks, and numbers that are no weights."""


class ImageRewardOptions(LocalScorerOptions):
    """Options of `image-reward`."""

    tokenizer: str = TOKENIZER
    """Folder or repository of BERT's tokenizer."""


class ImageReward(LocalScorer):
    """The standardized reward; about 0 on average, above 1 for what people like much."""

    KIND = "image-reward"
    MODEL = "THUDM/ImageReward"
    MARKER = TEXT_CONFIG
    options = ImageRewardOptions

    def __init__(self, model: str, options: ImageRewardOptions) -> None:
        super().__init__(model, options)
        self.words = Checkpoint.find(options.tokenizer, None, "tokenizer_config.json")

    def identity(self) -> dict[str, str]:
        return {**super().identity(), "tokenizer": f"{self.words.name} {self.words.version}"}

    @cached_property
    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        with self.loading():
            return self.words.load(AutoTokenizer)

    @cached_property
    def model(self) -> Any:
        import torch

        with self.loading():
            settings = json.loads(self.checkpoint.file(TEXT_CONFIG).read_text("utf-8"))
            file = self.checkpoint.file(WEIGHTS)
            saved = torch.load(file, map_location="cpu", weights_only=True)
            return self.placed(build(saved, settings))

    def _scores(self, prompts: Sequence[str], images: Sequence[Image]) -> torch.Tensor:
        side = self.model["vision"].config.image_size
        pixels = normalized(cropped(image, side) for image in images)
        words = self.tokenizer(
            list(prompts),
            padding="max_length",
            truncation=True,
            max_length=MOST_TOKENS,
            return_tensors="pt",
        ).to(self.placement.device)
        placed = pixels.to(self.placement.device, self.placement.torch_dtype)
        return rewards(self.model, words.input_ids, words.attention_mask, placed)


def build(weights: Mapping[str, torch.Tensor], text: Mapping[str, Any]) -> Any:
    """The model of these published weights, its image encoder sized by them.

    text: the published configuration of the text encoder. Raises RuntimeError for weights that do
    not fit.
    """
    from torch import nn
    from transformers import BlipTextConfig, BlipVisionConfig
    from transformers.models.blip.modeling_blip import BlipVisionModel
    from transformers.models.blip.modeling_blip_text import BlipTextModel

    patches = weights["blip.visual_encoder.pos_embed"].shape[1] - 1
    width, _, patch, _ = weights["blip.visual_encoder.patch_embed.proj.weight"].shape
    depth = len({name for name in weights if re.search(r"blocks\.\d+\.norm1\.weight", name)})
    inner = weights["blip.visual_encoder.blocks.0.mlp.fc1.weight"].shape[0]
    vision = BlipVisionConfig(
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=depth,
        num_attention_heads=width // HEAD,
        image_size=patch * round(patches**0.5),
        patch_size=patch,
        layer_norm_eps=1e-6,
        hidden_act="gelu",
    )
    fields = {
        name: text[name]
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "hidden_act",
            "max_position_embeddings",
            "layer_norm_eps",
            "pad_token_id",
        )
        if name in text
    }
    # `is_decoder` is what makes transformers build the layers that look at the image.
    reading = BlipTextConfig(**fields, encoder_hidden_size=width, is_decoder=True)
    sizes = [weights[f"mlp.layers.{n}.weight"].shape for n in (0, 2, 4, 6, 7)]
    layers = [nn.Linear(into, out) for out, into in sizes]
    # Numbers 1, 3 and 5 are its dropouts, which do nothing here.
    head = nn.Sequential(
        *(module for layer in layers[:3] for module in (layer, nn.Identity())), *layers[3:]
    )
    model = nn.ModuleDict(
        {
            "vision": BlipVisionModel(vision),
            "text": BlipTextModel(reading, add_pooling_layer=False),
            "head": head,
        }
    )
    model.load_state_dict({_renamed(n): w for n, w in weights.items() if not _UNUSED.match(n)})
    return model.eval()


def rewards(
    model: Any, tokens: torch.Tensor, mask: torch.Tensor, pixels: torch.Tensor
) -> torch.Tensor:
    """Standardized rewards, shape (n,), of tokens and mask (n, 35) and pixels (n, 3, side,
    side)."""
    import torch

    image_states = model["vision"](pixel_values=pixels).last_hidden_state
    text_states = model["text"](
        input_ids=tokens,
        attention_mask=mask,
        encoder_hidden_states=image_states,
        encoder_attention_mask=torch.ones(
            image_states.shape[:-1], dtype=torch.long, device=image_states.device
        ),
        is_decoder=False,
    ).last_hidden_state
    raw: torch.Tensor = model["head"](text_states[:, 0])
    return (raw[:, 0] - MEAN) / STD


def _renamed(name: str) -> str:
    for old, new in _RENAMED:
        changed, count = re.subn(rf"^{old}", new, name)
        if count:
            return changed
    return name
