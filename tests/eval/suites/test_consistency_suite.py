"""The criteria of round trips on answers with a known cause."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import trip_doubles as doubles

from counterprior.eval.core import Case, Outcome, Score, Verdict
from counterprior.eval.roundtrips.routes import route_of
from counterprior.eval.suites import open_suite

Said = Callable[[Case, str, str], str]
"""Case, question and probe -> label."""
SUITE = open_suite("consistency")
OTHER = {"yes": "no", "no": "yes"}


def scored(
    count: int, said: Said, criteria: tuple[str, ...], twice: bool = False
) -> dict[str, Score]:
    """The scores of runs that start from images."""
    probes = ("original", "swap") if twice else ("original",)
    outcomes = [
        Outcome(case, {(q, p): Verdict(said(case, q, p)) for q in case.key for p in probes})
        for row in doubles.rows(count)
        for case in SUITE.cases(row, 1)
        if route_of(case.variant)[0].criterion in criteria and case.variant.startswith("image")
    ]
    return {score.name: score for score in SUITE.score(outcomes)}


def test_always_yes_is_seen_through_by_chance() -> None:
    found = scored(6, lambda *_: "yes", ("cyclic", "edit_first", "edit_last"))
    assert found["cyclic"].value == found["cyclic_chance"].value == 50
    assert found["cyclic_f1"].value == pytest.approx(200 / 3)
    # Right on the same questions in both orders: r = 1 shows nothing, and its chance says so.
    assert found["forward"].value == found["forward_chance"].value == pytest.approx(1)


def test_noise_of_the_judge_is_told_from_the_models() -> None:
    kept, errs = 0.6, 0.12

    def chance(*parts: object) -> float:
        return random.Random("/".join(map(str, parts))).random()

    def said(case: Case, question: str, probe: str) -> str:
        edit = case.variant[-1]
        both = chance(case.row, edit, question) < kept  # both orders keep an edit, or neither
        label = case.key[question] if both else OTHER[case.key[question]]
        wrong = chance(case.id, question, probe) < errs
        return OTHER[label] if wrong else label

    found = scored(70, said, ("edit_first", "edit_last"), twice=True)
    clear = (1 - 2 * errs) ** 2
    a = kept * (1 - errs) + (1 - kept) * errs
    noisy = clear * kept * (1 - kept) / (a * (1 - a))
    assert found["forward"].interval.low <= noisy <= found["forward"].interval.high < 0.9
    assert found["forward_corrected"].interval.low <= 1 <= found["forward_corrected"].interval.high
    assert found["forward_chance"].value == pytest.approx(0, abs=0.05)
    # Of the wrong answers some are the judge's own, and it takes most of those back.
    own = kept * errs
    share = 100 * (own * (1 - errs) + (1 - kept) * (1 - errs) * errs) / (1 - a)
    assert found["edit_first_taken_back"].interval.low <= share
    assert share <= found["edit_first_taken_back"].interval.high
    alike = found["asked_twice"].interval
    assert alike.low <= 100 * (errs**2 + (1 - errs) ** 2) <= alike.high


def test_the_interval_of_a_share_of_wrong_answers_stays_below_100() -> None:
    """The ratio of two means, which it was before, had intervals to 324 %."""

    mended = doubles.rows(1)[0].id

    def judge_label(case: Case, question: str, probe: str) -> str:
        wrong = question in ("q1", "q2") and not (case.row == mended and probe == "swap")
        return OTHER[case.key[question]] if wrong else case.key[question]

    scores = scored(4, judge_label, ("cyclic",), twice=True)
    taken_back = scores["cyclic_taken_back"]
    assert (taken_back.value, taken_back.n) == (25, 8)
    assert 0 <= taken_back.interval.low < 25 < taken_back.interval.high < 100


def test_what_has_no_answer_is_counted_and_not_scored() -> None:
    def said(case: Case, question: str, probe: str) -> str:
        if question == "q1":
            return "unparsed"
        return "refused" if question == "q11" and "first" in case.variant else case.key[question]

    found = scored(4, said, ("cyclic", "edit_first", "edit_last"))
    assert found["cyclic"].n == 36 and found["cyclic"].excluded == {"unparsed": 4}
    assert found["cyclic"].value == found["right"].value == 100
    assert found["forward"].n == 4 * 6 - 4 and found["forward"].excluded == {"refused": 4}
    assert "forward_corrected" not in found and "asked_twice" not in found


def test_questions_about_texts_show_no_image_and_are_asked_twice() -> None:
    (row,) = doubles.rows(1)
    for case in SUITE.cases(row, 2):
        route, number = route_of(case.variant)
        image = doubles.picture(1, {})
        asked = SUITE.questions(row, case, [image, image], "original")
        assert len(asked) == (2 if number else 10) and {q.name for q in asked} == set(case.key)
        assert all(len(q.images) == (route.end == "image") for q in asked)
        again = SUITE.questions(row, case, [image, image], "swap")
        assert [q.answers["1"] for q in again] == [q.answers["2"] for q in asked]
        assert not SUITE.questions(row, case, [image], "mirror")
        assert case.prompt == (row.edits[number - 1] if number else row.caption)


def test_similarities_and_differences_are_scored_apart() -> None:
    """The first five of the ten questions are those in which image and drawing agreed."""

    def said(case: Case, question: str, probe: str) -> str:
        agreed = question in ("q1", "q2", "q3", "q4", "q5")
        return case.key[question] if agreed else OTHER[case.key[question]]

    found = scored(6, said, ("given", "cyclic", "edit_first", "edit_last"))
    values = {name: found[name].value for name in found if name.startswith("cyclic_")}
    assert (values["cyclic_similarities"], values["cyclic_differences"]) == (100, 0)
    assert found["cyclic"].value == 50
    assert found["cyclic_similarities"].n == found["cyclic_differences"].n == found["cyclic"].n / 2
    assert not {"cyclic_similarities", "cyclic_differences"} & scored(2, said, ("given",)).keys()
