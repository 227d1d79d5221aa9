"""Scores with the judge's errors taken out, by labels of the run or by the judge's card."""

import itertools
import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmark_files import BENCHMARKS, opened
from judged import LABELS, SEEN, judged_run
from refusals import raises

from counterprior.errors import DataError
from counterprior.eval.core import Case, Outcome, Score, Verdict
from counterprior.eval.engine.run import Run
from counterprior.eval.results.corrected import (
    corrected_by_card,
    corrected_by_labels,
    corrected_by_real,
    read_cards,
)
from counterprior.eval.results.judge_card import HumanAgreement, judge_card
from counterprior.eval.results.scoring import Result, ScoreSettings, score_run, write_results
from counterprior.eval.stats.correction import by_error_rates
from counterprior.eval.store.verdicts import Answered
from counterprior.eval.suites import open_suite
from counterprior.eval.suites.relations import NAMES
from counterprior.eval.suites.spatial import QUESTION

CORRECTNESS = open_suite("t2i_correctness")
TRUE_RATE = 0.9
OTHER = {"correct": "wrong", "wrong": "correct"}


def draw(n: int, errors: float, seed: int = 1) -> tuple[list[Outcome], dict[str, str]]:
    """Outcomes of a judge that errs in a share of cases, and the truth by case."""
    rng = random.Random(seed)
    found, truth = [], {}
    for number in range(n):
        case = Case(f"row{number}", "reverse", 0, 0, "", (f"pair{number}",))
        truth[case.id] = "correct" if rng.random() < TRUE_RATE else "wrong"
        said = OTHER[truth[case.id]] if rng.random() < errors else truth[case.id]
        said = "invalid" if rng.random() < 0.05 else said
        found.append(Outcome(case, {("arrangement", "original"): Verdict(said)}))
    return found, truth


def card_of(outcomes: list[Outcome], truth: Mapping[str, str]) -> dict[str, HumanAgreement]:
    answered = [
        Answered(
            key=outcome.case.id,
            case=outcome.case.id,
            image=SEEN,
            question=question,
            probe=probe,
            labels=LABELS,
            answers={},
            sided=True,
            verdict=verdict,
        )
        for outcome in outcomes
        for (question, probe), verdict in outcome.verdicts.items()
    ]
    told = {(case, "arrangement"): label for case, label in truth.items()}
    return dict(judge_card({"kind": "test"}, CORRECTNESS, answered, told).agreement)


def one(scores: list[Score]) -> Score:
    (score,) = scores
    return score


def test_labels_of_a_part_take_the_errors_out() -> None:
    outcomes, truth = draw(2_000, errors=0.2)
    told = {(case, "arrangement"): label for case, label in list(truth.items())[::8]}
    found, unconditional = corrected_by_labels(CORRECTNESS, outcomes, told)
    assert found.name == "accuracy_reverse_corrected" and found.unit == "%"
    assert unconditional.name == "accuracy_reverse_unconditional_corrected"
    assert unconditional.value == pytest.approx(found.value, abs=0.5)  # all images are valid
    # What the judge says is 0.9 x 0.8 + 0.1 x 0.2 = 74 %.
    assert 82 < found.interval.low < 90 < found.interval.high < 96
    assert found.n + sum(found.excluded.values()) == 2_000
    assert corrected_by_labels(CORRECTNESS, outcomes, {}) == []


