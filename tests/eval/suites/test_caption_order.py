"""`caption_order`: scores recover known habits, ranks tell them apart, failures are counted."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import raises

from counterprior.errors import DataError
from counterprior.eval.core import Case, Outcome, Score, Verdict, is_mirrored
from counterprior.eval.engine.data import Rows, read_rows
from counterprior.eval.results.leaderboard import Leaderboard, leaderboard
from counterprior.eval.stats.comparison import holm
from counterprior.eval.suites.caption_order import (
    LABELS,
    MIRROR,
    PEOPLE,
    UNPUBLISHED,
    WORDINGS,
    CaptionOrderSuite,
    CaptionReading,
    above,
    mirror_readings,
    shown_sides,
    write_images,
)
from counterprior.schema import CaptionOrder

SUITE = CaptionOrderSuite()
FAILED = ("unparsed", "refused", "error", "missing")


def logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def row(place: int, left: str = "cat", right: str = "dog", **file: Any) -> CaptionOrder:
    return CaptionOrder(
        image=f"image {place:03}",
        place=place,
        left=left,
        right=right,
        left_category="animals",
        right_category="things",
        **file,
        **UNPUBLISHED,
    )


def outcome(case: Case, label: str, says_side: bool = False) -> Outcome:
    """label: of the judge, or a failure of the captioner."""
    if label in ("refused", "error", "missing"):
        return Outcome(case, {}, label)
    words = "yes" if says_side else "no"
    verdicts = {("mention", "original"): Verdict(label), ("words", "original"): Verdict(words)}
    return Outcome(case, verdicts)


def outcomes(
    rows: Sequence[CaptionOrder],
    label: Callable[[Case], str],
    wordings: Sequence[str] = ("describe", "tell"),
    seeds: int = 1,
) -> list[Outcome]:
    return [
        outcome(case, label(case))
        for one in rows
        for case in SUITE.cases(one, seeds)
        if case.variant.removeprefix(MIRROR) in wordings
    ]


def score_of(scores: Sequence[Score], name: str, group: str = "all") -> Score:
    (found,) = [score for score in scores if (score.name, score.group) == (name, group)]
    return found


def test_asks_about_the_text_with_the_sides_that_the_captioner_saw() -> None:
    one = row(0)
    cases = {case.variant: case for case in SUITE.cases(one, 1)}
    assert set(cases) == set(SUITE.variants) and len(cases) == 12
    assert len(set(cases) - set(SUITE.optional)) == 10
    assert cases["sentence"].prompt == "Describe this image in one sentence."
    original, mirrored = cases["tell"], cases["mirror_tell"]
    assert original.prompt == mirrored.prompt == WORDINGS["tell"]
    assert (shown_sides(original), shown_sides(mirrored)) == (("cat", "dog"), ("dog", "cat"))
    mention, words = SUITE.questions(one, mirrored, [], "original")
    assert mention.subjects == ("dog", "cat") and mention.labels == tuple(LABELS)
    assert "A: dog\nB: cat" in mention.prompt and set(mention.answers.values()) == set(LABELS)
    assert words.facts == {"says": "left|right"} and words.labels == ("yes", "no")
    # The control exchanges the names, and each answer's meaning with them.
    swapped, _ = SUITE.questions(one, mirrored, [], "swap")
    assert "A: cat\nB: dog" in swapped.prompt and swapped.subjects == mention.subjects
    digit = next(d for d, label in swapped.answers.items() if label == "left_only")
    assert f"{digit}: it names B and not A" in swapped.prompt
    assert SUITE.questions(one, original, [], "mirror") == []


@pytest.mark.parametrize(("left", "sd"), [(0.0, 3.0), (2.0, 0.0), (-1.0, 1.5)])
def test_entity_preference_changes_no_score(left: float, sd: float) -> None:
    rng = random.Random(f"{left}/{sd}")
    names = ("cat", "dog", "bench", "clock", "vase", "horse", "sheep", "guitar")
    own = {name: rng.gauss(0, sd) for name in names}
    rows, truth = [], []
    for number in range(120):
        # The one that is liked stands left in most images as found, as it might in photographs.
        a, b = sorted(rng.sample(names, 2), key=lambda n: -own[n])
        a, b = (b, a) if rng.random() < 0.2 else (a, b)
        rows.append(row(number, a, b))
        more = own[a] - own[b]
        truth.append((logistic(left + more) + logistic(left - more)) / 2)

    def label(case: Case) -> str:
        a, b = shown_sides(case)
        draw = random.Random(f"{case.id}/{sd}").random()
        return "left_first" if draw < logistic(left + own[a] - own[b]) else "right_first"

    scores = SUITE.score(outcomes(rows, label))
    left_first = score_of(scores, "left_first")
    assert 100 * sum(truth) / len(truth) in left_first.interval
    assert left_first.interval.high - left_first.interval.low < 16
    assert left_first.wide.low < left_first.value < left_first.wide.high
    assert score_of(scores, "left_first", "wording=tell").n == 120
    # Without a preference, the order differs between the two images by chance alone.
    same = score_of(scores, "same_entity_first")
    assert (same.null in same.interval) == (sd == 0)
    if sd == 3:
        assert score_of(scores, "left_first_found").value > 75


@pytest.mark.lane
@pytest.mark.parametrize(("left", "sd"), [(0.0, 0.0), (0.0, 3.0), (1.2, 1.5), (3.0, 1.0)])
def test_interval_covers_known_habits_at_its_level(left: float, sd: float) -> None:
    names = [f"entity {n}" for n in range(30)]
    pairs = random.Random(1)
    rows, held, runs = [row(n, *pairs.sample(names, 2)) for n in range(100)], 0, 100
    for run in range(runs):
        rng = random.Random(f"{run}/{left}/{sd}")
        own = {name: rng.gauss(0, sd) for name in names}

        def chance(a: str, b: str, own: dict[str, float] = own) -> float:
            return logistic(left + own[a] - own[b])

        def label(case: Case, rng: random.Random = rng, chance: Any = chance) -> str:
            return "left_first" if rng.random() < chance(*shown_sides(case)) else "right_first"

        truth = sum(chance(r.left, r.right) + chance(r.right, r.left) for r in rows) / 2
        found = outcomes(rows, label, ("describe", "tell", "shows"))
        held += truth in score_of(SUITE.score(found), "left_first").interval
    assert held >= 90


ANY_LABEL = st.sampled_from([*LABELS, *FAILED])


@settings(max_examples=6)
@given(st.lists(st.tuples(ANY_LABEL, ANY_LABEL), min_size=1, max_size=8))
def test_excluded_readings_are_counted(labels: list[tuple[str, str]]) -> None:
    def label(case: Case) -> str:
        return labels[int(case.groups["place"])][is_mirrored(case.variant)]

    rows = [row(n) for n in range(len(labels))]
    scores = SUITE.score(outcomes(rows, label, ["tell"]))
    for name in ("left_first", "left_first_found", "left_first_mirrored", "same_entity_first"):
        score = score_of(scores, name)
        assert score.n + sum(score.excluded.values()) == len(labels)
        assert math.isnan(score.value) if not score.n else 0 <= score.value <= 100
        assert not score.excluded.keys() & {"left_only", "right_only"}
    # Whoever always names the same entity first has no habit of position.
    sides = {"left_first", "right_first"}
    same = [one for one, both in zip(rows, labels, strict=True) if set(both) == sides]
    if same:
        found = outcomes(same, label, ["tell"])
        assert score_of(SUITE.score(found), "left_first").value == 50


@settings(max_examples=4)
@given(data=st.data())
def test_a_failure_in_place_of_a_label_moves_no_value(data: st.DataObject) -> None:
    rows = [row(n, *(("cat", "dog") if n % 2 else ("dog", "cat"))) for n in range(6)]
    some = st.sampled_from(list(LABELS))
    whole = outcomes(rows, lambda case: data.draw(some))
    at = data.draw(st.sets(st.integers(0, len(whole) - 1), min_size=1))
    failure = st.sampled_from(FAILED)
    broken = [outcome(o.case, data.draw(failure)) if n in at else o for n, o in enumerate(whole)]
    rest = {
        (s.name, s.group): s for s in SUITE.score([o for n, o in enumerate(whole) if n not in at])
    }
    for score in SUITE.score(broken):
        other = rest.get((score.name, score.group))
        if other is None or math.isnan(other.value):
            assert math.isnan(score.value) and score.n == 0
        else:
            assert (score.value, score.n) == (pytest.approx(other.value), other.n)


def test_one_thing_alone_and_preferences_are_by_the_thing_not_its_side() -> None:
    # The cat is always named first, and the dog is never named in mirror images of the last row.
    def label(case: Case) -> str:
        side = "left" if shown_sides(case)[0] == "cat" else "right"
        only = case.groups["place"] == "3" and is_mirrored(case.variant)
        return f"{side}_only" if only else f"{side}_first"

    scores = SUITE.score(outcomes([row(n) for n in range(4)], label, ["tell"]))
    assert score_of(scores, "left_first").value == 50
    assert score_of(scores, "left_first").excluded == {"one_named": 1}
    assert score_of(scores, "same_entity_first").value == 100
    assert score_of(scores, "named_first", "entity=cat").value == 100
    assert score_of(scores, "named_first", "category=things").value == 0
    assert score_of(scores, "left_alone").value == 0  # it stood right in the mirror image
    assert score_of(scores, "both_named").value == 100 * 7 / 8
    assert CaptionReading("left_only", "cat", "dog").first == "cat"
    assert CaptionReading("none_named", "cat", "dog").first == ""


def test_captions_that_say_a_side_are_a_group() -> None:
    found = [
        outcome(
            case, "left_first", says_side=case.groups["place"] == "0" and "tell" in case.variant
        )
        for one in (row(0), row(1))
        for case in SUITE.cases(one, 1)
        if case.variant not in SUITE.optional
    ]
    scores = SUITE.score(found)
    assert score_of(scores, "left_first", "words=left or right").n == 1
    assert score_of(scores, "left_first", "words=neither").n == 9


def people_of(labels: Sequence[tuple[CaptionOrder, str, bool]]) -> list[Outcome]:
    """One caption of each image, with whether it says a side."""
    return [
        outcome(case, label, says_side)
        for one, label, says_side in labels
        for case in SUITE.cases(one, 1)
        if case.variant == PEOPLE
    ]


def test_people_scores_are_the_control() -> None:
    # People name the dog first wherever it stands, and it stands left in 30 of 40 images.
    sides = [("dog", "cat") if n < 30 else ("cat", "dog") for n in range(40)]
    rows = [row(n, *two) for n, two in enumerate(sides)]
    said = [(one, "left_first" if one.left == "dog" else "right_first", False) for one in rows]
    said.append((row(40, "dog", "cat"), "left_only", True))
    people = people_of(said)
    scores = SUITE.score(people)
    assert score_of(scores, "left_first_found").value == 75
    assert score_of(scores, "left_first_found").excluded == {"one_named": 1}
    assert score_of(scores, "left_first_found", "words=neither").excluded == {}
    assert math.isnan(score_of(scores, "left_first").value)  # they saw no mirror images
    one_order = (row(99, "horse", "sheep"), "right_first", False)
    for heard in (said, [*said, one_order]):
        balanced = score_of(SUITE.score(people_of(heard)), "left_first_balanced")
        assert balanced.value == 50
    assert score_of(scores, "left_alone").value == 100
    ours = outcomes([*rows[:20], *rows[30:]], lambda case: "left_first", ["tell"])
    score = above(ours, people, "above_people")
    assert score.n == 30 and score.value == pytest.approx(100 - 100 * 20 / 30)
    assert score.interval.low < score.value < score.interval.high
    assert math.isnan(above(ours, people[40:], "above_people").value)


def test_several_captions_of_an_image_count_together() -> None:
    one = row(0)
    people = [
        outcome(case, "left_first" if case.number else "right_first")
        for case in SUITE.cases(one, 4)
        if case.variant == PEOPLE
    ]
    assert len({o.case.id for o in people}) == 4
    score = score_of(SUITE.score(people), "left_first_found")
    assert (score.value, score.n, score.clusters) == (75, 4, 1)
    assert len(mirror_readings(people)) == 4


# --- captioners against each other --------------------------------------------------------------

IMAGES = 90
LEFT = {"habit": 1.2, "same habit": 1.2, "other habit": -0.4}
"""Captioner -> its logit of naming the left one first."""
OWN = [random.Random(n).gauss(0, 1.5) for n in range(IMAGES)]
"""By how much everybody prefers the left one of each image; it stands right in the mirror image."""


def ranked(said: dict[str, list[Outcome]]) -> Leaderboard:
    judged: list[Any] = [
        SimpleNamespace(
            name=name,
            outcomes=of_captioner,
            whole={s.name: s for s in SUITE.score(of_captioner) if s.group == "all"},
            result=SimpleNamespace(judge="j", card=SimpleNamespace(identity={"kind": "j"})),
        )
        for name, of_captioner in said.items()
    ]
    return leaderboard(SUITE.name, SUITE.headline, judged)


def truth(name: str) -> float:
    shares = [(logistic(LEFT[name] + own) + logistic(LEFT[name] - own)) / 2 for own in OWN]
    return 100 * sum(shares) / IMAGES


def captions_by(name: str) -> list[Outcome]:
    def label(case: Case) -> str:
        rng = random.Random(f"{name}/{case.id}")
        if rng.random() < 0.05:
            return "refused"
        own = OWN[int(case.groups["place"])] * (-1 if is_mirrored(case.variant) else 1)
        return "left_first" if rng.random() < logistic(LEFT[name] + own) else "right_first"

    return outcomes([row(n) for n in range(IMAGES)], label)


def test_distinguishes_different_habits_but_not_equal_ones() -> None:
    said = {name: captions_by(name) for name in LEFT}
    board = ranked(said)
    reversed_board = ranked(dict(reversed(said.items())))
    assert board.comparisons == reversed_board.comparisons
    assert [one.groups for one in board.standings] == ["A", "A", "B"]
    assert board.standings[-1].name == "other habit"
    assert all(a.score.value >= b.score.value for a, b in pairwise(board.standings))
    p_values = [pair.p_value for pair in board.comparisons]
    assert [pair.adjusted for pair in board.comparisons] == holm(p_values)
    for pair in board.comparisons:
        assert truth(pair.first) - truth(pair.second) in pair.interval
        assert 0 <= pair.value < 45 and 80 < pair.clusters <= IMAGES < pair.n < 2 * IMAGES
        assert (pair.adjusted < 0.05) == ("other habit" in (pair.first, pair.second))


def test_compares_only_shared_complete_readings() -> None:
    rows = [row(n) for n in range(8)]

    def first(case: Case) -> str:
        half = is_mirrored(case.variant) and int(case.groups["place"]) >= 4
        return "right_first" if half else "left_first"

    def second(case: Case) -> str:
        return "error" if first(case) == "right_first" else "left_first"

    # On the images that both have told, they say the same.
    a, b = outcomes(rows, first, ["tell"]), outcomes(rows, second, ["tell"])
    (pair,) = ranked({"a": a, "b": b}).comparisons
    assert (pair.first, pair.value, pair.n, pair.clusters) == ("b", 0, 4, 4)
    # Two that share no image are not told apart, and one without a score is not ranked.
    none = outcomes(rows, lambda case: "refused", ["tell"])
    board = ranked({"a": a[:8], "b": a[8:], "none": none})
    assert [(one.name, one.score.value, one.groups) for one in board.standings[:2]] == [
        ("a", 100, "A"),
        ("b", 50, "A"),
    ]
    assert (board.standings[2].name, board.standings[2].rank) == ("none", "")
    (pair,) = board.comparisons
    assert pair.n == 0 and math.isnan(pair.value) and math.isnan(pair.adjusted)
    assert ranked({"a": a}).standings[0].score.value == pytest.approx(75)


# --- rows from a file ---------------------------------------------------------------------------


def test_rows_of_a_file_are_those_that_were_written(tmp_path: Path) -> None:
    image = tmp_path / "photos" / "a.png"
    image.parent.mkdir()
    image.write_bytes(b"bytes")
    shown = row(0, file=str(image), image_sha256=sha256(b"bytes").hexdigest())
    rows = [shown, row(1), row(2, is_readable=False)]
    path = tmp_path / "run" / "images.jsonl"
    path.parent.mkdir()
    write_images(path, rows)
    found = read_rows(str(path), SUITE.name)
    assert [one.model_dump() for one in found.rows] == [one.model_dump() for one in rows]
    assert found.digest == Rows.of(rows).digest
    source = found.rows[0].source_image
    assert source is not None and source.bytes == b"bytes"
    assert [one.lacks_source for one in found.rows] == [False, False, True]
    assert found.rows[1].source_image is None
    # Where the file lies is no part of the rows.
    assert (
        Rows.of([shown.model_copy(update={"file": "elsewhere"}), *rows[1:]]).digest == found.digest
    )
    # A row names no other file than its writer had.
    image.write_bytes(b"secret")
    with raises("changed-file", "images.jsonl:1", "a.png", error=DataError):
        read_rows(str(path), SUITE.name)
    image.unlink()
    with raises("no-such-file", "images.jsonl:1", "a.png", error=DataError):
        read_rows(str(path), SUITE.name)
    path.write_text('{"image": "a", "left": "cat"}\n')
    with raises("bad-format", "images.jsonl:1", "right", error=DataError):
        read_rows(str(path), SUITE.name)


def test_a_name_of_two_images_is_refused(tmp_path: Path) -> None:
    """Captions are paired and averaged by the image's name: those of one would be lost."""
    path = tmp_path / "images.jsonl"
    digests = [sha256(data).hexdigest() for data in (b"a", b"b")]
    rows = [row(0, is_readable=False, image_sha256=digest) for digest in digests]
    write_images(path, rows)
    with raises("duplicate-id", "images.jsonl:2", "image", "line 1", error=DataError):
        read_rows(str(path), SUITE.name)


def test_a_last_line_without_its_end_is_a_row_too(tmp_path: Path) -> None:
    path = tmp_path / "images.jsonl"
    write_images(path, [row(0), row(1)])
    whole = path.read_text()
    path.write_text(whole.rstrip("\n"))
    assert [one.place for one in read_rows(str(path), SUITE.name).rows] == [0, 1]
    path.write_text(whole.rstrip("\n")[:-9])
    with raises("bad-json", "images.jsonl:2", "cut off", error=DataError):
        read_rows(str(path), SUITE.name)
