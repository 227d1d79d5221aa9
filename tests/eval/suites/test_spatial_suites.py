"""Suites of stated relations and of order beyond two: their scores by hand, and as identities."""

import json
import math
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from refusals import raises

from counterprior.errors import DataError, UsageError
from counterprior.eval.core import Case, Outcome, Verdict
from counterprior.eval.engine.data import read_rows
from counterprior.eval.questions.asking import Stated, ask_stated
from counterprior.eval.suites import open_suite
from counterprior.eval.suites.beyond import monotone, order_of, tau
from counterprior.eval.suites.relations import PromptFile, implied_relations

LABELS = ("holds", "opposite", "invalid")


def spatial(row: str, number: int, label: str, value: float | None = None, pair: str = "p") -> Any:
    case = Case(row, row, number, number, "", (f"cat/{row}", pair), {"relation": "left_of"})
    return Outcome(case, {("order", "original"): Verdict(label, number=value)})


def scores(name: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {s.name: s for s in open_suite(name).score(outcomes) if s.group == "all"}


@pytest.mark.slow
@given(st.lists(st.lists(st.sampled_from(LABELS), min_size=4, max_size=4), min_size=2, max_size=9))
def test_the_scores_are_visors_with_its_identities(prompts: list[list[str]]) -> None:
    outcomes = [
        spatial(f"r{n}", k, label)
        for n, images in enumerate(prompts)
        for k, label in enumerate(images)
    ]
    found = scores("spatial_visor", outcomes)
    flat = [label for images in prompts for label in images]
    right, both = flat.count("holds"), flat.count("holds") + flat.count("opposite")
    assert found["accuracy_unconditional"].value == pytest.approx(100 * right / len(flat))
    assert found["decided"].value == pytest.approx(100 * both / len(flat))
    if both:
        assert found["accuracy"].value == pytest.approx(100 * right / both)
        product = found["decided"].value * found["accuracy"].value / 100
        assert product == pytest.approx(found["accuracy_unconditional"].value)
    four = [found[f"visor_{n}"].value for n in (1, 2, 3, 4)]
    assert sum(four) / 4 == pytest.approx(found["accuracy_unconditional"].value)
    assert four == sorted(four, reverse=True) and found["visor_1"].n == len(prompts)


def test_a_failure_leaves_its_prompt_out_and_three_images_are_no_four() -> None:
    whole = [spatial("a", k, "holds") for k in range(4)]
    torn = [spatial("b", k, "holds" if k else "error") for k in range(4)]
    found = scores("spatial_visor", [*whole, *torn])
    assert found["visor_4"].n == 1 and found["visor_4"].excluded == {"prompt_incomplete": 1}
    assert found["accuracy"].n == 7 and found["accuracy"].excluded == {"error": 1}
    assert "visor_1" not in scores("spatial_visor", whole[:3])


def test_best_of_all_of_and_counterfactual_pairs() -> None:
    table = {  # prompt, pair -> labels of its two images
        ("a", "1"): ("holds", "opposite"),  # best PASS, all FAIL
        ("b", "1"): ("holds", "holds"),  # best PASS, all PASS: both_pass
        ("c", "2"): ("opposite", "opposite"),  # FAIL
        ("d", "2"): ("holds", "invalid"),  # best PASS, all UNDECIDABLE: one_sided
        ("e", "3"): ("invalid", "opposite"),  # UNDECIDABLE
        ("f", "3"): ("holds", "holds"),
        ("g", "4"): ("opposite", "opposite"),  # without its counterpart
        ("h", "5"): ("error", "holds"),  # a pair with a failure in both of its prompts
        ("i", "5"): ("holds", "refused"),
    }
    outcomes = [
        spatial(row, k, label, pair=pair)
        for (row, pair), labels in table.items()
        for k, label in enumerate(labels)
    ]
    found = scores("spatial_uc", outcomes)
    assert found["best_of_k"].value == pytest.approx(100 * 4 / 7) and found["best_of_k"].n == 7
    assert found["all_of_k"].value == pytest.approx(100 * 2 / 7)
    sides = {n: found[f"pairs_{n}"].value for n in ("both_pass", "both_fail", "one_sided")}
    third = pytest.approx(100 / 3)
    assert sides == {"both_pass": third, "both_fail": 0, "one_sided": third}
    assert found["pairs_undecidable"].value == third
    assert found["pairs_both_pass"].excluded == {"pair_incomplete": 2}


def test_what_was_measured_is_averaged_with_its_zeros_and_without_failures() -> None:
    outcomes = [
        spatial("a", 0, "holds", 0.8),
        spatial("b", 0, "invalid", 0.0),
        spatial("c", 0, "error"),
        spatial("d", 0, "opposite", 0.1),
    ]
    found = scores("spatial_visor", outcomes)
    assert found["measure"].value == pytest.approx(30) and found["measure"].n == 3
    assert found["measure"].excluded == {"error": 1}
    assert "measure" not in scores("spatial_visor", [spatial("a", 0, "holds")])


def multi(row: str, *said: tuple[str, float | None]) -> Outcome:
    names = [f"relation_{n}" for n in range(1, len(said) + 1)]
    case = Case(row, "plain", 0, 0, "", (row,), {"objects": "3"}, dict.fromkeys(names, 1.0))
    verdicts = {
        (name, "original"): Verdict(label, number=number)
        for name, (label, number) in zip(names, said, strict=True)
    }
    return Outcome(case, verdicts)


def test_relations_of_an_image_count_together() -> None:
    outcomes = [
        multi("a", ("holds", 1.0), ("holds", 0.6)),
        multi("b", ("holds", 0.8), ("invalid", 0.0), ("opposite", 0.1)),
        multi("c", ("holds", 0.9), ("error", None)),
    ]
    found = scores("spatial_multi", outcomes)
    assert found["relations_right"].value == pytest.approx(100 * (1 + 1 / 3) / 2)
    assert found["relations_right"].excluded == {"error": 1}
    assert found["all_right"].value == 50 and found["decided"].value == 50
    assert found["measure"].value == pytest.approx(100 * (0.8 + 0.3) / 2)
    assert found["measure_least"].value == pytest.approx(100 * 0.6 / 2)
    assert open_suite("spatial_multi").correctness(outcomes[1]) == pytest.approx(1 / 3)
    assert math.isnan(open_suite("spatial_multi").correctness(outcomes[2]))


PAIRS = ("pair_12", "pair_13", "pair_23")


def beyond(
    row: str, labels: Sequence[str], setting: str = "three_homogenization", variant: str = "plain"
) -> Outcome:
    names = PAIRS[: len(labels)]
    case = Case(row, variant, 0, 0, "", (row,), {"setting": setting}, dict.fromkeys(names, 1.0))
    said = zip(names, labels, strict=True)
    return Outcome(case, {(name, "original"): Verdict(label) for name, label in said})


def test_tau_of_every_order_of_three_is_kendalls() -> None:
    from scipy.stats import kendalltau

    orders = 0
    for order in permutations(range(3)):  # order[i]: place of the i-th mentioned
        labels = [
            "in_order" if order[a] < order[b] else "against" for a, b in ((0, 1), (0, 2), (1, 2))
        ]
        outcome = beyond("a", labels)
        assert tau(outcome) == pytest.approx(kendalltau(range(3), order).statistic)
        assert monotone(outcome) == (order == (0, 1, 2))
        orders += 1
    circle = beyond("a", ("in_order", "against", "in_order"))
    assert orders == 6 and order_of(circle) == "invalid" and math.isnan(tau(circle))
    failed = beyond("a", ("invalid", "error", "in_order"))
    assert order_of(failed) == "error"


def test_order_beyond_by_hand() -> None:
    right, back = ["in_order"] * 3, ["against"] * 3
    outcomes = [
        *(beyond(f"t{n}", right) for n in range(6)),
        beyond("t6", back),
        beyond("t7", ("in_order", "in_order", "against")),
        beyond("t8", ("in_order", "invalid", "in_order")),
        beyond("t9", ("error", "in_order", "in_order")),
        *(beyond(f"v{n}", right[:1], "vertical") for n in range(3)),
        beyond("v3", back[:1], "vertical"),
        beyond("v0", back[:1], "vertical", "swapped"),
        *(beyond(f"c{n}", right, "three_correctness") for n in range(3)),
        beyond("c3", back, "three_correctness"),
        beyond("c4", back, "three_correctness", "swapped"),
        beyond("c5", right, "three_correctness", "swapped"),
    ]
    suite = open_suite("order_beyond")
    found = {(s.name, s.group): s for s in suite.score(outcomes)}
    three = "setting=three_homogenization"
    index = found["order_index", three]
    assert index.value == pytest.approx(100 * (6 - 1 + 1 / 3) / 8) and index.n == 8
    assert index.excluded == {"error": 1, "invalid": 1}
    assert found["monotone", three].value == pytest.approx(100 * 6 / 8)
    assert found["monotone_of_all", three].value == pytest.approx(100 * 6 / 9)
    assert found["valid", three].value == pytest.approx(100 * 8 / 9)
    assert found["order_index", "setting=vertical"].value == pytest.approx(20)
    assert found["order_index", "all"].n == 13  # neutral settings alone
    assert found["accuracy_aligned", "all"].value == 75 and found["delta", "all"].value == 25
    assert found["accuracy_reverse", "all"].value == 50
    assert found["order_bias", "setting=vertical"].value == 25  # both orders weigh the same
    assert math.isnan(found["order_bias", three].value)  # no image of the other order


@pytest.mark.parametrize(
    "name", ["spatial_3d", "order_beyond", "spatial_multi", "spatial_distance", "spatial_clauses"]
)
def test_axes_labels_and_mirrors_of_real_rows(full_release: Path, name: str) -> None:
    suite = open_suite(name)
    image = Image.new("RGB", (64, 48))
    axes = set()
    for row in read_rows(str(full_release), name).rows[::9]:
        for case in suite.cases(row, 1):
            asked = {
                probe: {q.name: q for q in suite.questions(row, case, [image], probe)}
                for probe in ("original", "mirror", "swap")
            }
            assert asked["original"].keys() == asked["swap"].keys()
            assert not case.weights or asked["original"].keys() == case.weights.keys()
            for question in asked["original"].values():
                axes.add(question.facts["axis"])
                across = question.facts["axis"] == "horizontal"
                mirrored = asked["mirror"].get(question.name)
                assert (mirrored is not None) == across
                if mirrored is not None:
                    assert mirrored.labels[:2] == question.labels[:2][::-1]
                    was, now = (q.facts.get("relation") for q in (question, mirrored))
                    assert was is None or {was, now} == {"left_of", "right_of"}
    expected = {
        "spatial_3d": {"depth", "occlusion"},
        "order_beyond": {"horizontal", "vertical", "depth"},
        "spatial_multi": {"horizontal", "vertical"},
        "spatial_distance": {"distance"},
        "spatial_clauses": {"horizontal", "vertical"},
    }
    assert axes == expected[name]


def test_a_question_says_what_the_prompt_states_whichever_is_named_first() -> None:
    image = Image.new("RGB", (64, 48))
    seen = set()
    for number in range(20):
        case = Case(f"r{number}", "plain", 0, 0, "", ("c",))
        for probe in ("original", "swap"):
            (question,) = ask_stated(Stated("cat", "right_of", "dog"), case, probe, [image])
            first = question.labels[0] == "holds"
            assert (question.subjects[0] == "dog") == first  # the dog should be left
            facts = question.facts
            assert (facts["a"], facts["relation"], facts["b"]) == ("cat", "right_of", "dog")
            seen.add((probe, first))
    assert len(seen) == 4


# Prompts of one's own.


def test_prompts_are_read_by_rules_or_from_what_a_model_read(tmp_path: Path) -> None:
    text = tmp_path / "p.txt"
    text.write_text("A cat to the left of a dog and the dog above a cup.\n\nA sunset.\n")
    source = PromptFile.parse(str(text))
    assert source is not None and source.silent() == ["A sunset."]
    (row,) = source.rows()
    assert row.objects == ["cat", "dog", "cup"] and row.relations == ["left_of", "above"]
    stated = [
        {"first": "cat", "relation": "left", "second": "dog"},
        {"first": "dog", "relation": "left", "second": "owl"},
    ]
    record = {"id": "1", "prompt": "x", "by_rules": stated[:1], "by_model": stated, "problem": ""}
    unread = record | {"prompt": "y", "by_model": None, "problem": "refused"}
    log = tmp_path / "relations.jsonl"
    log.write_text("".join(json.dumps(one) + "\n" for one in (record, unread)))
    counts = {
        options: [(len(r.relations), r.implied) for r in PromptFile.parse(f"{log}{options}").rows()]  # type: ignore[union-attr]
        for options in ("", "?implied=yes", "?read=rules")
    }
    assert counts == {
        "": [(2, 0), (1, 0)],
        "?implied=yes": [(3, 1), (1, 0)],
        "?read=rules": [(1, 0), (1, 0)],
    }
    for options in counts:
        parsed = PromptFile.parse(f"{log}{options}")
        assert str(parsed) == f"{log}{options}"
        assert len(read_rows(f"{log}{options}", "own_prompts").rows) == 2
    with raises("unknown-option", "implied", "maybe", error=UsageError):
        PromptFile.parse(f"{log}?implied=maybe")
    log.write_text(json.dumps({"prompt": "x"}) + "\n")
    with raises("bad-format", ":1:", "relations.jsonl", "`spatial relations`", error=DataError):
        PromptFile(log).rows()
    text.write_text("A sunset.\n")
    with raises("nothing-to-do", "p.txt", error=DataError):
        PromptFile(text).rows()


def test_what_follows_is_transitive_on_one_axis_and_nothing_follows_from_a_contradiction() -> None:
    def of(*parts: str) -> list[Stated]:
        return [Stated(*part.split()) for part in parts]

    chain = of("a left_of b", "c right_of b", "d right_of c")
    assert set(implied_relations(chain)) == set(of("a left_of c", "a left_of d", "b left_of d"))
    assert implied_relations(of("a left_of b", "b above c")) == []
    assert implied_relations(of("a left_of b", "b left_of c", "c left_of a")) == []
    assert implied_relations(of("a behind b", "b behind c")) == of("c in_front_of a")