@pytest.mark.parametrize(("abstains", "invalid"), [(0.3, 0.0), (0.3, 0.2), (0.0, 0.2)])
def test_labels_correct_a_judge_that_abstains_where_it_is_hard(
    abstains: float, invalid: float
) -> None:
    """A judge that never errs, but finds wrong images invalid: 60 % right looks like 68 %."""
    rng = random.Random(5)
    covered, values = [0, 0], ([], [])  # of valid images, and of all
    for _ in range(60):
        outcomes, labels = [], {}
        for number in range(400):
            case = Case(f"row{number}", "reverse", 0, 0, "", (f"pair{number // 2}",))
            truth = "correct" if rng.random() < 0.6 else "wrong"
            verdict = "invalid" if truth == "wrong" and rng.random() < abstains else truth
            if rng.random() < invalid:  # the judge sees most of what people find invalid
                truth, verdict = "invalid", "invalid" if rng.random() < 0.8 else "correct"
            outcomes.append(Outcome(case, {("arrangement", "original"): Verdict(verdict)}))
            labels[case.id, "arrangement"] = truth
        labeled = rng.sample(sorted(labels), 120)
        told = {key: labels[key] for key in labeled}
        for score in corrected_by_labels(CORRECTNESS, outcomes, told):
            unconditional = "unconditional" in score.name
            truth_of_score = 60 * (1 - invalid) if unconditional else 60
            covered[unconditional] += truth_of_score in score.interval
            values[unconditional].append(score.value - truth_of_score)
    for number, differences in zip(covered, values, strict=True):
        assert number >= 54
        assert sum(differences) / 60 == pytest.approx(0, abs=1.5)


def test_images_without_an_answer_to_every_needed_question_stay_unlabeled() -> None:
    case = Case("g0", "L2", 0, 0, "", ("law0", "g0"), weights={"assessment": 1.0, "logic": 1.0})
    asked = [(question, "original") for question in case.weights]
    outcomes = [
        Outcome(replace(case, row=f"g{number}"), dict.fromkeys(asked, Verdict("yes")))
        for number in range(8)
    ]
    labels = {(o.case.id, q): "yes" for o in outcomes[:4] for q in case.weights}
    whole = corrected_by_labels(open_suite("counterfactual"), outcomes, labels)
    partly = {**labels, (outcomes[5].case.id, "logic"): "no"}
    assert corrected_by_labels(open_suite("counterfactual"), outcomes, partly) == whole


def test_images_of_fewer_relations_than_others_are_labeled_too() -> None:
    """A judge that says yes of everything: people find 90 % of single relations, 20 % of two."""
    rng = random.Random(3)
    outcomes, labels = [], {}
    for number in range(1_000):
        names = NAMES[: 1 + number % 2]
        case = Case(
            f"r{number}", "plain", 0, 0, "", (f"c{number}",), weights=dict.fromkeys(names, 1)
        )
        said = {(name, "original"): Verdict("holds") for name in names}
        outcomes.append(Outcome(case, said))
        for name in names if number % 10 < 4 else ():
            right = rng.random() < (0.9 if len(names) == 1 else 0.2)
            labels[case.id, name] = "holds" if right else "opposite"
    found = {s.name: s for s in corrected_by_labels(open_suite("own_prompts"), outcomes, labels)}
    assert found["relations_right_corrected"].value == pytest.approx(55, abs=4)
    assert found["all_right_corrected"].value == pytest.approx(47, abs=4)


def test_images_that_were_never_made_are_excluded_by_reason() -> None:
    outcomes, truth = draw(100, errors=0.1)
    outcomes[:10] = [replace(outcome, image="refused") for outcome in outcomes[:10]]
    labels = {(case, "arrangement"): label for case, label in list(truth.items())[10:60]}
    for corrected in corrected_by_labels(CORRECTNESS, outcomes, labels):
        assert corrected.n == 90 and corrected.excluded == {"refused": 10}


def test_a_card_from_elsewhere_takes_the_errors_out() -> None:
    outcomes, _ = draw(2_000, errors=0.05)
    card = card_of(*draw(2_000, errors=0.05, seed=2))
    found = one(corrected_by_card(CORRECTNESS, outcomes, card))
    assert found.name == "accuracy_reverse_by_card"
    assert 86 < found.interval.low < 90 < found.interval.high < 94
    raw = sum(o.label("arrangement") == "correct" for o in outcomes) / found.n
    assert 100 * raw < found.interval.low
    assert found.n + sum(found.excluded.values()) == 2_000


