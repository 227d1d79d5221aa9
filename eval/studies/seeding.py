"""Seed images by any generator: drawn, judged, and kept only if the judge affirms them.

Each try is a run like any other, of the scenes that have no image yet: every scene is drawn once,
with a seed of its own, and a judge says which entity stands left, in the image and in its mirror
image. An image is kept where both answers name the intended one. A run that was killed goes on, one
cap holds over all tries, and each refusal stays in its try, with the image and the judge's answers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from ...errors import DataError, RunFailed, UsageError
from ...images import ImageError, encode_png, open_image, opened
from ...progress import Progress, silent
from ...schema import Entity, PairType, Provenance, T2IHomogenization
from ...storage import write_json
from ..core import INVALID, Outcome, describe, probes_of
from ..engine.costs import Cost
from ..engine.data import Rows
from ..engine.evaluation import RunSettings, outcomes
from ..engine.run import CaseResult, Run, recorded_bytes
from ..engine.steps import JudgeSettings, check_answering, generate, judge_run
from ..generators import as_generator
from ..judges import as_judge
from ..methods.candidates import candidate_seed

WHO = "seeds.json"
"""File with the generator and judge of a folder's tries."""
TRIES = 8
"""Images of a scene, at most."""
CONTROLS = ("mirror",)
"""In the mirror image a judge that always names one side, or whoever is named first, contradicts
itself."""
WHY = {
    "first_right": "the wrong one left",
    INVALID: "not both, or not apart",
    "unparsed": "unreadable answer",
    "refused": "judge refused",
}
"""Label of a judge that does not affirm an image -> reason of the refusal."""
NOT_DRAWN = "generator refused"
CONTRADICTED = "contradicted in the mirror image"


@dataclass(frozen=True)
class SeedScene:
    """Content of a seed image; scenes with the same prompt share an image."""

    prompt: str
    """Text to draw, layout explicit."""
    left: Entity
    """Entity that must stand left, with the look that the judge reads."""
    right: Entity
    """Entity that must stand right."""
    pair_type: PairType
    """Kinds of the two."""


@dataclass(frozen=True)
class SeedSettings:
    """How seed images are drawn and checked."""

    generator: str
    """Spec."""
    judge: str
    """Spec of the judge that affirms them."""
    out: Path
    """Folder of the tries, `try-1`, `try-2`, ..., and of all paid calls."""
    tries: int = TRIES
    """Images of a scene, at most."""
    cost: Cost = field(default_factory=Cost)
    """Cap and prices, over all tries."""


@dataclass(frozen=True)
class SeedResults:
    """Kept images and counts of all tries."""

    images: Mapping[str, bytes]
    """Prompt -> PNG of the kept image, RGB."""
    judge: Mapping[str, str]
    """Identity of the judge."""
    drawn: int
    """Images that were drawn, kept or not."""
    refused: Mapping[str, int]
    """Tries without a kept image, by reason."""


def find_seeds(
    scenes: Sequence[SeedScene], settings: SeedSettings, progress: Progress = silent
) -> SeedResults:
    """Draws each scene until the judge affirms an image, or the tries are used up.

    Raises UsageError for a bad spec and a folder of another generator or judge, RunError for a
    folder of other scenes, RunFailed if an image could not be made or judged, which does not count
    as a refusal: the next call tries it again.
    """
    generator = as_generator(settings.generator)
    with settings.cost.plan(settings.out) as plan:
        judge = as_judge(settings.judge, plan)
        check_answering([judge])
        _claim(settings.out, {"generator": generator.identity(), "judge": judge.identity()})
        open_scenes = {scene.prompt: scene for scene in scenes}
        images: dict[str, bytes] = {}
        refused: Counter[str] = Counter()
        drawn = 0
        for number in range(settings.tries):
            if not open_scenes:
                break
            rows = Rows.of([_row(scene, number) for scene in open_scenes.values()])
            out = settings.out / f"try-{number + 1}"
            run = RunSettings(rows.rows[0].suite, "seed images", out, variants=("plain",))
            generate(run, generator, plan, progress, rows, spec=settings.generator)
            done = judge_run(
                out, [judge], JudgeSettings(CONTROLS), plan, progress, rows, specs=[settings.judge]
            )
            judged = outcomes(done.run, done.judged[0][0])
            _check_decided(out, judged, done.run)
            drawn += sum(outcome.image == "made" for outcome in judged)
            for outcome in judged:
                if why := _refusal(outcome):
                    refused[why] += 1
                else:
                    image = done.run.images()[outcome.case.id]
                    images[outcome.case.prompt] = _png(done.run, image)
                    del open_scenes[outcome.case.prompt]
        return SeedResults(images, judge.identity(), drawn, dict(sorted(refused.items())))


