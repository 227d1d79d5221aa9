"""Run of the measure: captioners on images and mirror images, and people on the same images.

Each captioner is a run of the suite `caption_order`, in its own folder below that of the command.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...eval.captioners import CUT
from ...eval.core import (
    Captioner,
    CaseGenerator,
    Outcome,
    Score,
    describe,
    identity_digest,
    is_mirrored,
    without_nan,
)
from ...eval.engine.costs import Cost
from ...eval.engine.data import Rows
from ...eval.engine.evaluation import RunSettings
from ...eval.engine.run import Run
from ...eval.engine.steps import evaluate_run
from ...eval.generators import Checked, as_generator
from ...eval.judges import CallPlan, Prepared
from ...eval.report.plots import as_file, interval_plot, shortened
from ...eval.results.leaderboard import Leaderboard, leaderboard
from ...eval.results.scoring import JudgedRun, ScoreSettings, score_run, write_results
from ...eval.suites.caption_order import (
    MIRROR,
    PEOPLE,
    USUAL_WORDINGS,
    WORDINGS,
    CaptionOrderSuite,
    CaptionReading,
    above,
    image_of,
    wording_of,
    write_images,
)
from ...progress import Progress, silent
from ...specs import Spec
from ...storage import Lock, write_json, write_whole
from ..captions.parser import installed_model
from .judge import NamesJudge
from .people import read_people
from .recorded import KIND, RecordedCaptions, captions_of_people, read_recorded
from .things import SCENES, Photographs, photographs, scenes

IMAGES = "images.jsonl"
"""Rows of the suite: the images with their two things."""
RUNS = "runs"
"""Folder of the runs, one for each captioner and for people."""
READINGS = "readings.jsonl"
RESULT = "captioning.json"
PLOT = "captioning.svg"
LOCK = ".lock"
OLD = "captions"
"""Folder of the captions in a folder of an older version."""

PEOPLE_NAME = "people"
"""Name of people in the results, and of the subset of cases that they have captions of."""

LONGEST_NAME = 40
"""Characters of a name in the plot."""
PLOTTED = ("left_first", "left_first_found", "left_first_balanced")


@dataclass(frozen=True)
class CaptioningSettings:
    """Settings of a run: images, captioners and captions by people."""

    out: Path
    """Folder of the run."""
    captioners: tuple[str | Captioner, ...] = ()
    """Specs, or captioners; see `eval.captioners.as_captioner`. `recorded:FILE` is each captioner
    with captions in the readings of another run."""
    scenes: int = 200
    """Number of rendered scenes, without boxes."""
    boxes: Path | None = None
    """Boxes of photographs, in COCO's instances format, in place of scenes."""
    images: Path | None = None
    """Folder of the photographs."""
    people: Path | None = None
    """People's captions of the photographs."""
    wordings: tuple[str, ...] = USUAL_WORDINGS
    """Wordings of the instruction, see `WORDINGS`."""
    limit: int | None = None
    """Most photographs."""
    seed: int = 0
    """Seed of the choice of scenes."""
    cost: Cost = field(default_factory=Cost)
    """How paid calls are made."""


@dataclass(frozen=True)
class CaptionerResult:
    """The result of one captioner, or of people."""

    name: str
    """The captioner in a few words, unique in the run; `people`."""
    identity: Mapping[str, str]
    """The captioner; empty for people."""
    labels: Mapping[str, int]
    """Label of a reading -> captions."""
    cut: int
    """Captions that reached the most tokens allowed."""
    scores: tuple[Score, ...]
    """See `CaptionOrderSuite.score`; with people's captions also `above_people`."""
    folder: str
    """Folder of its run, relative to that of the command."""

    def score(self, name: str, group: str = "all") -> Score:
        """Returns one of its scores. Raises KeyError if there is none."""
        for score in self.scores:
            if (score.name, score.group) == (name, group):
                return score
        raise KeyError(name)


