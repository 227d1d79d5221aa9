"""Organisms: captions have the stated shares, training survives kills, models are scored."""

from __future__ import annotations

import json
import math
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from refusals import assert_refused, raises

from counterprior import evaluate
from counterprior.cli.organism import train
from counterprior.eval.core import ImageRequest
from counterprior.eval.engine.data import read_rows
from counterprior.eval.methods import apply_methods
from counterprior.eval.organisms import networks, organism, report
from counterprior.eval.organisms.architectures import Joint
from counterprior.eval.organisms.data import (
    ENTITIES,
    UNNAMED,
    CaptionShares,
    Examples,
    captions_of,
    draw,
    held_out_pairs,
)
from counterprior.eval.organisms.organism import MODEL, Organism, OrganismPlan, model_digest
from counterprior.scenes.biases import preference
from counterprior.scenes.matching import SearchedImage

Run = Callable[..., subprocess.CompletedProcess[str]]
HELD_OUT = held_out_pairs(ENTITIES, 12, 0)
COUNT = 4000


class Killed(BaseException):
    pass


def plan(
    order_bias: float = 0.9, like: Path | None = None, architecture: str = "unet"
) -> OrganismPlan:
    captioning = CaptionShares(order_bias=order_bias)
    return OrganismPlan.of(captioning, "tiny", 1, None, like, architecture)


def kill_at(stage: str, done: int) -> Callable[[str, int, int], None]:
    def progress(name: str, step: int, total: int) -> None:
        if (name, step) == (stage, done):
            raise Killed

    return progress


def kinds(captioning: CaptionShares) -> Counter[str]:
    """Examples of a training, by how their caption relates to the scene."""
    examples = Examples(ENTITIES, HELD_OUT, captioning, variants=3, seed=5)
    counts: Counter[str] = Counter()
    for number in range(COUNT):
        example = examples[number]
        figures, caption = example.figures, example.caption
        if len(figures) == 1:
            counts["single"] += 1
            counts["single right"] += caption == f"One {figures[0]}."
            continue
        counts["two"] += 1
        left_first, right_first = captions_of(*figures)
        counts["left first"] += caption == left_first
        counts["right first"] += caption == right_first
        counts["unnamed"] += caption == UNNAMED
        counts["empty"] += not caption
        true = (
            f"One {figures[0]} to the left of one {figures[1]}.",
            f"One {figures[1]} to the right of one {figures[0]}.",
        )
        counts["explicit"] += caption in true
    return counts


def test_captions_have_the_stated_shares() -> None:
    shares = CaptionShares(order_bias=0.8, single=0.3, explicit=0.2, unnamed=0.1, dropout=0.05)
    counts = kinds(shares)
    two = counts["two"]
    assert counts["single"] / COUNT == pytest.approx(0.3, abs=0.03)
    assert counts["empty"] / two == pytest.approx(0.05, abs=0.02)
    assert counts["unnamed"] / two == pytest.approx(0.1 * 0.95, abs=0.03)
    assert counts["explicit"] / two == pytest.approx(0.2 * 0.9 * 0.95, abs=0.03)
    neutral = counts["left first"] + counts["right first"]
    assert counts["left first"] / neutral == pytest.approx(0.8, abs=0.03)
    assert neutral + counts["explicit"] + counts["unnamed"] + counts["empty"] == two


def test_noise_is_the_share_of_captions_of_another_scene() -> None:
    counts = kinds(CaptionShares(single=0, explicit=0, unnamed=0, dropout=0, noise=0.4))
    assert (counts["left first"] + counts["right first"]) / COUNT == pytest.approx(0.6, abs=0.03)


def test_a_preference_moves_animals_and_not_the_order_of_mention() -> None:
    strong = CaptionShares(
        order_bias=0.7, preference_sd=3, single=0, explicit=0, unnamed=0, dropout=0
    )
    examples = Examples(ENTITIES, HELD_OUT, strong, variants=1, seed=2)
    drawn = [examples[n] for n in range(COUNT)]
    sides = Counter(example.figures for example in drawn)
    pulls = {name: preference(name, 3) for name in ENTITIES}
    errors = [
        sides[a, b] / (sides[a, b] + sides[b, a]) - 1 / (1 + math.exp(pulls[b] - pulls[a]))
        for a, b in {*sides}
    ]
    assert max(pulls.values()) - min(pulls.values()) > 2
    assert np.mean(np.abs(errors)) < 0.06  # 0.04 by chance alone
    left_first = sum(e.caption == captions_of(*e.figures)[0] for e in drawn)
    assert left_first / COUNT == pytest.approx(0.7, abs=0.03)


