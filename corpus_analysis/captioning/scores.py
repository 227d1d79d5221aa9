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
"""Of the wider interval, over entities."""


@dataclass(frozen=True)
class Told:
    """What one caption says of an image as it was found, by a captioner or a person."""

    things: TwoThings
    """The image."""
    reading: Reading
    """What the caption says."""


@dataclass(frozen=True)
class BothSides:
    """What a captioner said of an image and of its mirror image, asked in the same words."""

    things: TwoThings
    """The image."""
    wording: str
    """How it was asked."""
    found: Reading
    """Of the image as found."""
    mirrored: Reading
    """Of its mirror image."""

    @property
    def label(self) -> str:
        """`complete`, or what is wrong with the first reading that doesn't count."""
        bad = [r.label for r in (self.found, self.mirrored) if r.label not in SIDED]
        return bad[0] if bad else COMPLETE

    @property
    def words(self) -> str:
        """Whether a caption says where things are: then its order may follow from that."""
        return "left or right" if self.found.sides or self.mirrored.sides else "neither"


def captioner_scores(pairs: Sequence[BothSides]) -> list[Score]:
    """The scores of one captioner: over all, by wording and by words, and its preferences."""
    groups: dict[str, list[BothSides]] = {ALL: list(pairs)}
    for pair in pairs:
        groups.setdefault(f"wording={pair.wording}", []).append(pair)
    for pair in pairs:
        if pair.label == COMPLETE:
            groups.setdefault(f"words={pair.words}", []).append(pair)
    found = [score for group, part in groups.items() for score in _paired(part, group)]
    found[0] = replace(found[0], wide=_wide(pairs))
    readings = [r for pair in pairs for r in (pair.found, pair.mirrored)]
    things = [pair.things for pair in pairs for _ in range(2)]
    found += [_named(readings, things), _alone(readings, things)]
    return [*found, *_preferences([pair for pair in pairs if pair.label == COMPLETE])]


def people_scores(told: Sequence[Told]) -> list[Score]:
    """The scores of people's captions, of images that nobody mirrored."""
    silent = [one for one in told if not one.reading.sides]
    readings, things = [one.reading for one in told], [one.things for one in told]
    return [
        _found(told, ALL),
        _found(silent, "words=neither"),
        balanced(told),
        _named(readings, things),
        _alone(readings, things),
    ]


def against_people(pairs: Sequence[BothSides], told: Sequence[Told]) -> list[Score]:
    """A captioner beside people, on the images as found.

    `left_first_balanced` as for people; `above_people`: the share of captions that name the left
    one first, less that of people, over images that both have named the two things of. Each image
    weighs the same.
    """
    found = [Told(pair.things, pair.found) for pair in pairs]
    ours, theirs = _by_image(found), _by_image(told)
    both = [image for image in ours if image in theirs]
    if not both:
        return [balanced(found), Score(math.nan, name="above_people", unit="%")]
    columns = np.array([(ours[image], theirs[image]) for image in both], dtype=float)
    return [
        balanced(found),
        *statistics(
            ("above_people",),
            columns,
            np.array(both),
            ends=(0, 1),
            statistic=lambda means: means[..., :1] - means[..., 1:],
            counts=(len(both),),
        ),
    ]


def balanced(told: Sequence[Told]) -> Score:
    """The share of captions that name the left one first, each layout of two entities alike.

    Takes entity preference out without mirror images, as far as a preference doesn't depend on the
    image: over pairs of entities of which either stands left somewhere. n: such pairs.
    """
    sides: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(dict)
    for one in told:
        if one.reading.label in SIDED:
            layouts = sides[one.things.names]
            layouts.setdefault(one.things.left.name, []).append(SIDED[one.reading.label])
    both = {names: list(ways.values()) for names, ways in sides.items() if len(ways) == 2}
    values = [sum(sum(way) / len(way) for way in ways) / 2 for ways in both.values()]
    clusters = [" / ".join(names) for names in both]
    return _mean("left_first_balanced", values, clusters, null=50)