@dataclass(frozen=True)
class Captioning:
    """The result of a run."""

    source: Mapping[str, Any]
    """Images: number, origin, and counts of others by the reason to skip them."""
    results: tuple[CaptionerResult, ...]
    """Captioners as they were named, then people."""
    ranking: Leaderboard
    """The captioners against each other; people, who saw no mirror images, have no rank."""
    spent: str
    """Cost of this run; empty without paid calls."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        results = [
            {**vars(result), "scores": [score.to_json() for score in result.scores]}
            for result in self.results
        ]
        captioners = [
            {"name": line.name, "left_first": line.score.value, "groups": line.groups}
            for line in self.ranking.standings
            if line.rank
        ]
        pairs = [{**pair.to_json(), "images": pair.clusters} for pair in self.ranking.comparisons]
        plain: dict[str, Any] = without_nan(
            {
                "source": dict(self.source),
                "results": results,
                "ranking": {"captioners": captioners, "pairs": pairs},
            }
        )
        return plain


def measure_captions(settings: CaptioningSettings, progress: Progress = silent) -> Captioning:
    """Makes a run of every captioner and of people, and writes the result; a second run resumes.

    Raises UsageError for bad settings, InUseError if another run writes to the folder, DataError
    for bad files, ModelMissing without spaCy, and RunFailed if a captioner can't answer at all.
    """
    installed_model()  # else captions would be paid for that nothing can read
    _check(settings)
    with Lock(settings.out / LOCK, str(settings.out)):
        images = _images(settings)
        plan = settings.cost.plan(settings.out)
        # All are opened first, so that a wrong spec or key fails before the first call.
        captioners = [one for item in settings.captioners for one in _in_place(item)]
        names = _names(captioners)
        for captioner in captioners:
            if isinstance(captioner, Prepared):
                captioner.prepare(settings.out, plan)
            if isinstance(captioner, Checked):
                captioner.check(())
        people, of_other_images = _people(settings.people, images)
        write_images(settings.out / IMAGES, images.rows)
        run = _Runs(settings, Rows.of(images.rows), plan, progress)
        by_captioner = [run.of_captioner(*named) for named in zip(names, captioners, strict=True)]
        judged = by_captioner + ([run.of_people(people)] if people else [])
        write_results([one.result for one in judged])
        theirs = judged[-1].outcomes if people else ()
        results = [
            _result(one, settings.out, theirs if one in by_captioner else ()) for one in judged
        ]
        source = {
            "images": len(images.rows),
            "boxes": settings.boxes.name if settings.boxes else "rendered",
            "skipped": images.skipped,
            "captions_of_other_images": of_other_images,
            "wordings": {name: WORDINGS[name] for name in settings.wordings},
        }
        spent = str(plan.budget.spending) if plan.budget.spending.calls else ""
        ranking = leaderboard(CaptionOrderSuite.name, CaptionOrderSuite.headline, judged)
        captioning = Captioning(source, tuple(results), ranking, spent)
        lines = (line for one in by_captioner for line in _lines(one))
        write_whole(settings.out / READINGS, "".join(lines))
        write_whole(settings.out / PLOT, draw_plot(results))
        write_json(settings.out / RESULT, captioning.to_json())
    return captioning


def _check(settings: CaptioningSettings) -> None:
    """Raises UsageError for an unknown wording, without captioners and people, for missing boxes or
    images, and for a folder of an older version."""
    if unknown := sorted(set(settings.wordings) - set(WORDINGS)):
        raise UsageError(
            f"no wording {unknown[0]!r}: choose from {', '.join(WORDINGS)}", code="unknown-name"
        )
    if not settings.captioners and settings.people is None:
        raise UsageError(
            "no captions to score: pass --captioner or --people",
            code="missing-option",
        )
    if settings.boxes is None:
        for option in ("images", "people"):
            if getattr(settings, option) is not None:
                raise UsageError(
                    f"--{option} needs --boxes: they say which thing stands left",
                    code="missing-option",
                )
    elif settings.captioners and settings.images is None:
        raise UsageError(
            "a captioner needs the photographs: name their folder with --images",
            code="missing-option",
        )
    if (settings.out / OLD).is_dir():
        raise UsageError(
            f"{settings.out} was made by another version, whose captions are not runs of "
            f"{CaptionOrderSuite.name}",
            f"choose another --out; to score those captions there, pass "
            f"--captioner {KIND}:{settings.out / READINGS}",
            code="another-version",
        )


def _images(settings: CaptioningSettings) -> Photographs:
    """Draws the scenes or opens the photographs."""
    if settings.boxes is None:
        drawn = scenes(settings.scenes, settings.seed, settings.out / SCENES)
        return Photographs(tuple(drawn), {}, {})
    return photographs(settings.boxes, settings.images, settings.limit)


def _in_place(captioner: str | Captioner) -> list[CaseGenerator]:
    """A captioner in a generator's place, or each of those with captions in a file."""
    if not isinstance(captioner, str):
        return [as_generator(captioner)]
    spec = Spec.parse(captioner)
    if spec.kind == KIND:
        return [*read_recorded(Path(spec.argument))]
    return [as_generator(f"caption:{captioner}")]


def _names(captioners: Sequence[CaseGenerator]) -> list[str]:
    """Names each captioner in a few words, with a digest if two are described alike.

    Raises UsageError for a captioner that is named twice.
    """
    identities = [_identity_of(captioner.identity()) for captioner in captioners]
    digests, counts = map(identity_digest, identities), Counter(map(describe, identities))
    names = [
        described if counts[described] == 1 else f"{described} ({digest})"
        for described, digest in zip(map(describe, identities), digests, strict=True)
    ]
    for name, count in Counter(names).items():
        if count > 1:
            raise UsageError(f"captioner {name} is named twice", code="duplicate-id")
    return names


def _identity_of(generator: Mapping[str, str]) -> dict[str, str]:
    """Identity of the captioner that stands in a generator's place."""
    if "inner_kind" not in generator:
        return dict(generator)
    return {
        name.replace("inner_", "", 1): value for name, value in generator.items() if name != "kind"
    }


