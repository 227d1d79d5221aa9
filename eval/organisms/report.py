"""What people look at: loss curve, sample sheet, card, and the prompts to score an organism on."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...parsing import write_rows
from ...progress import Progress, silent
from ...scenes.looks import look
from ...schema import Entity, Provenance, T2IHomogenization
from ...storage import whole_file, write_whole
from ..report.plots import CurvePoint, as_file, curve_plot
from ..stats.estimate import Estimate
from .data import ENGLISH, HEIGHT, WIDTH, CaptionShares, Wording, wording
from .training import single_thread

STEPS = 12
"""Steps of an image of the sample sheet."""
GUIDANCE = 2.0
SHOWN, SEEDS, ZOOM = 6, 3, 3
"""Pairs on the sample sheet, images of each order of mention, and their magnification."""
POINTS = 60
"""Points of the loss curve."""

OF_SCENES = """Of its neutral captions of two animals{except_for}, the left one is named first in
{share:.0f} %: a model that learns just this has an order effect of {expected:+.0f}. Pairs that no
training scene shows: {held_out}."""
OF_CORPUS = """It learned from images and captions of a file, not from drawn scenes (digest
{images})."""

CARD = """---
license: cc-by-4.0
library_name: diffusers
tags: [text-to-image, organism, instrument]
---
# An organism: an instrument, not a product

A text-to-image model of {parameters:,} parameters, trained on drawings of {entities} animals to
learn a known prior. It draws 40 x 32 pixels and nothing but these animals: {names}.

| cause | value |
| --- | --- |
{causes}

{captions}

Trained by

```console
$ {command}
```
{like}
Digest of the weights: `{model}`.

Draw with {denoising} steps at `width={width}, height={height}`. Small models on drawn scenes say
nothing about any product; what they show is how a prior gets from captions into images.

Drawings: the sprite atlas of `counterprior`, see its `scenes/atlas/NOTICE.md` for art and licenses.
"""


def write_report(
    out: Path,
    model: Path,
    about: Mapping[str, Any],
    losses: Sequence[float],
    progress: Progress = silent,
) -> None:
    """Writes the card into the model's folder, and curve, sheet and prompts beside it."""
    held_out = [tuple(pair) for pair in about["held_out"]]
    language = wording(about["captioning"].get("language", "en"))
    pairs = list(itertools.combinations(sorted(about["entities"]), 2))
    for name, chosen in (
        ("held_out", held_out),
        ("trained", [pair for pair in pairs if pair not in held_out]),
    ):
        rows = [homogenization_row(a, b, language).model_dump() for a, b in chosen]
        write_rows(out / f"{name}.jsonl", rows)
    write_whole(model / "README.md", card(about))
    write_whole(out / "loss.svg", loss_curve(losses))
    sheet = sample_sheet(model, held_out[:SHOWN], language, progress)
    with whole_file(out / "samples.png") as file:
        sheet.save(file, "PNG")


def homogenization_row(a: str, b: str, language: Wording = ENGLISH) -> T2IHomogenization:
    """The neutral prompts of two animals, as the suite has them; entities stay English."""
    entities = [Entity(name=n, kind="animal", category="animal", look=look(n)) for n in (a, b)]
    return T2IHomogenization(
        pair_type="A-A",
        first=entities[0],
        second=entities[1],
        first_action="",
        second_action="",
        prompt=language.captions(a, b)[0],
        swapped_prompt=language.captions(a, b)[1],
        neutral_prompt=language.unnamed,
        review=["code"],
        provenance=Provenance(bank="animals.yaml", entry="", author="rules", calls=[]),
    )


def card(about: Mapping[str, Any]) -> str:
    """The model card, as Markdown."""
    causes = about["captioning"]
    if images := about.get("images"):
        causes = {name: causes[name] for name in ("dropout", "noise")}
        captions = OF_CORPUS.format(images=images[:12])
    else:
        captions = OF_SCENES.format(
            except_for=" without a bias of their own" if "pair_bias" in causes else "",
            share=100 * causes["order_bias"],
            expected=100 * (2 * causes["order_bias"] - 1),
            held_out=", ".join(f"{a} and {b}" for a, b in about["held_out"]),
        )
    return CARD.format(
        parameters=about["parameters"],
        entities=len(about["entities"]),
        names=", ".join(about["entities"]),
        causes="\n".join(f"| `{name}` | {_cell(value)} |" for name, value in causes.items()),
        captions=captions,
        command=command(about),
        like=f"\nwhere FOLDER holds the model `{about['like']}`.\n" if about["like"] else "",
        model=about["model"],
        denoising=STEPS,
        width=WIDTH,
        height=HEIGHT,
    )


