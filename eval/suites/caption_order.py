"""`caption_order`: does a captioner name the thing on the left first?

Each image shows two things side by side, and is captioned as it is and mirrored, in several
wordings. A captioner that goes by what things are names the same one first in an image and in its
mirror image: the left one in exactly one of the two. So the mean over both, `left_first`, is one
half for any entity preference, and anything else is owed to position.

People's captions are a run too: of images as they are, in one wording, several captions of each.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL.Image import Image

from ...errors import DataError
from ...parsing import RowError, read_rows, write_rows
from ...schema import CaptionOrder, Provenance
from ..core import (
    ALL,
    FAILURES,
    Case,
    Outcome,
    Question,
    Score,
    count_excluded,
    is_mirrored,
)
from ..questions import read_prompt
from ..questions.asking import ask_mention, ask_yes_no
from ..stats.bootstrap import Array
from ..stats.clusters import cluster_interval
from ..stats.intervals import NOTHING, Interval
from .base import Headline, Item, Items, Measure, Suite, each_once
from .scoring import difference, statistics
from .worths import Worth

WORDINGS = {
    "describe": "Describe this image.",
    "caption": "Write a caption for this image.",
    "shows": "What does this image show?",
    "sees": "What do you see in this image?",
    "tell": "Tell somebody who can't see this image what is in it.",
    "sentence": "Describe this image in one sentence.",
}
"""The instruction in several wordings, none of which says what comes first, where things are or how
many there are. The last is that of OTS-Bench's Figure 11."""
USUAL_WORDINGS = tuple(name for name in WORDINGS if name != "sentence")
"""Wordings that are used where none is named."""
MIRROR = "mirror_"
"""Begins the variants in which a captioner is shown the mirror image."""
PEOPLE = "caption"
"""Variant of captions that people wrote, who were asked for one."""

LABELS = {
    "left_first": "it names both, {a} first",
    "right_first": "it names both, {b} first",
    "left_only": "it names {a} and not {b}",
    "right_only": "it names {b} and not {a}",
    "none_named": "it names neither of them",
}
"""Label of a caption -> its meaning; the sides are those of the image as the captioner saw it."""
ORDER = Worth(
    {"left_first": 1.0, "right_first": 0.0}, unscored=("left_only", "right_only", "none_named")
)
SIDES = Worth({"yes": 1.0, "no": 0.0})
MENTION, WORDS = "mention", "words"
"""The questions: what a caption names first, and whether it says "left" or "right"."""
SIDE_WORDS = ("left", "right")
READ_BY_MACHINE = "says"
"""The fact of the second question by which a judge of words knows it: these words, by `|`."""
ONE_NAMED = {"left_only": "one_named", "right_only": "one_named"}
"""Labels that count as one reason to exclude a caption."""
COMPLETE = "complete"
RESAMPLES = 2_000
"""Resamples of the wider interval, over entities."""


@dataclass(frozen=True)
class CaptionReading:
    """What is known of the caption of an image, or of its mirror image."""

    label: str
    """One of `LABELS`, or of `core.FAILURES`."""
    left: str = ""
    """Name of the thing on the left of the image as the captioner saw it."""
    right: str = ""
    """Name of the thing on the right."""
    says_side: bool = False
    """Whether it says "left" or "right"."""

    @classmethod
    def of(cls, outcome: Outcome) -> CaptionReading:
        """The reading of a case's caption."""
        left, right = shown_sides(outcome.case)
        says_side = outcome.label(WORDS) == "yes"
        return cls(outcome.label(MENTION), left, right, says_side)

    @property
    def value(self) -> float:
        """1 if the left one is named first, 0 if the right one; NaN unless both are named."""
        return ORDER.values.get(self.label, math.nan)

    @property
    def reason(self) -> str:
        """Its label, for counts of captions; both labels for one thing named are `one_named`."""
        return ONE_NAMED.get(self.label, self.label)

    @property
    def first(self) -> str:
        """The thing that is named first, or alone; empty if there is none."""
        side, _, how = self.label.partition("_")
        return {"left": self.left, "right": self.right}.get(side, "") if how else ""

    @property
    def left_alone(self) -> float:
        """1 if only the left thing is named, 0 if only the right one; NaN otherwise."""
        return {"left_only": 1.0, "right_only": 0.0}.get(self.label, math.nan)


