"""Image scorers: real classes and loading paths, tiny random weights, formulas written twice."""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from refusals import raises
from tiny_scorers import BERT, REWARD, SIDE, image_reward_weights, open_clip_weights

from counterprior.errors import UsageError
from counterprior.eval.checkpoints.placement import LoadError
from counterprior.eval.scorers import Scorer, ScorerError, as_scorer
from counterprior.eval.scorers.transforms import cropped, normalized, padded

Checkpoint = Callable[[str], Path]
PROMPTS = ("dog left of cat", "a man and a woman", "cat cat cat " * 40)


def noise(seed: int, size: tuple[int, int] = (64, 48)) -> Image.Image:
    return Image.frombytes("RGB", size, random.Random(seed).randbytes(size[0] * size[1] * 3))


PAIRS = [(PROMPTS[0], noise(1)), (PROMPTS[1], noise(2, (40, 90))), (PROMPTS[2], noise(3, (32, 32)))]


def spec_of(kind: str, checkpoint: Checkpoint, options: str = "") -> str:
    """The spec of a tiny scorer."""
    clip = checkpoint("clip")
    return {
        "clipscore": f"clipscore:{clip}?device=cpu",
        "hps": f"hps:{checkpoint('hps')}?device=cpu&base={clip}",
        "image-reward": f"image-reward:{checkpoint('image-reward')}?device=cpu"
        f"&tokenizer={checkpoint('bert-words')}",
        "pickscore": f"pickscore:{clip}?device=cpu&processor={clip}",
    }[kind] + options


KINDS = pytest.mark.parametrize("kind", ["clipscore", "hps", "image-reward", "pickscore"])


@KINDS
def test_scores_depend_on_image_and_words_and_not_on_the_batch(
    checkpoint: Checkpoint, kind: str
) -> None:
    scorer = as_scorer(spec_of(kind, checkpoint))
    together = scorer.score(PAIRS)
    assert len(set(together)) == 3 and all(map(math.isfinite, together))
    assert together == pytest.approx([scorer.score([pair])[0] for pair in PAIRS], abs=1e-4)
    (other_words,) = scorer.score([(PROMPTS[1], PAIRS[0][1])])
    (other_image,) = scorer.score([(PROMPTS[0], PAIRS[1][1])])
    assert len({together[0], other_words, other_image}) == 3


@KINDS
def test_the_identity_tells_settings_and_weights_apart(
    checkpoint: Checkpoint, kind: str, tmp_path: Path
) -> None:
    spec = spec_of(kind, checkpoint)
    identity = as_scorer(spec).identity()
    assert identity["kind"] == kind and identity["dtype"] == "float32" and identity["batch"] == "1"
    assert all(isinstance(value, str) for value in identity.values())
    assert as_scorer(spec + "&batch=2").identity() == {**identity, "batch": "2"}
    folder = Path(spec.partition(":")[2].partition("?")[0])
    other = tmp_path / folder.name
    shutil.copytree(folder, other)
    weights = max(other.iterdir(), key=lambda path: path.stat().st_size)
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    changed = as_scorer(spec.replace(str(folder), str(other), 1)).identity()
    assert changed["revision"] != identity["revision"]


@KINDS
def test_torn_files_end_the_run_and_wrong_options_are_refused(
    checkpoint: Checkpoint, kind: str, tmp_path: Path
) -> None:
    spec = spec_of(kind, checkpoint)
    folder = Path(spec.partition(":")[2].partition("?")[0])
    torn = tmp_path / "torn"
    shutil.copytree(folder, torn)
    weights = max(torn.iterdir(), key=lambda path: path.stat().st_size)
    weights.write_bytes(weights.read_bytes()[:500])
    with raises("load-failed", "torn", error=LoadError):
        as_scorer(spec.replace(str(folder), str(torn), 1)).score(PAIRS[:1])
    for options, reason in (
        ("&batch=0", ("bad-option", "batch", "'0'")),
        ("&temperature=1", ("unknown-option", "temperature")),
        ("&dtype=int8", ("bad-option", "dtype", "'int8'")),
    ):
        with raises(*reason, error=UsageError):
            as_scorer(spec + options)
    with raises("wrong-model", error=UsageError):
        as_scorer(f"{kind}:nobody/nothing?device=cpu")


