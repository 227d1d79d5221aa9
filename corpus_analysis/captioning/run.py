"""Run of the measure: captioners on images and mirror images, and people on the same images."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...eval.captioners import as_captioner
from ...eval.captioners.log import CaptionLog
from ...eval.core import Caption, Captioner, Score, without_nan
from ...eval.engine.costs import Cost
from ...eval.judges import Answering
from ...eval.report.plots import as_file, interval_plot, shortened
from ...progress import Progress, silent
from ...storage import Lock, write_json, write_whole
from ..captions.parser import installed_model
from .asking import WORDINGS, Ask, ask, asks
from .people import read_people
from .ranking import CaptionerRanking, rank_captioners
from .reading import Reading, ToRead, read
from .scores import ImageReading, MirrorReadings, against_people, captioner_scores, people_scores
from .things import Photographs, drawn, photographs

CAPTIONS = "captions"
READINGS = "readings.jsonl"
RESULT = "captioning.json"
PLOT = "captioning.svg"
LOCK = ".lock"

PEOPLE = "people"


LONGEST_NAME = 40
"""Characters of a name in the plot."""
PLOTTED = ("left_first", "left_first_found", "left_first_balanced")


@dataclass(frozen=True)
class CaptioningSettings:
    """Settings of a run: images, captioners and captions by people."""

    out: Path
    """Folder of the run."""
    captioners: tuple[str | Captioner, ...] = ()
    """Specs, or captioners; see `eval.captioners.as_captioner`."""
    scenes: int = 200
    """Number of rendered scenes, without boxes."""
    boxes: Path | None = None
    """Boxes of photographs, in COCO's instances format, in place of scenes."""
    images: Path | None = None
    """Folder of the photographs."""
    people: Path | None = None
    """People's captions of the photographs."""
    wordings: tuple[str, ...] = tuple(WORDINGS)
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
    """See `scores`."""

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
    ranking: CaptionerRanking
    """The captioners against each other."""
    spent: str
    """Cost of this run; empty without paid calls."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        results = [
            {**vars(result), "scores": [score.to_json() for score in result.scores]}
            for result in self.results
        ]
        plain: dict[str, Any] = without_nan(
            {"source": dict(self.source), "results": results, "ranking": self.ranking}
        )
        return plain


def measure_captions(settings: CaptioningSettings, progress: Progress = silent) -> Captioning:
    """Asks for all captions, reads them and writes the result; a second run resumes.

    Raises UsageError for bad settings, InUseError if another run writes to the folder, DataError
    for bad files, ModelMissing without spaCy, and RunFailed if a captioner can't answer at all.
    """
    installed_model()  # else captions would be paid for that nothing can read
    images = _images(settings)
    requests = asks(images.things, settings.wordings)
    plan = settings.cost.plan(settings.out)
    with Lock(settings.out / LOCK, str(settings.out)):
        # All are opened first, so that a wrong spec or key fails before the first call.
        captioners = [as_captioner(item, plan) for item in settings.captioners]
        for captioner in captioners:
            if isinstance(captioner, Answering):
                captioner.check()
        people, of_other_images = _people(settings.people, images)
        logs = [CaptionLog(settings.out / CAPTIONS, captioner) for captioner in captioners]
        results: list[CaptionerResult] = []
        lines: list[str] = []
        by_name: dict[str, list[MirrorReadings]] = {}
        for log, name in zip(logs, _names(logs), strict=True):
            written = ask(requests, log, progress).captions
            readings = _read(requests, written)
            lines += _lines(name, requests, written, readings)
            by_name[name] = pairs = _pairs(requests, readings)
            compared = against_people(pairs, people) if people else []
            scores = (*captioner_scores(pairs), *compared)
            results.append(
                CaptionerResult(
                    name=name,
                    identity=log.identity,
                    labels=_counts(readings.values()),
                    cut=sum(caption.cut for caption in written.values() if caption),
                    scores=scores,
                )
            )
        if people:
            labels = _counts(item.reading for item in people)
            scores = tuple(people_scores(people))
            results.append(CaptionerResult(PEOPLE, {}, labels, 0, scores))
        source = {
            "images": len(images.things),
            "boxes": settings.boxes.name if settings.boxes else "rendered",
            "skipped": images.skipped,
            "captions_of_other_images": of_other_images,
            "wordings": {name: WORDINGS[name] for name in settings.wordings},
        }
        spent = str(plan.budget.spending) if plan.budget.spending.calls else ""
        captioning = Captioning(source, tuple(results), rank_captioners(by_name), spent)
        write_whole(settings.out / READINGS, "".join(lines))
        write_whole(settings.out / PLOT, draw_plot(results))
        write_json(settings.out / RESULT, captioning.to_json())
    return captioning


def _images(settings: CaptioningSettings) -> Photographs:
    """Draws the scenes or opens the photographs.

    Raises UsageError without captioners and people, and for missing boxes or images.
    """
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
        return Photographs(tuple(drawn(settings.scenes, settings.seed)), {}, {})
    if settings.captioners and settings.images is None:
        raise UsageError(
            "a captioner needs the photographs: name their folder with --images",
            code="missing-option",
        )
    return photographs(settings.boxes, settings.images, settings.limit)


def _names(logs: Sequence[CaptionLog]) -> list[str]:
    """Names each captioner in a few words, with its folder if two are described alike.

    Raises UsageError for a captioner that is named twice.
    """
    if len({log.root for log in logs}) < len(logs):
        twice = next(name for name, n in Counter(log.name for log in logs).items() if n > 1)
        raise UsageError(f"captioner {twice} is named twice", code="duplicate-id")
    counts = Counter(log.name for log in logs)
    return [log.name if counts[log.name] == 1 else f"{log.name} ({log.root.name})" for log in logs]


def _people(path: Path | None, images: Photographs) -> tuple[list[ImageReading], int]:
    """Reads people's captions; returns them with the number of captions of other images."""
    if path is None:
        return [], 0
    people = read_people(path, images.ids)
    by_id = {things.id: things for things in images.things}
    images_of_captions = [by_id[written.image] for written in people.captions]
    captions = [
        ToRead(Caption(written.text), things.left, things.right)
        for written, things in zip(people.captions, images_of_captions, strict=True)
    ]
    readings = read(captions)
    return [
        ImageReading(*both) for both in zip(images_of_captions, readings, strict=True)
    ], people.of_other_images


