"""A run of the measure: captioners on images and mirror images, and people on the same images."""

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
from ...progress import Progress, silent
from ...storage import Lock, write_json, write_whole
from ..captions.parser import installed_model
from .asking import WORDINGS, Ask, ask, asks
from .people import read_people
from .plot import draw_plot
from .ranking import CaptionerRanking, rank_captioners
from .reading import Reading, ToRead, read
from .scores import BothSides, Told, against_people, captioner_scores, people_scores
from .things import Photographs, drawn, photographs

CAPTIONS = "captions"
READINGS = "readings.jsonl"
RESULT = "captioning.json"
PLOT = "captioning.svg"
LOCK = ".lock"

PEOPLE = "people"


@dataclass(frozen=True)
class CaptioningSettings:
    """What is captioned, and by whom."""

    out: Path
    """Folder of the run."""
    captioners: tuple[str | Captioner, ...] = ()
    """Specs, or captioners; see `eval.captioners.as_captioner`."""
    scenes: int = 200
    """Rendered scenes, where no boxes are given."""
    boxes: Path | None = None
    """Boxes of photographs, in COCO's instances format, in place of scenes."""
    images: Path | None = None
    """Folder of the photographs."""
    people: Path | None = None
    """People's captions of the photographs."""
    wordings: tuple[str, ...] = tuple(WORDINGS)
    """Of the instruction, see `WORDINGS`."""
    limit: int | None = None
    """Most photographs."""
    seed: int = 0
    """Which scenes are drawn."""
    cost: Cost = field(default_factory=Cost)
    """How paid calls are made."""


@dataclass(frozen=True)
class WhoseCaptions:
    """The result of one captioner, or of people."""

    name: str
    """The captioner in a few words, unique in the run; `people`."""
    identity: Mapping[str, str]
    """The captioner; empty for people."""
    labels: Mapping[str, int]
    """Captions by what they say, or why they say nothing."""
    cut: int
    """Captions that reached the most tokens allowed."""
    scores: tuple[Score, ...]
    """See `scores`."""

    def score(self, name: str, group: str = "all") -> Score:
        """One of its scores; KeyError where there is none."""
        for score in self.scores:
            if (score.name, score.group) == (name, group):
                return score
        raise KeyError(name)