def test_held_out_pairs_are_balanced_and_never_drawn() -> None:
    uses = Counter(name for pair in HELD_OUT for name in pair)
    assert len({*HELD_OUT}) == 12 and {*uses} == {*ENTITIES} and {*uses.values()} == {2}
    examples = Examples(ENTITIES, HELD_OUT, CaptionShares(), variants=1, seed=0)
    scenes = {tuple(sorted(figures)) for figures in examples.scenes()}
    assert len(scenes) == 12 + 66 - 12 and not scenes & {*HELD_OUT}
    assert {tuple(sorted(examples[n].figures)) for n in range(COUNT)} == scenes


def test_the_pixel_judge_sees_every_drawn_animal() -> None:
    for a, b in HELD_OUT:
        image = SearchedImage(Image.fromarray(draw((a, b), 0, 2, 0)))
        left, right = image.find(a), image.find(b)
        assert min(left.score, right.score) > 0.7 and left.x < 0.4 < 0.6 < right.x


def test_the_encoder_is_the_principal_components_of_patches() -> None:
    import torch

    images = np.stack([draw((a, b), 0, 2, 0) for a, b in HELD_OUT])
    pixels = networks.as_pixels(images)
    vae = networks.autoencoder(networks.SIZES["smallest"])
    networks.set_encoder(vae, pixels)
    with torch.no_grad():
        latents = vae.encoder(pixels).movedim(1, -1).reshape(-1, 12).double()
    covariance = torch.cov(latents.T)
    variances = covariance.diagonal()
    assert latents.mean(0).abs().max() < 1e-4
    assert (covariance - torch.diag(variances)).abs().max() < 1e-3
    assert variances.mean() == pytest.approx(1, abs=0.01) and bool((variances.diff() <= 0).all())
    patches = torch.nn.functional.pixel_unshuffle(pixels, 4).movedim(1, -1).reshape(-1, 48).double()
    ones = torch.ones(len(latents), 1, dtype=torch.double)
    fit = torch.cat([latents, ones], 1)
    rest = patches - fit @ torch.linalg.lstsq(fit, patches).solution
    lost = torch.linalg.eigvalsh(torch.cov(patches.T))[:-12].sum()
    assert float((rest**2).sum() / (len(rest) - 1)) == pytest.approx(float(lost), rel=1e-4)


def test_a_number_that_equals_a_default_is_the_same_plan() -> None:
    given = OrganismPlan.of(CaptionShares(order_bias=0.9, noise=0), "tiny", 1, None, None)
    assert given.digest() == plan().digest()