def _paired(pairs: Sequence[BothSides], group: str) -> list[Score]:
    sides = [[SIDED.get(r.label, math.nan) for r in (p.found, p.mirrored)] for p in pairs]
    found, mirrored = np.array(sides, dtype=float).T
    both = (found + mirrored) / 2  # NaN unless both can be said
    same = np.where(np.isnan(both), np.nan, found != mirrored)
    columns = {
        "left_first": both,
        "left_first_found": found,
        "left_first_mirrored": mirrored,
        "same_entity_first": same,
    }
    share = math.nan if np.isnan(both).all() else float(np.nanmean(both))
    # Of two captions that don't go by what things are, the order differs with this chance.
    nulls = {"same_entity_first": 200 * share * (1 - share)}
    whole = count_excluded([pair.label for pair in pairs], (COMPLETE,))
    excluded = {
        "left_first_found": _left_out([pair.found for pair in pairs]),
        "left_first_mirrored": _left_out([pair.mirrored for pair in pairs]),
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
            excluded=excluded.get(score.name, whole),
            null=nulls.get(score.name, 50),
            bounds=limits(columns[score.name], (0, 1)).scaled(100),
        )
        for score in scores
    ]


def _found(told: Sequence[Told], group: str) -> Score:
    readings = [one.reading for one in told]
    return _mean(
        "left_first_found",
        [SIDED.get(reading.label, math.nan) for reading in readings],
        [one.things.id for one in told],
        group=group,
        excluded=_left_out(readings),
        null=50,
    )


def _named(readings: Sequence[Reading], things: Sequence[TwoThings]) -> Score:
    """Share of captions that name both things; what is no caption doesn't count."""
    labels = [reading.label for reading in readings]
    values = [math.nan if label in FAILURES else float(label in SIDED) for label in labels]
    excluded = count_excluded(labels, set(labels) - set(FAILURES))
    return _mean("both_named", values, [t.id for t in things], excluded=excluded)


def _alone(readings: Sequence[Reading], things: Sequence[TwoThings]) -> Score:
    """Share of the captions that name only one thing in which it is the left one."""
    values = [reading.alone for reading in readings]
    return _mean("left_alone", values, [t.id for t in things], null=50, bounded=False)


def _preferences(pairs: Sequence[BothSides]) -> Iterable[Score]:
    """How often each entity is named before the other, and each category before another.

    Over an image and its mirror image, so that position is out. Only what two images show.
    """
    values: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for pair in pairs:
        left, right = pair.things.left, pair.things.right
        for thing, other in ((left, right), (right, left)):
            share = sum(r.first == thing.name for r in (pair.found, pair.mirrored)) / 2
            values[f"entity={thing.name}"].append((share, pair.things.id))
            if thing.category != other.category:
                values[f"category={thing.category}"].append((share, pair.things.id))
    for group, seen in sorted(values.items(), key=lambda item: (-len(item[1]), item[0])):
        shares, images = zip(*seen, strict=True)
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
    """The mean of values in [0, 1], in percent, clustered; NaN is left out.

    bounded: whether what is left out could have been for or against.
    """
    known = np.array(values, dtype=float)
    n = int((~np.isnan(known)).sum())
    if not n:
        return Score(math.nan, excluded=excluded or {}, name=name, unit="%", group=group, null=null)
    (score,) = statistics(
        (name,),
        known[:, None],
        np.array(clusters),
        ends=(0, 1),
        counts=(n,),
        group=group,
        excluded=excluded,
    )
    far = limits(known, (0, 1)).scaled(100) if bounded else NOTHING
    return replace(score, null=null, bounds=far)


def _wide(pairs: Sequence[BothSides]) -> Interval:
    """95 % of `left_first` over both entities at once: for other entities of the same kind."""
    whole = [pair for pair in pairs if pair.label == COMPLETE]
    if not whole:
        return NOTHING
    values = [(SIDED[p.found.label] + SIDED[p.mirrored.label]) / 2 for p in whole]
    members = np.array([pair.things.names for pair in whole])
    (found,) = cluster_interval(values, members, (0, 1), resamples=RESAMPLES)
    return found.interval.scaled(100)


def _by_image(told: Iterable[Told]) -> dict[str, float]:
    """Image -> share of its captions that name the left one first, of those that name both."""
    sides: dict[str, list[float]] = defaultdict(list)
    for one in told:
        if one.reading.label in SIDED:
            sides[one.things.id].append(SIDED[one.reading.label])
    return {image: sum(seen) / len(seen) for image, seen in sides.items()}


def _left_out(readings: Sequence[Reading]) -> dict[str, int]:
    return count_excluded([reading.label for reading in readings], SIDED)
