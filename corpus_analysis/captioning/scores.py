"""From readings to scores: is the left one named first, once entity preference is taken out?

A captioner that goes by what things are names the same one first in an image and in its mirror
image: the left one in exactly one of the two. So the mean over both, `left_first`, is one half for
any entity preference, and anything else is owed to position.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...eval.core import ALL, FAILURES, Score, count_excluded
from ...eval.stats.bootstrap import Array
from ...eval.stats.clusters import cluster_interval
from ...eval.stats.intervals import NOTHING, Interval
from ...eval.suites.scoring import limits, statistics
from .reading import SIDED, Reading
from .things import TwoThings

COMPLETE = "complete"
RESAMPLES = 2_000
"""Resamples of the wider interval, over entities."""


@dataclass(frozen=True)
class ImageReading:
    """Reading of one caption of an original image, by a captioner or a person."""

    things: TwoThings
    """The image."""
    reading: Reading
    """Reading of the caption."""


@dataclass(frozen=True)
class MirrorReadings:
    """Readings of a captioner's captions of an image and its mirror image, in the same wording."""

    things: TwoThings
    """The image."""
    wording: str
    """Wording of the request."""
    original: Reading
    """Reading of the original image's caption."""
    mirrored: Reading
    """Reading of the mirror image's caption."""

    @property
    def label(self) -> str:
        """`complete`, or the label of the first reading that doesn't count."""
        bad = [r.label for r in (self.original, self.mirrored) if r.label not in SIDED]
        return bad[0] if bad else COMPLETE

    @property
    def words(self) -> str:
        """Group by whether a caption says "left" or "right", which may decide its order."""
        return "left or right" if self.original.sides or self.mirrored.sides else "neither"


def captioner_scores(pairs: Sequence[MirrorReadings]) -> list[Score]:
    """Computes the scores of one captioner: all, by wording and by words, and preferences."""
    groups: dict[str, list[MirrorReadings]] = {ALL: list(pairs)}
    for pair in pairs:
        groups.setdefault(f"wording={pair.wording}", []).append(pair)
    for pair in pairs:
        if pair.label == COMPLETE:
            groups.setdefault(f"words={pair.words}", []).append(pair)
    scores = [score for group, members in groups.items() for score in _paired(members, group)]
    scores[0] = replace(scores[0], wide=_wide(pairs))
    readings = [r for pair in pairs for r in (pair.original, pair.mirrored)]
    things = [pair.things for pair in pairs for _ in range(2)]
    scores += [_named(readings, things), _alone(readings, things)]
    return [*scores, *_preferences([pair for pair in pairs if pair.label == COMPLETE])]


def people_scores(captions: Sequence[ImageReading]) -> list[Score]:
    """Computes the scores of people's captions, which have no mirror images."""
    without_sides = [caption for caption in captions if not caption.reading.sides]
    readings, things = (
        [caption.reading for caption in captions],
        [caption.things for caption in captions],
    )
    return [
        _original_score(captions, ALL),
        _original_score(without_sides, "words=neither"),
        balanced(captions),
        _named(readings, things),
        _alone(readings, things),
    ]


def against_people(pairs: Sequence[MirrorReadings], people: Sequence[ImageReading]) -> list[Score]:
    """Compares a captioner with people, on the original images.

    `left_first_balanced` as for people; `above_people`: the share of captions that name the left
    one first, less that of people, over images that both have named the two things of. Each image
    weighs the same.
    """
    captions = [ImageReading(pair.things, pair.original) for pair in pairs]
    ours, theirs = _by_image(captions), _by_image(people)
    shared = [image for image in ours if image in theirs]
    if not shared:
        return [balanced(captions), Score(math.nan, name="above_people", unit="%")]
    columns = np.array([(ours[image], theirs[image]) for image in shared], dtype=float)
    return [
        balanced(captions),
        *statistics(
            ("above_people",),
            columns,
            np.array(shared),
            ends=(0, 1),
            statistic=lambda means: means[..., :1] - means[..., 1:],
            counts=(len(shared),),
        ),
    ]