def _read(requests: Sequence[Ask], written: Mapping[str, Caption | None]) -> dict[str, Reading]:
    """Maps ids of `Ask` to readings; the sides are those of the image as shown."""
    captions = []
    for request in requests:
        left, right = request.things.left, request.things.right
        sides = (right, left) if request.mirrored else (left, right)
        captions.append(ToRead(written[request.id], *sides))
    return dict(zip([request.id for request in requests], read(captions), strict=True))


def _pairs(requests: Sequence[Ask], readings: Mapping[str, Reading]) -> list[MirrorReadings]:
    halves = (
        (request, Ask(request.things, request.wording, True))
        for request in requests
        if not request.mirrored
    )
    return [
        MirrorReadings(
            original.things, original.wording, readings[original.id], readings[mirrored.id]
        )
        for original, mirrored in halves
    ]


def _lines(
    name: str,
    requests: Sequence[Ask],
    written: Mapping[str, Caption | None],
    readings: Mapping[str, Reading],
) -> Iterator[str]:
    """Yields a JSON line for each caption with its reading."""
    for request in requests:
        caption, reading = written[request.id], readings[request.id]
        row = {
            "captioner": name,
            "image": request.things.id,
            "left": request.things.left.name,
            "right": request.things.right.name,
            "wording": request.wording,
            "mirrored": request.mirrored,
            "label": reading.label,
            "first": reading.first,
            "caption": caption.text if caption else "",
        }
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _counts(readings: Any) -> dict[str, int]:
    return dict(sorted(Counter(reading.label for reading in readings).items()))


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
        if score.name in PLOTTED and score.group == "all":
            yield shortened(f"{result.name}: {score.name}", LONGEST_NAME), score
        elif score.name == "left_first" and score.group.startswith("wording="):
            yield shortened(score.group, LONGEST_NAME), score