def published_pixels(image: Image.Image, fitted: Callable[[Image.Image, int], Image.Image]) -> Any:
    """Shape (1, 3, SIDE, SIDE): CLIP's pixels, one formula a line."""
    import torch

    values = np.asarray(fitted(image, SIDE), dtype=np.float32) / 255
    mean = np.array([0.48145466, 0.4578275, 0.40821073], dtype=np.float32)
    std = np.array([0.26862954, 0.26130258, 0.27577711], dtype=np.float32)
    return torch.from_numpy(((values - mean) / std).transpose(2, 0, 1)[None].copy())


def attention(x: Any, y: Any, weights: list[Any], heads: int, mask: Any = None) -> Any:
    """softmax(q k^T / sqrt(d)) v by `torch.nn.functional` on its own; x asks, y answers."""
    from torch.nn.functional import linear, scaled_dot_product_attention

    (wq, bq), (wk, bk), (wv, bv), (wo, bo) = weights
    parts = [linear(x, wq, bq), linear(y, wk, bk), linear(y, wv, bv)]
    q, k, v = (p.unflatten(-1, (heads, -1)).transpose(1, 2) for p in parts)
    return linear(
        scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2), wo, bo
    )


def norm(x: Any, weights: dict[str, Any], name: str, eps: float) -> Any:
    from torch.nn.functional import layer_norm

    return layer_norm(x, x.shape[-1:], weights[name + ".weight"], weights[name + ".bias"], eps)


def open_clip_score(weights: dict[str, Any], pixels: Any, tokens: Any) -> float:
    """The cosine of image and text as open_clip computes them, from its own weights."""
    import torch
    from torch.nn.functional import conv2d, cosine_similarity, gelu, linear

    def blocks(x: Any, prefix: str, mask: Any) -> Any:
        for layer in range(2):
            name = f"{prefix}transformer.resblocks.{layer}."
            w = weights[name + "attn.in_proj_weight"].chunk(3)
            b = weights[name + "attn.in_proj_bias"].chunk(3)
            out = (weights[name + "attn.out_proj.weight"], weights[name + "attn.out_proj.bias"])
            inside = norm(x, weights, name + "ln_1", 1e-5)
            x = x + attention(inside, inside, [*zip(w, b, strict=True), out], 2, mask)
            inside = norm(x, weights, name + "ln_2", 1e-5)
            inside = gelu(
                linear(inside, weights[name + "mlp.c_fc.weight"], weights[name + "mlp.c_fc.bias"])
            )
            x = x + linear(
                inside, weights[name + "mlp.c_proj.weight"], weights[name + "mlp.c_proj.bias"]
            )
        return x

    x = conv2d(pixels, weights["visual.conv1.weight"], stride=8).flatten(2).transpose(1, 2)
    x = torch.cat([weights["visual.class_embedding"].expand(1, 1, -1), x], dim=1)
    x = norm(x + weights["visual.positional_embedding"], weights, "visual.ln_pre", 1e-5)
    x = blocks(x, "visual.", None)
    image = norm(x[:, 0], weights, "visual.ln_post", 1e-5) @ weights["visual.proj"]
    x = weights["token_embedding.weight"][tokens] + weights["positional_embedding"]
    x = norm(blocks(x, "", torch.full((77, 77), -math.inf).triu(1)), weights, "ln_final", 1e-5)
    text = x[0, tokens[0].argmax()] @ weights["text_projection"]
    return float(cosine_similarity(image[0], text, dim=0))


def test_hps_is_what_open_clip_computes_on_the_padded_image(checkpoint: Checkpoint) -> None:
    scorer: Any = as_scorer(spec_of("hps", checkpoint))
    weights = open_clip_weights()
    for prompt, image in PAIRS:
        # 0 after the end, as open_clip pads; it can't be seen through the causal mask.
        ids = scorer.tokenizer(prompt, truncation=True, max_length=77, return_tensors="pt")
        tokens = ids.input_ids.new_zeros(1, 77)
        tokens[0, : ids.input_ids.shape[1]] = ids.input_ids[0]
        expected = open_clip_score(weights, published_pixels(image, padded), tokens)
        assert scorer.score([(prompt, image)]) == pytest.approx([expected], abs=1e-5)