def _row(scene: SeedScene, number: int) -> T2IHomogenization:
    """Builds a row that asks which entity of the scene stands left, with the seed of a try."""
    row = T2IHomogenization(
        pair_type=scene.pair_type,
        first=scene.left,
        second=scene.right,
        first_action="",
        second_action="",
        prompt=scene.prompt,
        swapped_prompt="",
        neutral_prompt="",
        review=["code"],
        provenance=Provenance(bank="", entry="", author="rules", calls=[]),
    )
    return row.model_copy(update={"seeds": [candidate_seed(row.seeds[0], number)]})


def _claim(out: Path, who: Mapping[str, Mapping[str, str]]) -> None:
    """Raises UsageError for a folder with tries of another generator or judge."""
    path = out / WHO
    if not path.exists():
        write_json(path, who)
        return
    recorded = json.loads(path.read_text("utf-8"))
    for role, identity in who.items():
        if recorded.get(role) != dict(identity):
            raise UsageError(
                f"{out} holds seed images of another {role}, {describe(recorded.get(role) or {})}: "
                f"choose another --seeds-out",
                code="another-run",
            )


def _check_decided(out: Path, judged: Sequence[Outcome], run: Run) -> None:
    """Raises RunFailed if an image could not be made or judged."""
    failed = [o for o in judged if {o.image, *_labels(o)} & {"error", "missing"}]
    if not failed:
        return
    first = failed[0]
    cause = next((v.raw for v in first.verdicts.values() if v.label == "error"), "")
    cause = cause or run.images()[first.case.id].message or first.image
    raise RunFailed(
        f"{out}: {len(failed)} of {len(judged)} seed images could not be made or judged, the first "
        f"({first.case.prompt!r}) because of: {cause}; run the same command again to try these",
        code="all-failed",
    )


def _labels(outcome: Outcome) -> list[str]:
    """Labels of the image and of its mirror image; empty if no image was drawn."""
    if outcome.image != "made":
        return []
    return [outcome.label("order", probe) for probe in probes_of(CONTROLS)]


def _refusal(outcome: Outcome) -> str:
    """Reason why an image is not kept; empty for a kept one."""
    if outcome.image != "made":
        return NOT_DRAWN
    label, mirrored = _labels(outcome)
    if label != "first_left":
        return WHY[label]
    return "" if mirrored == label else CONTRADICTED


def _png(run: Run, image: CaseResult) -> bytes:
    """Returns the judged bytes if they are an RGB PNG, else the same pixels as an RGB PNG.

    Raises UsageError for a clip, DataError for a file that is not the judged one any more.
    """
    if image.frames:
        raise UsageError(
            "--seed-images: this generator makes clips, and edits start from an image",
            code="wrong-medium",
        )
    try:
        data = recorded_bytes(run.root, image)
    except ImageError as error:
        raise DataError(
            f"{run.image_path(image)} {error}: run the same command again", code="unreadable-image"
        ) from None
    with opened(BytesIO(data)) as opened_image:
        keep = opened_image.format == "PNG" and opened_image.mode == "RGB"
    return data if keep else encode_png(open_image(BytesIO(data)))