def _people(path: Path | None, images: Photographs) -> tuple[RecordedCaptions | None, int]:
    """Reads people's captions; returns them with the number of captions of other images."""
    if path is None:
        return None, 0
    captions = read_people(path, images.ids)
    return captions_of_people(captions.captions), captions.of_other_images


@dataclass(frozen=True)
class _Runs:
    """Makes, judges and scores a run for each captioner."""

    settings: CaptioningSettings
    rows: Rows
    plan: CallPlan
    progress: Progress

    def of_captioner(self, name: str, captioner: CaseGenerator) -> JudgedRun:
        wordings = [wording for wording in WORDINGS if wording in self.settings.wordings]
        return self._judged(
            name,
            captioner,
            variants=(*wordings, *(f"{MIRROR}{wording}" for wording in wordings)),
            where="" if wordings == [*USUAL_WORDINGS] else f"wordings={','.join(wordings)}",
        )

    def of_people(self, people: RecordedCaptions) -> JudgedRun:
        cases = frozenset(case.id for case in people.cases(self.rows.rows))  # type: ignore[arg-type]
        return self._judged(
            PEOPLE_NAME,
            people,
            variants=(PEOPLE,),
            where=PEOPLE_NAME,
            cases=cases,
            seeds=people.most,
        )

    def _judged(self, name: str, captioner: CaseGenerator, **subset: Any) -> JudgedRun:
        """Makes the run, or continues it. Raises RunFailed without a single caption."""
        out = self.settings.out
        identity = captioner.identity()
        kind = identity.get("inner_kind", identity["kind"])
        # Other images or wordings are another run.
        about = {**identity, "rows": self.rows.digest, "where": subset["where"]}
        folder = out / RUNS / f"{kind}-{identity_digest(about)}"
        run = RunSettings(CaptionOrderSuite.name, str(out / IMAGES), folder, **subset)

        def named(stage: str, done: int, total: int) -> None:
            self.progress(f"{stage.replace('images', 'captions')} by {name}", done, total)

        done = evaluate_run(
            run, captioner, [NamesJudge()], cost=self.plan, progress=named, rows=self.rows
        )
        if all(result.status == "error" for result in done.run.images().values()):
            done.run.check_made()
        ((log, _),) = done.judged
        (judged,) = score_run(folder, ScoreSettings(judges=(log.root.name,)))
        return replace(judged, name=name)


def _result(judged: JudgedRun, out: Path, people: Sequence[Outcome]) -> CaptionerResult:
    """people: outcomes of people's captions, to compare with; empty for none."""
    run = judged.result.run
    scores = [*judged.result.scores]
    if people:
        scores.append(above(judged.outcomes, people, "above_people"))
    labels = Counter(CaptionReading.of(outcome).reason for outcome in judged.outcomes)
    results = Run.open(Path(judged.result.folder)).images().values()
    return CaptionerResult(
        name=judged.name,
        identity=_identity_of(run.generator) if judged.name != PEOPLE_NAME else {},
        labels=dict(sorted(labels.items())),
        cut=sum(result.report == CUT for result in results),
        scores=tuple(scores),
        folder=str(Path(judged.result.folder).relative_to(out)),
    )


def _lines(judged: JudgedRun) -> Iterator[str]:
    """Yields a JSON line for each caption with its reading."""
    run = Run.open(Path(judged.result.folder)).held()
    outcomes = {outcome.case.id: outcome for outcome in judged.outcomes}
    for case in run.cases():
        reading = CaptionReading.of(outcomes[case.id])
        written = run.images()[case.id]
        is_there = written.is_text and outcomes[case.id].image == "made"
        row = {
            "captioner": judged.name,
            "image": image_of(case),
            "left": case.groups["left"],
            "right": case.groups["right"],
            "wording": wording_of(case),
            "mirrored": is_mirrored(case.variant),
            "label": reading.reason,
            "first": reading.first,
            "caption": run.image_path(written).read_text("utf-8") if is_there else written.message,
        }
        yield json.dumps(row, ensure_ascii=False) + "\n"


def draw_plot(results: Sequence[CaptionerResult]) -> str:
    """Returns an SVG file with a row for each score of `PLOTTED`, and for `left_first` in each
    wording."""
    rows = [
        (name, score, number)
        for number, result in enumerate(results)
        for name, score in _plot_rows(result)
    ]
    label = "captions that name the left one first, percent"
    figure = interval_plot(rows, label, (0, 100), chance=50)
    return as_file(figure, "share of captions that name the left one first")


def _plot_rows(result: CaptionerResult) -> Iterator[tuple[str, Score]]:
    """Yields row names and scores of one captioner."""
    for score in result.scores:
        if score.name in PLOTTED and score.group == "all" and score.n:
            yield shortened(f"{result.name}: {score.name}", LONGEST_NAME), score
        elif score.name == "left_first" and score.group.startswith("wording="):
            yield shortened(score.group, LONGEST_NAME), score