def test_pickscore_is_the_logit_and_clipscore_a_hundred_cosines(checkpoint: Checkpoint) -> None:
    import torch
    from transformers import CLIPModel, CLIPProcessor

    folder = checkpoint("clip")
    model, processor = CLIPModel.from_pretrained(folder), CLIPProcessor.from_pretrained(folder)
    pick, clip = (as_scorer(spec_of(kind, checkpoint)) for kind in ("pickscore", "clipscore"))
    paper = as_scorer(spec_of("clipscore", checkpoint, "&scale=2.5&prefix=A photo depicts "))
    signs = set()
    for (prompt, image), depicts in zip(PAIRS, (False, True, False), strict=True):
        text = f"A photo depicts {prompt}" if depicts else prompt
        inputs = processor(
            text=[text],
            images=[image],
            padding="max_length",
            max_length=77,
            truncation=True,
            return_tensors="pt",
        )
        with torch.inference_mode():
            logit = float(model(**inputs).logits_per_image)
        cosine = logit / float(model.logit_scale.detach().exp())
        signs.add(cosine > 0)
        if depicts:
            assert paper.score([(prompt, image)]) == pytest.approx([2.5 * max(cosine, 0)], abs=1e-5)
        else:
            assert pick.score([(prompt, image)]) == pytest.approx([logit], abs=1e-4)
            assert clip.score([(prompt, image)]) == pytest.approx([100 * max(cosine, 0)], abs=1e-4)
    assert pick.identity()["processor"].startswith("checkpoint-clip sha256:")


def published_reward(weights: dict[str, Any], tokens: Any, mask: Any, pixels: Any) -> float:
    """ImageReward as its paper and code describe it, from its own weights."""
    import torch
    from torch.nn.functional import conv2d, gelu, linear

    def dense(x: Any, name: str) -> Any:
        return linear(x, weights[name + ".weight"], weights[name + ".bias"])

    def pair(name: str) -> Any:
        return weights[name + ".weight"], weights[name + ".bias"]

    eye = "blip.visual_encoder."
    x = conv2d(pixels, *pair(eye + "patch_embed.proj"), stride=REWARD["patch"])
    x = torch.cat([weights[eye + "cls_token"], x.flatten(2).transpose(1, 2)], dim=1)
    x = x + weights[eye + "pos_embed"]
    for n in range(REWARD["depth"]):
        block = f"{eye}blocks.{n}."
        qkv = zip(
            *(weights[f"{block}attn.qkv.{k}"].chunk(3) for k in ("weight", "bias")), strict=True
        )
        inside = norm(x, weights, block + "norm1", 1e-6)
        x = x + attention(inside, inside, [*qkv, pair(block + "attn.proj")], 2)
        inside = norm(x, weights, block + "norm2", 1e-6)
        x = x + dense(gelu(dense(inside, block + "mlp.fc1")), block + "mlp.fc2")
    seen = norm(x, weights, eye + "norm", 1e-6)
    read = "blip.text_encoder."
    x = weights[read + "embeddings.word_embeddings.weight"][tokens]
    x = x + weights[read + "embeddings.position_embeddings.weight"][: tokens.shape[1]]
    x = norm(x, weights, read + "embeddings.LayerNorm", 1e-12)
    hidden = torch.zeros(mask.shape).masked_fill(mask == 0, -math.inf)[:, None, None]
    for n in range(2):
        layer = f"{read}encoder.layer.{n}."
        for kind, source, hides in (("attention", x, hidden), ("crossattention", seen, None)):
            parts = [pair(f"{layer}{kind}.self.{part}") for part in ("query", "key", "value")]
            parts.append(pair(f"{layer}{kind}.output.dense"))
            source = x if kind == "attention" else source
            x = norm(
                x + attention(x, source, parts, 2, hides),
                weights,
                f"{layer}{kind}.output.LayerNorm",
                1e-12,
            )
        inside = dense(gelu(dense(x, layer + "intermediate.dense")), layer + "output.dense")
        x = norm(x + inside, weights, layer + "output.LayerNorm", 1e-12)
    x = x[:, 0]
    for n in (0, 2, 4, 6, 7):
        x = dense(x, f"mlp.layers.{n}")
    return (float(x) - 0.16717362830052426) / 1.0333394966054072