def test_a_card_of_a_poor_judge_corrects_nothing() -> None:
    outcomes, truth = draw(400, errors=0.1)  # Youden's index is 0.8
    assert corrected_by_card(CORRECTNESS, outcomes, card_of(outcomes, truth)) == []


def test_a_run_says_that_a_card_of_a_poor_judge_corrects_nothing(tmp_path: Path) -> None:
    outcomes, truth = draw(150, errors=0.2)
    labeled = judged_run(tmp_path / "labeled", outcomes)
    labels = tmp_path / "labels.json"
    labels.write_text(
        json.dumps([{"case": c, "question": "arrangement", "label": v} for c, v in truth.items()])
    )
    write_results([result_of(labeled, ScoreSettings(labels=labels))])
    other = judged_run(tmp_path / "other", outcomes)
    result = result_of(other, ScoreSettings(card=labeled / "scores.json"))
    assert not any(score.name.endswith("_by_card") for score in result.scores)
    assert any("scores.json corrects no score" in note for note in result.notes)
    assert not any("errs as often on both" in note for note in result.notes)


@pytest.mark.parametrize("text", ["", "case,question,label\n"])
def test_a_file_without_labels_is_refused(tmp_path: Path, text: str) -> None:
    run = judged_run(tmp_path / "run", draw(20, 0.0)[0])
    labels = tmp_path / "labels.csv"
    labels.write_text(text)
    with raises("nothing-to-do", "labels.csv: no label", error=DataError):
        score_run(run, ScoreSettings(labels=labels))


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("mine:yes", "let its factory return"), ("__main__.yes", "pass identity=")],
)
def test_code_without_a_version_is_noted_with_a_remedy_for_its_caller(
    tmp_path: Path, name: str, remedy: str
) -> None:
    run = judged_run(tmp_path / "run", draw(20, 0.0)[0])
    (judge,) = Run.open(run).judges()
    identity = {"kind": "python", "name": name, "version": "unversioned", "persona": "standard"}
    (judge.root / "judge.json").write_text(json.dumps(identity))
    (note,) = (n for n in result_of(run, ScoreSettings()).notes if "without a version" in n)
    assert remedy in note


def test_a_judge_without_a_readable_answer_has_parsed_none() -> None:
    answered = [
        Answered(
            key="a",
            case="a",
            image=SEEN,
            question="arrangement",
            probe="original",
            labels=LABELS,
            answers={},
            sided=True,
            verdict=Verdict("unparsed"),
        )
    ]
    assert judge_card({"kind": "test"}, CORRECTNESS, answered).parse_rate == 0
    assert math.isnan(judge_card({"kind": "test"}, CORRECTNESS, []).parse_rate)


def test_a_signed_index_keeps_its_sign() -> None:
    cases = [Case(f"r{n}", "plain", 0, 0, "", (f"p{n}",)) for n in range(100)]
    said = ["first_left"] * 20 + ["first_right"] * 80
    outcomes = [
        Outcome(case, {("order", "original"): Verdict(label)})
        for case, label in zip(cases, said, strict=True)
    ]
    matrix = [[50, 0], [0, 50]]
    agreement = HumanAgreement(["first_left", "first_right"], matrix)
    suite = open_suite("t2i_homogenization")
    found = one(corrected_by_card(suite, outcomes, {"order": agreement}))
    assert found.value == pytest.approx(-60)
    assert -80 < found.interval.low < -60 < found.interval.high < -40