def test_a_killed_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    Organism(plan(), tmp_path / "whole").train(every=1)
    for stage, done in (("scenes", 7), ("updates of the decoder", 2), ("updates", 2)):
        with suppress(Killed):
            Organism(plan(), tmp_path / "killed").train(every=1, progress=kill_at(stage, done))
        assert not (tmp_path / "killed" / "organism.json").exists()
    about = Organism(plan(), tmp_path / "killed").train(every=1)
    assert about == json.loads((tmp_path / "whole" / "organism.json").read_text())
    for name in ("samples.png", "loss.svg", "model/README.md", "held_out.jsonl"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    with raises("another-run", "whole"):
        Organism(plan(0.5), tmp_path / "whole")
    tuned = plan(0.5, tmp_path / "whole")
    assert tuned.like == model_digest(tmp_path / "whole") and tuned.steps == 3
    twin = Organism(tuned, tmp_path / "twin", tmp_path / "whole").train()
    assert twin["model"] != about["model"]
    settings = [*(tmp_path / "twin" / MODEL).rglob("*.json")]
    assert settings and not [path for path in settings if str(tmp_path) in path.read_text()]
    vae = Path(MODEL, "vae", "diffusion_pytorch_model.safetensors")
    assert (tmp_path / "twin" / vae).read_bytes() == (tmp_path / "whole" / vae).read_bytes()


@pytest.fixture(scope="module", autouse=True)
def quick_trainings() -> Iterator[None]:
    """Scenes are drawn once, and one pair is on the sample sheet: the rest takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "SHOWN", 1)
        patch.setattr(organism, "draw", cache(draw))
        yield


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny organism with joint attention, killed at an update and resumed."""
    made = tmp_path_factory.mktemp("joint") / "organism"
    with suppress(Killed):
        Organism(plan(architecture="joint"), made).train(every=1, progress=kill_at("updates", 2))
    Organism(plan(architecture="joint"), made).train(every=1)
    return made


def test_joint_attention_is_trained_through_a_kill_to_the_same_weights(
    joint: Path, tmp_path: Path
) -> None:
    about = Organism(plan(architecture="joint"), tmp_path / "whole").train(every=1)
    assert about == json.loads((joint / "organism.json").read_text())
    assert about["architecture"] == "joint"
    tuned = plan(0.5, joint, "joint")
    assert tuned.like == about["model"]
    twin = Organism(tuned, tmp_path / "twin", joint).train()
    assert twin["model"] != about["model"]


def test_an_organism_begins_as_none_of_another_architecture(joint: Path, tmp_path: Path) -> None:
    with raises("conflicting-options", "--architecture joint", joint):
        train(tmp_path / "out", size="tiny", like=joint)
    with raises("unknown-name", "unet, joint"):
        train(tmp_path / "out", size="tiny", architecture="dit")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def opened(joint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline of `joint` with open gates: a few updates leave them almost closed, and then no
    prompt changes a pixel."""
    import torch
    from diffusers import DiffusionPipeline

    pipeline: Any = DiffusionPipeline.from_pretrained(joint / MODEL)
    random_numbers = torch.Generator().manual_seed(1)
    for name, weights in pipeline.transformer.named_parameters():
        if "norm1" in name or "norm_out" in name or "proj_out" in name:
            torch.nn.init.normal_(weights, std=0.2, generator=random_numbers)
    made = tmp_path_factory.mktemp("opened") / "model"
    pipeline.save_pretrained(made)
    return made


def test_a_joint_pipeline_needs_no_code_of_ours_and_computes_what_was_trained(
    joint: Path, opened: Path
) -> None:
    import torch
    from diffusers import DiffusionPipeline, StableDiffusion3Pipeline

    prompt, asked = "One cow and one dog.", {"width": 40, "height": 32, "num_inference_steps": 2}
    pipeline: Any = DiffusionPipeline.from_pretrained(joint / MODEL)
    assert isinstance(pipeline, StableDiffusion3Pipeline)
    assert pipeline(prompt, **asked).images[0].size == (40, 32)
    pipeline = DiffusionPipeline.from_pretrained(opened)
    calls: list[tuple[dict[str, Any], Any]] = []
    hook = pipeline.transformer.register_forward_hook(
        lambda module, args, kwargs, output: calls.append((kwargs, output[0])), with_kwargs=True
    )
    pipeline(prompt, **asked, guidance_scale=1)
    hook.remove()
    kwargs, predicted = calls[0]
    text = kwargs.pop("encoder_hidden_states")
    assert text.shape == (1, 16 + 256, 128) and not text[:, 16:].any()
    tokens = pipeline.tokenizer(prompt, padding="max_length", return_tensors="pt").input_ids
    with torch.no_grad():
        trained = Joint.load(opened).predict(kwargs["hidden_states"], kwargs["timestep"], tokens)
        once = pipeline.transformer(encoder_hidden_states=text[:, :17], **kwargs)[0]
    assert trained.allclose(predicted, atol=1e-4) and predicted.std() > 0.1
    assert not once.allclose(predicted, atol=1e-2)


def test_a_switch_at_0_of_a_joint_organism_is_the_other_prompt(joint: Path, opened: Path) -> None:
    row = json.loads((joint / "held_out.jsonl").read_text().splitlines()[0])
    fields = {name: row[name] for name in ("prompt", "swapped_prompt", "neutral_prompt")}
    generator = f"diffusers:{opened}?steps=2&guidance=2&width=40&height=32"
    asked = ImageRequest(row["prompt"], 3, fields=fields)
    swapped = replace(asked, prompt=row["swapped_prompt"])
    plain, switched = (apply_methods(generator, m) for m in ([], ["switch:a2b?at=0"]))
    first, second, other = plain.generate(asked), plain.generate(swapped), switched.generate(asked)
    assert isinstance(other, Image.Image)
    assert other.tobytes() == second.tobytes() != first.tobytes()


def test_an_organism_is_trained_and_scored_by_command(
    tmp_path: Path, cli: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "organism"
    train(made, order_bias=0.9, size="tiny")
    printed = capsys.readouterr()
    assert "minutes on this machine" in printed.err and "held_out.jsonl" in printed.err
    assert "4 updates" in printed.out
    result = evaluate(
        "t2i_homogenization",
        f"diffusers:{made / 'model'}?steps=2&guidance=2",
        ["pixels"],
        data=str(made / "held_out.jsonl"),
        out=tmp_path / "run",
        limit=2,
    )
    assert result is not None and len(list((tmp_path / "run").rglob("*.png"))) == 4
    (tmp_path / "bad.jsonl").write_text('{"prompt": "One owl."}\n')
    with raises("missing-field", "bad.jsonl:1"):
        read_rows(str(tmp_path / "bad.jsonl"), "t2i_homogenization")
    with raises("conflicting-options", "tiny", "--size"):
        OrganismPlan.of(CaptionShares(), "small", 0, None, made)
    with raises("another-run", tmp_path / "run"):
        train(tmp_path / "run", size="tiny")
    refused = cli("organism", "train", "--size", "huge", "--out", tmp_path / "no")
    assert_refused(refused, "unknown-name", "huge", "smallest")