def shown_sides(case: Case) -> tuple[str, str]:
    """Names of the left and the right thing of the image as the captioner sees it."""
    sides = case.groups["left"], case.groups["right"]
    return sides[::-1] if is_mirrored(case.variant) else sides


@dataclass(frozen=True)
class MirrorReadings:
    """Readings of the captions of an image and its mirror image, in the same wording."""

    case: Case
    """Of the image as it is."""
    original: CaptionReading
    """Of the image as it is."""
    mirrored: CaptionReading
    """Of its mirror image."""

    @property
    def label(self) -> str:
        """`complete`, or the reason why the first reading that doesn't count is left out."""
        excluded = [r.reason for r in (self.original, self.mirrored) if math.isnan(r.value)]
        return excluded[0] if excluded else COMPLETE

    @property
    def value(self) -> float:
        """Share of the two captions that name the left one first; NaN unless both count."""
        return (self.original.value + self.mirrored.value) / 2

    @property
    def words(self) -> str:
        """Group by whether a caption says "left" or "right", which may decide its order."""
        says_side = self.original.says_side or self.mirrored.says_side
        return "left or right" if says_side else "neither"


def mirror_readings(outcomes: Iterable[Outcome]) -> list[MirrorReadings]:
    """Pairs the captions of images and mirror images, by image, wording and number; the label of a
    caption that nobody was asked for is `missing`."""
    originals: dict[PairKey, Outcome] = {}
    mirrored: dict[PairKey, Outcome] = {}
    for outcome in sorted(outcomes, key=lambda outcome: _place(outcome.case)):
        side = mirrored if is_mirrored(outcome.case.variant) else originals
        side[_pair_key(outcome.case)] = outcome
    return [
        MirrorReadings(
            (originals.get(key) or mirrored[key]).case,
            *(
                CaptionReading.of(side[key]) if key in side else CaptionReading("missing")
                for side in (originals, mirrored)
            ),
        )
        for key in {**originals, **mirrored}
    ]


PairKey = tuple[str, str, int]
"""Image, wording, and number of the caption."""


def _pair_key(case: Case) -> PairKey:
    return image_of(case), wording_of(case), case.number


def _place(case: Case) -> tuple[int, int, int]:
    """Sorts cases as their images come in their file."""
    return int(case.groups["place"]), list(WORDINGS).index(wording_of(case)), case.number


def image_of(case: Case) -> str:
    """Name of the image of a case."""
    return case.clusters[0]


def wording_of(case: Case) -> str:
    """Wording of a case's instruction, one of `WORDINGS`."""
    return case.variant.removeprefix(MIRROR)


def _pair_items(outcomes: Sequence[Outcome]) -> Items:
    return {
        _pair_key(pair.case): Item((pair.value,), image_of(pair.case))
        for pair in mirror_readings(outcomes)
        if pair.label == COMPLETE
    }


LEFT_FIRST = (
    "Share of captions that name the left one first, averaged over an image and its mirror image."
)