def test_worlds_are_corrected_by_their_weighted_score() -> None:
    weights = {"visual_integrity": 2.0, "assessment": 14.0, "logic_consistency": 8.0}
    suite, rng = open_suite("counterfactual"), random.Random(4)
    outcomes, told, truth = [], {}, []
    for number in range(600):
        clusters = (f"law{number % 100}", f"g{number}")
        case = Case(f"g{number}", "L2", 0, 0, "", clusters, weights=weights)
        people = {name: rng.choice(("yes", "no")) for name in weights}
        said = {name: "yes" if rng.random() < 0.3 else label for name, label in people.items()}
        outcomes.append(
            Outcome(case, {(q, "original"): Verdict(label) for q, label in said.items()})
        )
        if number % 3 == 0:
            told |= {(case.id, name): label for name, label in people.items()}
        truth.append(sum(w for name, w in weights.items() if people[name] == "yes") / 24)
    found = one(corrected_by_labels(suite, outcomes, told))
    assert found.name == "ungated_L2_corrected" and found.unit == "1"
    assert found.interval.low < sum(truth) / 600 < found.interval.high < 0.62
    part = {key: label for key, label in told.items() if key[1] != "assessment"}
    assert corrected_by_labels(suite, outcomes, part) == []


def result_of(root: Path, settings: ScoreSettings) -> Result:
    (judged,) = score_run(root, settings)
    return judged.result


def test_scores_of_a_labeled_run_correct_another(tmp_path: Path) -> None:
    outcomes, truth = draw(150, 0.03)
    labeled = judged_run(tmp_path / "labeled", outcomes)
    labels = tmp_path / "labels.json"
    labels.write_text(
        json.dumps([{"case": c, "question": "arrangement", "label": v} for c, v in truth.items()])
    )
    result = result_of(labeled, ScoreSettings(labels=labels))
    assert not (labeled / "scores.json").exists()
    write_results([result])
    names = {score.name for score in result.scores}
    assert "accuracy_reverse_corrected" in names
    # Of people and the judge, as raters: about as far apart as kappa says.
    kappa = result.card.agreement["arrangement"].kappa.value
    assert result.alpha["arrangement"] == pytest.approx(kappa, abs=0.02)
    other = judged_run(tmp_path / "other", draw(150, 0.03, seed=9)[0])
    by_card = ScoreSettings(card=labeled / "scores.json")
    corrected = result_of(other, by_card)
    assert "accuracy_reverse_by_card" in {score.name for score in corrected.scores}
    assert corrected.alpha == {}
    assert any("errs as often on both" in note for note in corrected.notes)
    (stranger, *_) = Run.open(other).judges()
    (stranger.root / "judge.json").write_text('{"kind": "test", "persona": "strict"}')
    with raises("nothing-judged", "test", error=DataError):
        score_run(other, by_card)
    write_results([result_of(other, ScoreSettings())])
    with raises("nothing-to-do", "scores.json", "--labels", error=DataError):
        list(read_cards(other / "scores.json"))


def test_labels_of_what_a_run_does_not_have_are_refused(tmp_path: Path) -> None:
    outcomes, _ = draw(5, 0)
    run = judged_run(tmp_path / "run", outcomes)
    case = outcomes[0].case.id
    for row, *problem in (
        (("elsewhere", "arrangement", "correct"), "unknown-reference", "case:", "'elsewhere'"),
        ((case, "order", "correct"), "unknown-name", "question:", "'order'", "arrangement"),
        ((case, "arrangement", "first_left"), "unknown-name", "label:", "'first_left'", "correct"),
    ):
        code, *facts = problem
        labels = tmp_path / "labels.csv"
        labels.write_text("case,question,label\n" + ",".join(row) + "\n")
        with raises(code, f"{labels}:2:", *facts, error=DataError):
            score_run(run, ScoreSettings(labels=labels))


