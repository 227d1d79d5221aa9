"""HPSv3 in its published layout: tiny weights, its renaming, positions and head written twice."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises
from tiny_text import CHATML, qwen_tokenizer

from counterprior.errors import UsageError
from counterprior.eval.scorers import as_scorer
from counterprior.eval.scorers.hpsv3 import REWARD, fitted

SOURCE = '''
import torchvision  # as the published file does, which must not be run
raise RuntimeError("imported")
INSTRUCTION = """
Rate it. Textual prompt - {text_prompt}

"""
prompt_with_special_token = """
Overall: <|Reward|>

END
"""
'''


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folders of the base and of the tuned weights."""
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file
    from transformers import (
        Qwen2VLConfig,
        Qwen2VLForConditionalGeneration,
        Qwen2VLImageProcessor,
        Qwen2VLProcessor,
    )

    from counterprior.eval.checkpoints.processors import image_only

    root = tmp_path_factory.mktemp("hpsv3")
    tokenizer = qwen_tokenizer()
    special = {
        "image_token_id": "<|image_pad|>",
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
    }
    config = Qwen2VLConfig(
        text_config={
            "hidden_size": 16,
            "intermediate_size": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "vocab_size": len(tokenizer) + 5,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e4,
                "mrope_section": [2, 1, 1],
            },
        },
        vision_config={
            "depth": 1,
            "embed_dim": 16,
            "hidden_size": 16,
            "num_heads": 2,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
        },
        **{name: tokenizer.convert_tokens_to_ids(token) for name, token in special.items()},
    )
    torch.manual_seed(0)
    model = Qwen2VLForConditionalGeneration(config)
    images = Qwen2VLImageProcessor(size={"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280})
    processor = image_only(Qwen2VLProcessor)(images, tokenizer, chat_template=CHATML)
    base, tuned = root / "base", root / "tuned"
    model.save_pretrained(base)
    processor.save_pretrained(base)
    tuned.mkdir()
    old = {}
    for name, value in model.state_dict().items():
        value = value + 0.1 * torch.randn(value.shape)
        if name.endswith(("embed_tokens.weight", "lm_head.weight")):
            value = value[: len(tokenizer) + 1]  # resized to the words and the new token
        name = name.replace("model.language_model.", "model.").replace("model.visual.", "visual.")
        old[name] = value.contiguous()
    for number, (into, out) in {0: (16, 1024), 3: (1024, 16), 5: (16, 2)}.items():
        old[f"rm_head.{number}.weight"] = 0.1 * torch.randn(out, into)
        old[f"rm_head.{number}.bias"] = 0.1 * torch.randn(out)
    save_file(old, tuned / "HPSv3.safetensors")
    return base, tuned


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The published package's source, where Python finds it."""
    path = tmp_path / "site" / "hpsv3" / "dataset" / "data_collator_qwen.py"
    path.parent.mkdir(parents=True)
    (path.parents[1] / "__init__.py").write_text("raise RuntimeError('imported')")
    path.write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return path


def noise(seed: int, size: tuple[int, int]) -> Image.Image:
    return Image.frombytes("RGB", size, random.Random(seed).randbytes(size[0] * size[1] * 3))


def test_the_score_is_the_first_output_of_the_head_at_its_token(
    published: tuple[Path, Path], package: Path
) -> None:
    import torch
    from safetensors.torch import load_file
    from torch.nn.functional import linear, relu
    from transformers import Qwen2VLConfig, Qwen2VLModel

    base, tuned = published
    scorer: Any = as_scorer(f"hpsv3:{tuned}?base={base}&device=cpu")
    pairs = [("dog left of cat", noise(1, (40, 30))), ("a man", noise(2, (30, 50)))]
    weights = load_file(tuned / "HPSv3.safetensors")
    config = Qwen2VLConfig.from_pretrained(base)
    config.text_config.vocab_size = weights["model.embed_tokens.weight"].shape[0]
    body = Qwen2VLModel(config).eval()
    for name, value in body.named_parameters():
        old = name if name.startswith("visual.") else name.replace("language_model.", "model.")
        value.data.copy_(weights[old])
    for (prompt, image), score in zip(
        pairs, scorer.score(pairs[:1]) + scorer.score(pairs[1:]), strict=True
    ):
        text = f"\nRate it. Textual prompt - {prompt}\n\n\nOverall: <|Reward|>\n\nEND\n"
        content = [{"type": "image"}, {"type": "text", "text": text}]
        chat = scorer.processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
        )
        resized = image.resize(fitted(*image.size), Image.Resampling.BICUBIC)
        inputs = scorer.processor(text=[chat], images=[resized], return_tensors="pt")
        length = inputs["input_ids"].shape[1]
        places = torch.arange(length)[None, None].repeat(3, 1, 1)
        with torch.inference_mode():
            state = body(**inputs, position_ids=places).last_hidden_state[0]
        token = scorer.processor.tokenizer.convert_tokens_to_ids(REWARD)
        (place,) = (inputs["input_ids"][0] == token).nonzero().flatten().tolist()
        x = state[place]
        for number in (0, 3, 5):
            x = linear(x, weights[f"rm_head.{number}.weight"], weights[f"rm_head.{number}.bias"])
            x = relu(x) if number < 5 else x
        assert score == pytest.approx(float(x[0]), abs=1e-5)
    assert scorer.identity()["base"].startswith("base sha256:")


def test_images_have_about_the_published_number_of_pixels() -> None:
    assert fitted(448, 448) == (448, 448)
    for size in ((512, 512), (1024, 768), (30, 50), (100, 3000)):
        wide, high = fitted(*size)
        assert wide % 28 == high % 28 == 0
        assert 0.65 < wide * high / (256 * 28 * 28) < 1.35
        assert (wide * high <= 256 * 28 * 28) == (size[0] * size[1] > 256 * 28 * 28)


def test_names_package_to_install(published: tuple[Path, Path], package: Path) -> None:
    base, tuned = published
    spec = f"hpsv3:{tuned}?base={base}&device=cpu"
    package.write_text("INSTRUCTION = 7\n")
    with raises("missing-library", "INSTRUCTION", "--no-deps", error=UsageError):
        as_scorer(spec)
    package.unlink()
    with raises("missing-library", "pip install --no-deps hpsv3", error=UsageError):
        as_scorer(spec)