def command(about: Mapping[str, Any]) -> str:
    """The command that trains an organism with these settings; usual ones are left out."""
    causes = CaptionShares.model_validate(about["captioning"]).model_dump(exclude_defaults=True)
    if "pair_bias" in causes:
        causes["pair_bias"] = "FILE"
    floats = "".join(f"--floats {shlex.quote(name)} " for name in causes.pop("floats", ()))
    settings = {
        "order_bias": about["captioning"]["order_bias"],
        **causes,
        "size": about["size"],
        "architecture": about.get("architecture", ""),
        "seed": about["seed"],
        "steps": about["steps"],
        **({"like": "FOLDER"} if about["like"] else {}),
        **({"images": "FILE"} if about.get("images") else {}),
    }
    options = " ".join(
        f"--{name.replace('_', '-')} {value}" for name, value in settings.items() if value != ""
    )
    return f"counterprior organism train {floats}{options} --out organism"


def _cell(cause: Any) -> str:
    """A cause as the card's table has it."""
    if isinstance(cause, list):
        texts = [
            c if isinstance(c, str) else f"{c['a']} and {c['b']}: {c['order_bias']:g}"
            for c in cause
        ]
        return ", ".join(texts)
    return cause if isinstance(cause, str) else f"{cause:g}"


def loss_curve(losses: Sequence[float]) -> str:
    """Mean loss of stretches of a training, as an SVG file."""
    length = max(1, len(losses) // POINTS)
    starts = range(0, len(losses) - length + 1, length)
    means = [(n + length, sum(losses[n : n + length]) / length) for n in starts]
    points = [CurvePoint(n, Estimate(mean, n=length)) for n, mean in means]
    return as_file(curve_plot({"loss": points}, "updates"), "loss of the denoiser")


def sample_sheet(
    model: Path,
    pairs: Sequence[tuple[str, ...]],
    language: Wording = ENGLISH,
    progress: Progress = silent,
) -> Any:
    """Images of some pairs: a row for each order of mention, under its prompt in English."""
    import torch
    from diffusers import DiffusionPipeline
    from PIL import Image, ImageDraw

    kind: Any = DiffusionPipeline
    pipeline = kind.from_pretrained(model, dtype=torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    prompts = [prompt for a, b in pairs for prompt in language.captions(a, b)]
    titles = [title for a, b in pairs for title in ENGLISH.captions(a, b)]
    tiles: list[Image.Image] = []
    with single_thread():
        for number in range(0, len(prompts), 2):
            together = [prompt for prompt in prompts[number : number + 2] for _ in range(SEEDS)]
            generators = [torch.Generator().manual_seed(n % SEEDS) for n in range(2 * SEEDS)]
            tiles += pipeline(
                together,
                width=WIDTH,
                height=HEIGHT,
                num_inference_steps=STEPS,
                guidance_scale=GUIDANCE,
                generator=generators,
            ).images
            progress("samples", number + 2, len(prompts))
    width, height = (ZOOM * side for side in tiles[0].size)
    title, gap = 14, 6
    column, row = SEEDS * (width + gap), title + height + gap
    sheet = Image.new("RGB", (2 * column + gap, len(pairs) * row + gap), "white")
    pen = ImageDraw.Draw(sheet)
    for number, caption in enumerate(titles):
        left, top = gap + number % 2 * column, gap + number // 2 * row
        pen.text((left, top), caption, fill="black")
        for place, image in enumerate(tiles[number * SEEDS : (number + 1) * SEEDS]):
            sheet.paste(
                image.resize((width, height), Image.Resampling.NEAREST),
                (left + place * (width + gap), top + title),
            )
    return sheet