def test_error_rates_on_gold_images_take_the_errors_and_abstentions_out() -> None:
    """Calls three in ten wrong images correct, and abstains on a third of those."""
    rates = np.array([[0.95, 0.02, 0.03], [0.3, 0.47, 0.23], [0.05, 0.05, 0.9]])
    rng, holds, plain = np.random.default_rng(1), 0, []
    for seed in range(60):
        truth = rng.choice(3, 300, p=[0.18, 0.72, 0.1])
        labels = (rng.random(300)[:, None] > rates[truth].cumsum(axis=1)).sum(axis=1)
        gold = [(rng.choice(3, 114, p=row), np.arange(114) // 2) for row in rates]
        estimate = by_error_rates(labels, np.arange(300), gold, [1.0, 0.0, math.nan], seed)
        holds += estimate.interval.low <= 0.2 <= estimate.interval.high
        plain.append((labels == 0).sum() / (labels < 2).sum())
        assert estimate.interval.low <= estimate.value <= estimate.interval.high
    assert holds >= 54 and min(plain) > 0.3
    same = [([0, 0], [0, 1])] * 3
    undefined = by_error_rates([0, 1, 2], [0, 1, 2], same, [1.0, 0.0, math.nan])
    assert math.isnan(undefined.value) and math.isnan(undefined.interval.low)


def test_clusters_of_right_images_count_though_abstentions_do_not_cluster() -> None:
    """Right images fill whole clusters of eight; the judge abstains on every fourth image."""
    clusters = np.arange(320) // 8
    labels = np.where(clusters % 5 == 0, 0, 1)
    labels[np.arange(320) % 4 == 0] = 2
    gold = [(np.full(200, place), np.arange(200)) for place in range(3)]
    values = [1.0, 0.0, math.nan]
    widths = [
        by_error_rates(labels, of, gold, values).interval.width for of in (clusters, np.arange(320))
    ]
    # Eight images of a cluster are worth one: 40 independent ones would be as uncertain.
    assert widths[0] > 0.9 * math.sqrt(8) * widths[1]


def test_a_correction_by_real_images_varies_with_both_things_of_a_pair() -> None:
    """The judge overlooks some things wherever they are; each comes again in 13 pairs."""
    rng, pairs = random.Random(3), list(itertools.combinations("abcdefghijklmn", 2))

    def asked(clusters: Callable[[str, str], tuple[str, ...]]) -> tuple[list[Outcome], ...]:
        images = []
        for number, (a, b) in enumerate(pairs * 3):
            label = ("holds", "opposite", "invalid")[number % 3]
            seen = label if not {a, b} & {*"ace"} else "invalid"
            case = Case(
                f"row{number}", "horizontal", 0, 0, "", clusters(a, b), key={QUESTION: label}
            )
            images.append(Outcome(case, {(QUESTION, "original"): Verdict(seen)}))
        labeled = [replace(o, case=replace(o.case, row=f"{o.case.row}x")) for o in images]
        rng.shuffle(labeled)
        return images, labeled

    def scores(clusters: Callable[[str, str], tuple[str, ...]]) -> dict[str, Score]:
        found = corrected_by_real(open_suite("spatial_visor"), *asked(clusters))
        return {score.name: score for score in found}

    of_things, of_pairs = (
        scores(lambda a, b: (f"{a}/{b}", a, b)),
        scores(lambda a, b: (f"{a}/{b}",)),
    )
    name = "accuracy_unconditional_by_gold"
    assert of_things[name].value == of_pairs[name].value == pytest.approx(100 / 3)
    assert of_things[name].interval.width > 1.3 * of_pairs[name].interval.width
    assert "real ones; fewer than 20 things" in of_things[name].warning
    assert "fewer" not in of_pairs[name].warning


def test_error_rates_of_pairs_whose_entities_recur_hold_the_truth() -> None:
    """Twenty entities with effects of their own, in 200 pairs, here and among the labeled."""
    coverage = opened(BENCHMARKS / "coverage.py")
    estimates = [
        coverage.by_real(np.random.default_rng(seed), 20, 200, 1.0, 0.5, 0.85)[0]
        for seed in range(40)
    ]
    assert sum(e.interval.low <= 0.5 <= e.interval.high for e in estimates) >= 36
    assert np.mean([e.interval.width for e in estimates]) < 0.7