def balanced(captions: Sequence[ImageReading]) -> Score:
    """Computes the share of captions that name the left one first, layouts weighted equally.

    Takes entity preference out without mirror images, as far as a preference doesn't depend on the
    image: over pairs of entities of which either stands left somewhere. n: such pairs.
    """
    sides: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(dict)
    for caption in captions:
        if caption.reading.label in SIDED:
            layouts = sides[caption.things.names]
            layouts.setdefault(caption.things.left.name, []).append(SIDED[caption.reading.label])
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
    sides = [[SIDED.get(r.label, math.nan) for r in (p.original, p.mirrored)] for p in pairs]
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
    # Together, so that the images are resampled once.
    scores = statistics(
        tuple(columns),
        np.stack(list(columns.values()), axis=1),
        np.array([pair.things.id for pair in pairs]),
        ends=(0, 1),
        counts=[int((~np.isnan(values)).sum()) for values in columns.values()],
        group=group,
    )
    return [
        replace(
            score,
            excluded=excluded.get(score.name, excluded_pairs),
            null=nulls.get(score.name, 50),
            bounds=limits(columns[score.name], (0, 1)).scaled(100),
        )
        for score in scores
    ]


def _original_score(captions: Sequence[ImageReading], group: str) -> Score:
    readings = [caption.reading for caption in captions]
    return _mean(
        "left_first_found",
        [SIDED.get(reading.label, math.nan) for reading in readings],
        [caption.things.id for caption in captions],
        group=group,
        excluded=_excluded(readings),
        null=50,
    )


def _named(readings: Sequence[Reading], things: Sequence[TwoThings]) -> Score:
    """Share of captions that name both things; failures don't count."""
    labels = [reading.label for reading in readings]
    values = [math.nan if label in FAILURES else float(label in SIDED) for label in labels]
    excluded = count_excluded(labels, set(labels) - set(FAILURES))
    return _mean("both_named", values, [t.id for t in things], excluded=excluded)


def _alone(readings: Sequence[Reading], things: Sequence[TwoThings]) -> Score:
    """Share of the captions that name only one thing in which it is the left one."""
    values = [reading.alone for reading in readings]
    return _mean("left_alone", values, [t.id for t in things], null=50, bounded=False)


def _preferences(pairs: Sequence[MirrorReadings]) -> Iterable[Score]:
    """Yields how often each entity is named before the other, and each category before another.

    Image and mirror image are averaged, which removes position. Groups need two images.
    """
    values: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for pair in pairs:
        left, right = pair.things.left, pair.things.right
        for thing, other in ((left, right), (right, left)):
            share = sum(r.first == thing.name for r in (pair.original, pair.mirrored)) / 2
            values[f"entity={thing.name}"].append((share, pair.things.id))
            if thing.category != other.category:
                values[f"category={thing.category}"].append((share, pair.things.id))
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
    )
    far = limits(numbers, (0, 1)).scaled(100) if bounded else NOTHING
    return replace(score, null=null, bounds=far)


def _wide(pairs: Sequence[MirrorReadings]) -> Interval:
    """95 % interval of `left_first` over both entities: for other entities of the same kind."""
    complete = [pair for pair in pairs if pair.label == COMPLETE]
    if not complete:
        return NOTHING
    values = [(SIDED[p.original.label] + SIDED[p.mirrored.label]) / 2 for p in complete]
    members = np.array([pair.things.names for pair in complete])
    (estimate,) = cluster_interval(values, members, (0, 1), resamples=RESAMPLES)
    return estimate.interval.scaled(100)


def _by_image(captions: Iterable[ImageReading]) -> dict[str, float]:
    """Maps images to the share of captions naming both that name the left one first."""
    sides: dict[str, list[float]] = defaultdict(list)
    for caption in captions:
        if caption.reading.label in SIDED:
            sides[caption.things.id].append(SIDED[caption.reading.label])
    return {image: sum(values) / len(values) for image, values in sides.items()}


def _excluded(readings: Sequence[Reading]) -> dict[str, int]:
    return count_excluded([reading.label for reading in readings], SIDED)