class CaptionOrderSuite(Suite[CaptionOrder]):
    """Share of captions that name the thing on the left first."""

    name = "caption_order"
    population = "images"
    variants = (*WORDINGS, *(f"{MIRROR}{wording}" for wording in WORDINGS))
    optional = ("sentence", f"{MIRROR}sentence")
    worths = {MENTION: ORDER, WORDS: SIDES}
    scores_by_group = True
    prompts = ("mention", "read_standard")
    headline = Headline(
        score="left_first",
        better="higher",
        meaning=LEFT_FIRST,
        items=_pair_items,
        broken_down=("left_first",),
    )
    meanings = {
        "left_first": f"{LEFT_FIRST} 50 for any preference for one of the two things.",
        "left_first_found": "The same for the images as they are.",
        "left_first_mirrored": "The same for their mirror images.",
        "same_entity_first": "Share of images whose mirror image has the same thing first.",
        "named_first": "Share of captions that name an entity, or a category, before the other; "
        "position is averaged out.",
        "both_named": "Share of captions that name both things.",
        "left_alone": "Share of captions naming only one thing in which it is the left one.",
        "left_first_balanced": "Share of captions of images as they are that name the left one "
        "first, for pairs of things that stand in both orders, both weighted equally.",
    }

    def cases(self, row: CaptionOrder, seeds: int) -> Iterator[Case]:
        prompts = {name: WORDINGS[name.removeprefix(MIRROR)] for name in self.variants}
        clusters = (row.image, *sorted((row.left, row.right)))
        groups = {
            "left": row.left,
            "right": row.right,
            "left_category": row.left_category,
            "right_category": row.right_category,
            "place": str(row.place),
        }
        for variant, prompt in prompts.items():
            for number in range(seeds):  # captioners are asked without a seed
                yield Case(row.id, variant, number, number, prompt, clusters, groups)

    def questions(
        self, row: CaptionOrder, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        if is_mirrored(probe):
            return []
        read = read_prompt("read_standard")
        says = 'Does the description use the word "left" or the word "right" for a side?'
        about_words = ask_yes_no(case, WORDS, read, says, None, probe)
        return [
            ask_mention(case, shown_sides(case), LABELS, probe),
            replace(about_words, facts={READ_BY_MACHINE: "|".join(SIDE_WORDS)}),
        ]

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        pairs = mirror_readings(outcomes)
        if any(is_mirrored(outcome.case.variant) for outcome in outcomes):
            return _scores_of_pairs(pairs)
        return _scores_of_originals(pairs)

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        originals = [o for o in outcomes if not is_mirrored(o.case.variant)]
        yield self.measure("left_first_found", originals, MENTION)

    @classmethod
    def read_file(cls, text: str) -> list[CaptionOrder] | None:
        """The images of a file of rows, with their files relative to it."""
        path = Path(text)
        return read_images(path) if path.is_file() else None


def read_images(path: Path) -> list[CaptionOrder]:
    """Reads rows from a file that `write_images` wrote.

    Raises DataError for any other, and for an image that isn't there or has other bytes by now:
    what a row names is copied into runs, so it must be what its writer had.
    """
    return each_once(_images_of(path), path)


def _images_of(path: Path) -> Iterator[tuple[int, CaptionOrder]]:
    """Line number and row. Raises RowError for a name of two images, whose captions would count as
    those of one."""
    named = dict[str, tuple[int, str]]()
    for number, record in read_rows(path):
        place = f"{path}:{number}"
        try:
            row = CaptionOrder.model_validate({**record, **UNPUBLISHED})
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise RowError(f"{place}: {reason}", code="bad-format") from None
        line, row_id = named.setdefault(row.image, (number, row.id))
        if row_id != row.id:
            raise RowError(
                f"{place}: image: {row.image!r} is another image of line {line}: rename one of "
                f"them",
                code="duplicate-id",
            )
        file = str(path.parent / row.file) if row.file else ""
        if file and row.is_readable:
            _check_file(Path(file), row.image_sha256, place)
        yield number, row.model_copy(update={"file": file})


UNPUBLISHED: Mapping[str, Any] = {
    "review": [],
    "provenance": Provenance(bank="", entry="", author="user", calls=[]),
}
"""Columns of rows that are in no release."""


def _check_file(file: Path, digest: str, place: str) -> None:
    try:
        data = file.read_bytes()
    except OSError as error:
        problem = f"{place}: {file} can't be read: {error.strerror}"
        raise DataError(problem, code="no-such-file") from None
    if hashlib.sha256(data).hexdigest() != digest:
        problem = f"{place}: {file} is not the image of this row any more"
        remedy = "run the command that wrote the rows again"
        raise DataError(problem, remedy, code="changed-file")


def write_images(path: Path, rows: Iterable[CaptionOrder]) -> None:
    """Writes rows for `read_images`, with their files relative to `path`."""
    records = []
    for row in rows:
        record = row.model_dump(exclude={*UNPUBLISHED, *_DERIVED}, exclude_defaults=True)
        if row.file:
            record["file"] = os.path.relpath(row.file, path.parent)
        records.append(record)
    write_rows(path, records)


_DERIVED = ("id", "suite", "status", "seeds", "license", "canary")
"""Columns that rows have by default, or derive from others."""


def _scores_of_pairs(pairs: Sequence[MirrorReadings]) -> list[Score]:
    """Computes the scores of a captioner: all, by wording and by words, and preferences."""
    groups: dict[str, list[MirrorReadings]] = {ALL: list(pairs)}
    for pair in pairs:
        groups.setdefault(f"wording={wording_of(pair.case)}", []).append(pair)
    for pair in pairs:
        if pair.label == COMPLETE:
            groups.setdefault(f"words={pair.words}", []).append(pair)
    scores = [score for group, members in groups.items() for score in _paired(members, group)]
    scores[0] = replace(scores[0], wide=_wide(pairs))
    captions = [
        ImageCaption(pair.case, r) for pair in pairs for r in (pair.original, pair.mirrored)
    ]
    originals = [ImageCaption(pair.case, pair.original) for pair in pairs]
    scores += [_both_named(captions), _left_alone(captions), _balanced(originals)]
    return [*scores, *_preferences([pair for pair in pairs if pair.label == COMPLETE])]


def _scores_of_originals(pairs: Sequence[MirrorReadings]) -> list[Score]:
    """Computes the scores of people's captions, who were shown no mirror images."""
    captions = [ImageCaption(pair.case, pair.original) for pair in pairs]
    without_sides = [caption for caption in captions if not caption.reading.says_side]
    return [
        Score(math.nan, name="left_first", unit="%", null=50),
        _original_score(captions, ALL),
        _original_score(without_sides, "words=neither"),
        _balanced(captions),
        _both_named(captions),
        _left_alone(captions),
    ]


class ImageCaption(NamedTuple):
    """A caption with the case whose image it is of."""

    case: Case
    reading: CaptionReading


def above(outcomes: Iterable[Outcome], others: Iterable[Outcome], name: str) -> Score:
    """The share of captions of images as they are that name the left one first, less that of
    others, over images of which both have named the two things. Each image weighs the same."""
    ours, theirs = _by_image(outcomes), _by_image(others)
    shared = [image for image in ours if image in theirs]
    if not shared:
        return Score(math.nan, name=name, unit="%")
    columns = np.array([(ours[image], theirs[image]) for image in shared], dtype=float)
    (score,) = statistics(
        (name,),
        columns,
        np.array(shared),
        ends=(0, 1),
        statistic=difference,
        counts=(len(shared),),
    )
    return score


def _by_image(outcomes: Iterable[Outcome]) -> dict[str, float]:
    """Maps images to the share of captions naming both that name the left one first."""
    values: dict[str, list[float]] = defaultdict(list)
    for outcome in sorted(outcomes, key=lambda outcome: _place(outcome.case)):
        value = CaptionReading.of(outcome).value
        if not is_mirrored(outcome.case.variant) and not math.isnan(value):
            values[image_of(outcome.case)].append(value)
    return {image: sum(of_image) / len(of_image) for image, of_image in values.items()}


def _balanced(captions: Sequence[ImageCaption]) -> Score:
    """Computes the share of captions that name the left one first, layouts weighted equally.

    Takes entity preference out without mirror images, as far as a preference doesn't depend on the
    image: over pairs of entities of which either stands left somewhere. n: such pairs.
    """
    sides: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(dict)
    for case, reading in captions:
        if not math.isnan(reading.value):
            layouts = sides[case.clusters[1:]]
            layouts.setdefault(case.groups["left"], []).append(reading.value)
    in_both_layouts = {
        entities: list(layouts.values()) for entities, layouts in sides.items() if len(layouts) == 2
    }
    values = [
        sum(sum(layout) / len(layout) for layout in layouts) / 2
        for layouts in in_both_layouts.values()
    ]
    clusters = [" / ".join(entities) for entities in in_both_layouts]
    return _mean("left_first_balanced", values, clusters, null=50)


def _paired(pairs: Sequence[MirrorReadings], group: str) -> list[Score]:
    sides = [[reading.value for reading in (p.original, p.mirrored)] for p in pairs]
    original, mirrored = np.array(sides, dtype=float).T
    mean_of_both = (original + mirrored) / 2  # NaN unless both can be said
    same = np.where(np.isnan(mean_of_both), np.nan, original != mirrored)
    columns = {
        "left_first": mean_of_both,
        "left_first_found": original,
        "left_first_mirrored": mirrored,
        "same_entity_first": same,
    }
    share = math.nan if np.isnan(mean_of_both).all() else float(np.nanmean(mean_of_both))
    # Of two captions that don't go by what things are, the order differs with this chance.
    nulls = {"same_entity_first": 200 * share * (1 - share)}
    excluded_pairs = count_excluded([pair.label for pair in pairs], (COMPLETE,))
    excluded = {
        "left_first_found": _excluded([pair.original for pair in pairs]),
        "left_first_mirrored": _excluded([pair.mirrored for pair in pairs]),
    }
    table = np.stack(list(columns.values()), axis=1)
    scores = statistics(
        tuple(columns),
        table,
        np.array([image_of(pair.case) for pair in pairs]),
        ends=(0, 1),
        counts=[int((~np.isnan(values)).sum()) for values in columns.values()],
        group=group,
        missing=np.isnan(table),
    )
    return [
        replace(
            score,
            excluded=excluded.get(score.name, excluded_pairs),
            null=nulls.get(score.name, 50),
        )
        for score in scores
    ]


def _original_score(captions: Sequence[ImageCaption], group: str) -> Score:
    readings = [caption.reading for caption in captions]
    return _mean(
        "left_first_found",
        [reading.value for reading in readings],
        [image_of(caption.case) for caption in captions],
        group=group,
        excluded=_excluded(readings),
        null=50,
    )


def _both_named(captions: Sequence[ImageCaption]) -> Score:
    """Share of captions that name both things; failures don't count."""
    labels = [caption.reading.label for caption in captions]
    values = [math.nan if label in FAILURES else float(label in ORDER.values) for label in labels]
    excluded = count_excluded(labels, set(labels) - set(FAILURES))
    images = [image_of(caption.case) for caption in captions]
    return _mean("both_named", values, images, excluded=excluded)


def _left_alone(captions: Sequence[ImageCaption]) -> Score:
    """Share of the captions that name only one thing in which it is the left one."""
    values = [caption.reading.left_alone for caption in captions]
    images = [image_of(caption.case) for caption in captions]
    return _mean("left_alone", values, images, null=50, bounded=False)


def _preferences(pairs: Sequence[MirrorReadings]) -> Iterator[Score]:
    """Yields how often each entity is named before the other, and each category before another.

    Image and mirror image are averaged, which removes position. Groups need two images.
    """
    values: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for pair in pairs:
        about = pair.case.groups
        differ = about["left_category"] != about["right_category"]
        for side in ("left", "right"):
            share = sum(r.first == about[side] for r in (pair.original, pair.mirrored)) / 2
            values[f"entity={about[side]}"].append((share, image_of(pair.case)))
            if differ:
                category = f"category={about[f'{side}_category']}"
                values[category].append((share, image_of(pair.case)))
    for group, shares_of_images in sorted(
        values.items(), key=lambda item: (-len(item[1]), item[0])
    ):
        shares, images = zip(*shares_of_images, strict=True)
        if len(set(images)) > 1:
            yield _mean("named_first", shares, images, group=group, null=50)


def _mean(
    name: str,
    values: Sequence[float] | Array,
    clusters: Sequence[str],
    *,
    group: str = ALL,
    excluded: Mapping[str, int] | None = None,
    null: float = math.nan,
    bounded: bool = True,
) -> Score:
    """Computes the mean of values in [0, 1], in percent, clustered; NaN is excluded.

    bounded: whether excluded values could have been 0 or 1.
    """
    numbers = np.array(values, dtype=float)
    n = int((~np.isnan(numbers)).sum())
    if not n:
        return Score(math.nan, excluded=excluded or {}, name=name, unit="%", group=group, null=null)
    (score,) = statistics(
        (name,),
        numbers[:, None],
        np.array(clusters),
        ends=(0, 1),
        counts=(n,),
        group=group,
        excluded=excluded,
        missing=np.isnan(numbers)[:, None] if bounded else None,
    )
    return replace(score, null=null)


def _wide(pairs: Sequence[MirrorReadings]) -> Interval:
    """95 % interval of `left_first` over both entities: for other entities of the same kind."""
    complete = [pair for pair in pairs if pair.label == COMPLETE]
    if not complete:
        return NOTHING
    values = [pair.value for pair in complete]
    members = np.array([pair.case.clusters[1:] for pair in complete])
    (estimate,) = cluster_interval(values, members, (0, 1), resamples=RESAMPLES)
    return estimate.interval.scaled(100)


def _excluded(readings: Sequence[CaptionReading]) -> dict[str, int]:
    return count_excluded([reading.reason for reading in readings], ORDER.values)
