"""`tune`: a LoRA on mirrored pairs, with the order bias on held-out captions as it trains.

The validation draws held-out captions with the weights as they are, at set steps, and asks a judge
which of the two things is left: the curve shows when the prior is gone, and what more steps cost.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UsageError
from ...images import encode_png
from ...progress import Progress, silent
from ...specs import Spec
from ...storage import Lock, RecordLog, read_records, write_json, write_whole
from ..core import ORIGINAL, Case, Generator, ImageRequest, Judge, Question, without_nan
from ..engine.costs import Cost
from ..generators import draw, open_generator
from ..judges import Answering, CallPlan, as_judge
from ..methods import find_pipeline, has_pipeline
from ..methods.tuning.pairs import CaptionedImage, FlipPairs, export_imagefolder, read_flips
from ..methods.tuning.recipe import LoraRecipe
from ..methods.tuning.trainer import LOSSES, LoraTrainer
from ..questions.asking import Alternative, Subject, ask_which
from ..report.plots import CurvePoint, curve_plot, inline
from ..report.single_page import figure_page
from ..stats.estimate import Estimate
from ..stats.intervals import Interval, folded, wilson

HEADER = "tuning.json"
VALIDATION = "validation.jsonl"
PLOT = "tuning.html"
LABELS = ("first_left", "first_right")
SMOOTHED = 50
"""Losses that a point of the plot averages."""


@dataclass(frozen=True)
class TuneSettings:
    """Model, data and schedule of a tuning."""

    flips: Path
    """Folder of a flip set."""
    model: str
    """Folder, repository, or spec ``diffusers:...`` with the options to validate with."""
    out: Path
    """Folder of the weights; the same call goes on in it."""
    recipe: LoraRecipe = field(default_factory=LoraRecipe)
    judge: str = ""
    """Spec; no validation curve if empty."""
    validate_every: int = 1_000
    """Steps between validations."""
    checkpoint_every: int = 250
    """Steps between checkpoints."""
    gradient_checkpointing: bool = False
    """Slower, in less memory."""
    cost: Cost = field(default_factory=Cost)


def tune(settings: TuneSettings, progress: Progress = silent) -> dict[str, Any]:
    """Trains to the end and writes weights, losses, validation and settings.

    Raises UsageError for a model or data that can't be tuned, BudgetError where a cap ends it,
    InUseError where another process trains there.
    """
    recipe = settings.recipe
    pairs = read_flips(settings.flips, recipe.mirrored, recipe.held_out, recipe.seed)
    generator = open_generator(str(_spec(settings.model)))
    if not has_pipeline(generator):
        raise UsageError(
            f"tune: {settings.model} has no weights: name a model of diffusers", code="wrong-model"
        )
    rank = _process()
    with (
        Lock(settings.out / f"tune-{rank}.lock", f"the training {settings.out}"),
        settings.cost.plan(settings.out) as plan,
    ):
        judge = _judge(settings, pairs, plan)
        identity = generator.identity()
        pipeline = find_pipeline(generator)
        if settings.gradient_checkpointing:
            (
                getattr(pipeline, "transformer", None) or pipeline.unet
            ).enable_gradient_checkpointing()
        version = json.dumps([identity["model"], identity["revision"], pairs.digest])
        trainer = LoraTrainer(pipeline, pairs.train, recipe, settings.out, version)
        header = {
            "model": identity,
            "flips": pairs.digest,
            "images": len(pairs.train),
            "held_out": len(pairs.held_out),
            "recipe": asdict(recipe) | {"optimizer": trainer.optimizer},
        }
        if trainer.is_main:
            write_json(settings.out / HEADER, header)

        def after_step(step: int) -> None:
            due = step % settings.validate_every == 0 or step == recipe.steps
            if judge is not None and due and trainer.is_main:
                with trainer.awake():
                    _validate(settings.out, generator, judge, pairs.held_out, step)

        trainer.train(after_step, settings.checkpoint_every, progress)
        curve = list({r["step"]: r for r in read_records(settings.out / VALIDATION)}.values())
        if trainer.is_main:
            write_whole(settings.out / PLOT, _page(settings.out, curve))
    return {**header, "steps": trainer.step, "validation": curve}


def export(settings: TuneSettings) -> int:
    """Writes the training images as a folder for other trainers; returns their count."""
    recipe = settings.recipe
    pairs = read_flips(settings.flips, recipe.mirrored, recipe.held_out, recipe.seed)
    return export_imagefolder(pairs.train, settings.out)


def _process() -> int:
    """Rank of this process, as `torchrun` and `accelerate launch` number them."""
    return int(os.environ.get("RANK", "0"))


def _spec(model: str) -> Spec:
    """The generator to tune; of several processes on a machine, each has its own GPU."""
    import torch

    spec = Spec.parse(model if model.startswith("diffusers:") else f"diffusers:{model}")
    if "LOCAL_RANK" in os.environ and torch.cuda.is_available() and "device" not in spec.options:
        return replace(spec, options={**spec.options, "device": f"cuda:{os.environ['LOCAL_RANK']}"})
    return spec


def _judge(settings: TuneSettings, pairs: FlipPairs, plan: CallPlan) -> Judge | None:
    """Opens the validating judge; None without a spec. Raises UsageError without held-out pairs."""
    if not settings.judge:
        return None
    if not pairs.held_out:
        raise UsageError(
            "tune: a judge needs held-out pairs: give --held-out 1 or more",
            code="conflicting-options",
        )
    judge = as_judge(settings.judge, plan)
    if isinstance(judge, Answering):
        judge.check()
    return judge


def _validate(
    out: Path, generator: Generator, judge: Judge, images: Sequence[CaptionedImage], step: int
) -> None:
    """Draws and judges every held-out caption, unless it was done at this step before."""
    if any(record["step"] == step for record in read_records(out / VALIDATION)):
        return
    questions: list[Question] = []
    failed = 0
    for number, image in enumerate(images):
        case = Case(image.pair, "caption", number, 0, image.text, (image.pair,))
        try:
            drawn = draw(generator, ImageRequest(image.text, number, case=case)).convert("RGB")
        except ValueError:
            failed += 1
            continue
        write_whole(out / "validation" / str(step) / f"{number}.png", encode_png(drawn))
        alternative = Alternative(
            "order", Subject(image.first, image.first), Subject(image.second, image.second), LABELS
        )
        questions.append(ask_which(alternative, case, ORIGINAL, [drawn]))
    labels = [verdict.label for _, verdict in judge.judge(questions)]
    left_count, right_count = (labels.count(label) for label in LABELS)
    n = left_count + right_count
    low, high = (2 * end - 1 for end in wilson(left_count, n)) if n else (math.nan, math.nan)
    interval = folded(Interval(low, high).scaled(100))
    excluded = {name: labels.count(name) for name in sorted({*labels} - {*LABELS})}
    record = {
        "step": step,
        "hom": 100 * abs(left_count - right_count) / n if n else None,
        "interval": without_nan(list(interval)),
        "first_left": left_count,
        "first_right": right_count,
        "excluded": excluded | ({"error": failed} if failed else {}),
    }
    with RecordLog(out / VALIDATION) as log:
        log.append(record)


def _page(out: Path, curve: Sequence[dict[str, Any]]) -> str:
    newest = {record["step"]: record["loss"] for record in read_records(out / LOSSES)}
    steps = sorted(newest)
    chunk = max(1, min(SMOOTHED, len(steps) // 20))
    losses = [
        CurvePoint(float(np.mean(s)), Estimate(float(np.mean([newest[step] for step in s]))))
        for s in (steps[i : i + chunk] for i in range(0, len(steps), chunk))
    ]
    loss = curve_plot({"loss": losses}, "step")
    figures = {"Loss": inline(loss, "Loss while training")}
    if curve:
        nothing = [math.nan, math.nan]
        points = [
            CurvePoint(
                r["step"],
                Estimate(
                    math.nan if r["hom"] is None else r["hom"],
                    Interval(*(math.nan if e is None else e for e in r["interval"] or nothing)),
                ),
            )
            for r in curve
        ]
        figures["Hom on held-out captions"] = inline(curve_plot({"Hom": points}, "step"), "Hom")
    return figure_page(figures, "Tuning on mirrored pairs")