def test_image_reward_is_what_its_paper_describes(checkpoint: Checkpoint) -> None:
    scorer: Any = as_scorer(spec_of("image-reward", checkpoint))
    weights = image_reward_weights()
    for prompt, image in PAIRS:
        words = scorer.tokenizer(
            prompt, padding="max_length", truncation=True, max_length=35, return_tensors="pt"
        )
        expected = published_reward(
            weights, words.input_ids, words.attention_mask, published_pixels(image, cropped)
        )
        assert scorer.score([(prompt, image)]) == pytest.approx([expected], abs=1e-5)
    assert BERT["num_hidden_layers"] == 2


def test_images_are_fitted_as_torchvision_does() -> None:
    # Its rules, from its documentation: the longer side is cut down to a whole number, the crop's
    # corner is rounded, the padding is rounded down on the left and above.
    image = noise(5, (101, 60))
    square = cropped(image, 32)
    whole = image.resize((int(32 * 101 / 60), 32), Image.Resampling.BICUBIC)
    left = round((whole.width - 32) / 2)
    assert np.array_equal(square, whole.crop((left, 0, left + 32, 32)))
    square = padded(image, 32)
    small = image.resize((32, round(60 * 32 / 101)), Image.Resampling.BICUBIC)
    top = (32 - small.height) // 2
    assert np.array_equal(np.asarray(square)[top : top + small.height], small)
    assert not np.asarray(square)[:top].any() and not np.asarray(square)[top + small.height :].any()
    assert np.array_equal(padded(noise(6, (32, 20)), 32).crop((0, 6, 32, 26)), noise(6, (32, 20)))
    assert normalized([square, square]).shape == (2, 3, 32, 32)


@pytest.fixture(scope="session")
def asked(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny vision-language model for which `Yes` and `No` are one token each."""
    from transformers import AutoModelForImageTextToText, AutoProcessor

    folder = tmp_path_factory.mktemp("vqa") / "tiny"
    model = AutoModelForImageTextToText.from_pretrained(checkpoint("llava"))
    processor = AutoProcessor.from_pretrained(checkpoint("llava"))
    processor.tokenizer.add_tokens(["Yes", "No"])
    model.resize_token_embeddings(len(processor.tokenizer))
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def test_vqascore_is_the_probability_of_yes_in_the_whole_vocabulary(asked: Path) -> None:
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    scorer = as_scorer(f"vqascore:hf-vlm:{asked}?device=cpu&batch=2")
    assert getattr(scorer, "batch", None) == 2
    model = AutoModelForImageTextToText.from_pretrained(asked)
    processor = AutoProcessor.from_pretrained(asked)
    for (prompt, image), score in zip(PAIRS, scorer.score(PAIRS), strict=True):
        text = f'Does this figure show "{prompt}"? Please answer Yes or No.'
        inputs = processor.apply_chat_template(
            [
                {
                    "role": "user",
                    "content": [{"type": "image", "image": image}, {"type": "text", "text": text}],
                }
            ],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
        )
        with torch.inference_mode():
            shares = model(**inputs).logits[0, -1].softmax(-1)
        expected = float(shares[processor.tokenizer.convert_tokens_to_ids("Yes")])
        assert 0 < score < 0.5 and score == pytest.approx(expected, abs=1e-6)
    identity = scorer.identity()
    assert identity["kind"] == "vqascore" and identity["inner_model"] == "tiny"


def test_vqascore_refuses_judge_without_probabilities(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    (tmp_path / "labels.csv").write_text("case,question,label\n")
    scorer = as_scorer(f"vqascore:human:{tmp_path / 'labels.csv'}")
    with raises("no-log-probabilities", "VQAScore", error=ScorerError):
        scorer.score(PAIRS[:1])
    unanswerable = as_scorer(f"vqascore:hf-vlm:{checkpoint('llava')}?device=cpu")
    with raises("no-log-probabilities", "Yes", error=ScorerError):
        unanswerable.score(PAIRS[:1])


def test_functions_and_specs_are_scorers() -> None:
    scorer = as_scorer(lambda prompt, image: len(prompt) + image.width, identity="7")
    assert isinstance(scorer, Scorer) and scorer.score(PAIRS[:1]) == [len(PROMPTS[0]) + 64.0]
    assert scorer.identity()["version"] == "7"
    with raises("wrong-type", "7", error=UsageError):
        as_scorer(7)
    with raises("unknown-name", "beauty", error=UsageError):
        as_scorer("beauty:")