@dataclass(frozen=True)
class Captioning:
    """The result of a run."""

    source: Mapping[str, Any]
    """Images: how many, from where, and why others were not taken."""
    results: tuple[WhoseCaptions, ...]
    """Captioners as they were named, then people."""
    ranking: CaptionerRanking
    """The captioners against each other."""
    spent: str
    """What was paid in this run; empty for nothing."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        results = [
            {**vars(one), "scores": [score.to_json() for score in one.scores]}
            for one in self.results
        ]
        plain: dict[str, Any] = without_nan(
            {"source": dict(self.source), "results": results, "ranking": self.ranking}
        )
        return plain


def measure_captions(settings: CaptioningSettings, progress: Progress = silent) -> Captioning:
    """Asks for all captions, reads them and writes the result; run again after any end, it goes on.

    Raises UsageError for bad settings, InUseError where another run writes to the folder, DataError
    for bad files, ModelMissing without spaCy, and RunFailed where a captioner can't answer at all.
    """
    installed_model()  # else captions would be paid for that nothing can read
    images = _images(settings)
    wanted = asks(images.things, settings.wordings)
    plan = settings.cost.plan(settings.out)
    with Lock(settings.out / LOCK, str(settings.out)):
        # All are opened first, so that a wrong spec or key fails before the first call.
        captioners = [as_captioner(one, plan) for one in settings.captioners]
        for captioner in captioners:
            if isinstance(captioner, Answering):
                captioner.check()
        told, others = _people(settings.people, images)
        logs = [CaptionLog(settings.out / CAPTIONS, captioner) for captioner in captioners]
        results: list[WhoseCaptions] = []
        lines: list[str] = []
        by_name: dict[str, list[BothSides]] = {}
        for log, name in zip(logs, _names(logs), strict=True):
            written = ask(wanted, log, progress).captions
            readings = _read(wanted, written)
            lines += _lines(name, wanted, written, readings)
            by_name[name] = pairs = _pairs(wanted, readings)
            compared = against_people(pairs, told) if told else []
            scores = (*captioner_scores(pairs), *compared)
            results.append(
                WhoseCaptions(
                    name=name,
                    identity=log.identity,
                    labels=_counts(readings.values()),
                    cut=sum(caption.cut for caption in written.values() if caption),
                    scores=scores,
                )
            )
        if told:
            labels = _counts(one.reading for one in told)
            scores = tuple(people_scores(told))
            results.append(WhoseCaptions(PEOPLE, {}, labels, 0, scores))
        source = {
            "images": len(images.things),
            "boxes": settings.boxes.name if settings.boxes else "rendered",
            "skipped": images.skipped,
            "captions_of_other_images": others,
            "wordings": {name: WORDINGS[name] for name in settings.wordings},
        }
        spent = str(plan.budget.spending) if plan.budget.spending.calls else ""
        found = Captioning(source, tuple(results), rank_captioners(by_name), spent)
        write_whole(settings.out / READINGS, "".join(lines))
        write_whole(settings.out / PLOT, draw_plot(results))
        write_json(settings.out / RESULT, found.to_json())
    return found


def _images(settings: CaptioningSettings) -> Photographs:
    """Raises UsageError where nobody's captions are asked for, and where boxes are missing."""
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
    """Each captioner in a few words, with its folder where two are described alike.

    Raises UsageError for a captioner that is named twice.
    """
    if len({log.root for log in logs}) < len(logs):
        twice = next(name for name, n in Counter(log.name for log in logs).items() if n > 1)
        raise UsageError(f"captioner {twice} is named twice", code="duplicate-id")
    counts = Counter(log.name for log in logs)
    return [log.name if counts[log.name] == 1 else f"{log.name} ({log.root.name})" for log in logs]


def _people(path: Path | None, images: Photographs) -> tuple[list[Told], int]:
    """What people's captions say, and how many are of other images."""
    if path is None:
        return [], 0
    found = read_people(path, images.ids)
    by_id = {things.id: things for things in images.things}
    shown = [by_id[one.image] for one in found.captions]
    captions = [
        ToRead(Caption(one.text), things.left, things.right)
        for one, things in zip(found.captions, shown, strict=True)
    ]
    readings = read(captions)
    return [Told(*both) for both in zip(shown, readings, strict=True)], found.others


def _read(wanted: Sequence[Ask], written: Mapping[str, Caption | None]) -> dict[str, Reading]:
    """Id of an `Ask` -> reading; the sides are those of the image as shown."""
    captions = []
    for one in wanted:
        left, right = one.things.left, one.things.right
        shown = (right, left) if one.mirrored else (left, right)
        captions.append(ToRead(written[one.id], *shown))
    return dict(zip([one.id for one in wanted], read(captions), strict=True))


def _pairs(wanted: Sequence[Ask], readings: Mapping[str, Reading]) -> list[BothSides]:
    halves = ((one, Ask(one.things, one.wording, True)) for one in wanted if not one.mirrored)
    return [
        BothSides(found.things, found.wording, readings[found.id], readings[mirrored.id])
        for found, mirrored in halves
    ]


def _lines(
    name: str,
    wanted: Sequence[Ask],
    written: Mapping[str, Caption | None],
    readings: Mapping[str, Reading],
) -> Iterator[str]:
    """A line for each caption with its reading, for people to look through."""
    for one in wanted:
        caption, reading = written[one.id], readings[one.id]
        row = {
            "captioner": name,
            "image": one.things.id,
            "left": one.things.left.name,
            "right": one.things.right.name,
            "wording": one.wording,
            "mirrored": one.mirrored,
            "label": reading.label,
            "first": reading.first,
            "caption": caption.text if caption else "",
        }
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _counts(readings: Any) -> dict[str, int]:
    return dict(sorted(Counter(reading.label for reading in readings).items()))
