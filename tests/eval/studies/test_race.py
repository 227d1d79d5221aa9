"""Racing generators: the evidence holds at all times, the best wins, and the log resumes."""

import json
import math
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.stats import binom

from counterprior.eval.core import Case, Question, Verdict
from counterprior.eval.engine.data import Rows
from counterprior.eval.stats.sequential import STAKES, Wealth, confidence_sequence
from counterprior.eval.studies.race import RaceSettings, race, ucb_index
from counterprior.eval.studies.racing import Live, LiveSettings, Scored, case_score, run_race
from counterprior.eval.suites import open_suite
from counterprior.schema import Provenance, RuleDecoupling

Run = Callable[..., subprocess.CompletedProcess[str]]
ITEMS = [f"i{number:05}" for number in range(4000)]


def simulated(means: Sequence[float], seed: int, n: int = 4000, shared: float = 0.5) -> np.ndarray:
    """Right or wrong, shape (generators, n), alike in a share of the items."""
    rng = np.random.default_rng(seed)
    own, common = rng.random((len(means), n)), rng.random(n)
    draws = np.where(rng.random((len(means), n)) < shared, common, own)
    return (draws < np.array(means)[:, None]).astype(float)


def raced(table: np.ndarray, settings: RaceSettings | None = None) -> Any:
    names = [f"g{number}" for number in range(len(table))]
    items = ITEMS[: table.shape[1]]
    lookup = {item: number for number, item in enumerate(items)}
    return race(names, items, lambda g, i: float(table[int(g[1:]), lookup[i]]), settings)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.randoms())
def test_evidence_depends_on_neither_order_nor_batching(values: list[float], rng: Any) -> None:
    shuffled = list(values)
    rng.shuffle(shuffled)
    wealth, other = Wealth(), Wealth((2,))
    for one, two in zip(values, shuffled, strict=True):
        wealth.add(one)
        other.add([one, two])
    assert other.evidence == pytest.approx([float(wealth.evidence)] * 2, abs=1e-9)
    product = np.prod([1 + STAKES * v for v in values], axis=0).mean()
    assert float(wealth.evidence) == pytest.approx(math.log(product), abs=1e-9)


def test_wealth_is_a_fair_game_where_the_mean_is_zero() -> None:
    # Exactly, over all sequences of five coins: the expectation of the wealth stays 1.
    total = 0.0
    for bits in range(2**5):
        wealth = Wealth()
        for place in range(5):
            wealth.add(1 if bits >> place & 1 else -1)
        total += math.exp(float(wealth.evidence)) / 2**5
    assert total == pytest.approx(1)


def test_the_sequence_holds_at_all_times_and_shrinks() -> None:
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(100):
        values = rng.choice([-1.0, 0.0, 1.0], 300, p=[0.2, 0.5, 0.3])
        missed += any(0.1 not in confidence_sequence(values[:n]) for n in (5, 20, 80, 300))
    assert missed <= binom.ppf(0.999, 100, 0.05)
    ends = confidence_sequence(values)
    assert ends.high - ends.low < 0.35
    assert confidence_sequence([0.0] * 3000).high < 0.05
    one = confidence_sequence([0.3])
    assert one.low < 0.3 < one.high
    assert math.isnan(confidence_sequence([]).low)
    low, high = confidence_sequence(-values)
    assert (-high, -low) == pytest.approx(tuple(ends))
    with pytest.raises(ValueError, match=r"outside \[-1, 1\]"):
        confidence_sequence([0.0, 2.0])


def test_the_clearly_best_wins_early_and_the_pictures_saved_are_counted() -> None:
    found = raced(simulated([0.2, 0.26, 0.66], seed=1))
    assert found.leaders == ("g2",) and found.ending == "decided"
    assert {one.name: one.by for one in found.dropped} == {"g0": "g2", "g1": "g2"}
    drawn = sum(found.pictures.values())
    assert drawn < 200 and found.saved == 3 * 4000 - drawn
    assert found == raced(simulated([0.2, 0.26, 0.66], seed=1))
    last = found.differences[2]
    assert (last.first, last.second) == ("g1", "g2") and last.interval[1] < 0.1


def test_a_dropped_generator_makes_no_more_pictures() -> None:
    found = raced(simulated([0.05, 0.6, 0.62], seed=2, n=800))
    first = found.dropped[0]
    assert first.name == "g0" and found.pictures["g0"] == first.items < 60
    assert found.pictures["g1"] == found.pictures["g2"] == 800


def test_what_can_not_be_told_apart_is_left_open_or_tied() -> None:
    same = simulated([0.5, 0.5], seed=0, n=600)
    assert raced(same).ending == "exhausted" and raced(same).leaders == ("g0", "g1")
    equal = np.stack([same[0], same[0]])
    tied = raced(equal, RaceSettings(delta=0.1))
    assert tied.ending == "tied" and tied.items < 200
    ends = tied.differences[0].interval
    assert -0.1 <= ends[0] <= 0 <= ends[1] <= 0.1


def test_missing_scores_are_counted_and_compared_where_both_are_there() -> None:
    table = simulated([0.3, 0.9], seed=3, n=200)
    table[0, ::2] = np.nan
    names = {item: number for number, item in enumerate(ITEMS[:200])}
    found = race(
        ["a", "b"],
        ITEMS[:200],
        lambda g, i: None if np.isnan(v := table["ab".index(g), names[i]]) else float(v),
    )
    assert found.leaders == ("b",)
    assert found.missing["a"] > 0 == found.missing["b"]
    assert found.differences[0].items == found.pictures["a"] - found.missing["a"]
    nothing = race(["a", "b"], ["x"], lambda g, i: None)
    assert nothing.means == {"a": None, "b": None} and nothing.differences[0].interval is None


@pytest.mark.parametrize("policy", ["eliminate", "ucb"])
def test_bad_races_are_refused(policy: Any) -> None:
    settings = RaceSettings(policy)
    for names, items, reason in (
        (["a"], ["x"], "two or more"), (["a", "a"], ["x"], "each once"), (["a", "b"], [], "items"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=reason):
            race(names, items, lambda g, i: 1.0, settings)
    with pytest.raises(ValueError, match=r"a, item x: score 1.5 is not in \[0, 1\]"):
        race(["a", "b"], ["x"], lambda g, i: 1.5, settings)
    with pytest.raises(ValueError, match="is not in"):
        race(["a", "b"], ["x"], lambda g, i: math.nan, settings)
    for wrong in ({"alpha": 0}, {"delta": 1}, {"policy": "luck"}, {"convention": "ours"}):
        with pytest.raises(ValueError, match=r"alpha|delta|policy|convention"):
            RaceSettings(**wrong)


def test_the_bandit_as_published() -> None:
    found = raced(simulated([0.2, 0.26, 0.66], seed=1), RaceSettings("ucb"))
    assert found.leaders == ("g2",) and found.ending == "rounds"
    assert found.pictures["g2"] > max(found.pictures["g0"], found.pictures["g1"])
    assert sum(found.pictures.values()) <= 5 * 103
    assert found == raced(simulated([0.2, 0.26, 0.66], seed=1), RaceSettings("ucb"))
    assert ucb_index(0.5, 4, 16) == pytest.approx(0.5 + 2 * math.sqrt(math.log(16) / 4))
    blind = race(["a", "b"], ["x", "y"], lambda g, i: None, RaceSettings("ucb"))
    assert blind.leaders == () and blind.means == {"a": None, "b": None}


class Counting:
    """A source that counts what it is asked, and fails once where it is told to."""

    names = ("a", "b")
    items = tuple(ITEMS[:50])

    def __init__(self, fail_at: int = -1) -> None:
        self.asked: list[tuple[str, str]] = []
        self.fail_at = fail_at

    def score(self, name: str, item: str) -> Scored:
        if len(self.asked) == self.fail_at:
            raise KeyboardInterrupt
        self.asked.append((name, item))
        value = int(item[1:]) % 3
        return Scored(None, "refused") if value == 2 else Scored(float(value if name == "a" else 0))

    def identity(self) -> dict[str, Any]:
        return {"kind": "counting"}


def quiet(stage: str, done: int, total: int) -> None:
    pass


def test_an_interrupted_race_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    whole = Counting()
    expected = run_race(whole, RaceSettings(), tmp_path / "whole", quiet)
    broken = Counting(fail_at=7)
    with pytest.raises(KeyboardInterrupt):
        run_race(broken, RaceSettings(), tmp_path / "parts", quiet)
    assert not (tmp_path / "parts" / "result.json").exists()
    with (tmp_path / "parts" / "scores.jsonl").open("a") as file:
        file.write('{"generator": "a", "it')
    rest = Counting()
    assert run_race(rest, RaceSettings(), tmp_path / "parts", quiet) == expected
    assert len(rest.asked) + 7 == len(whole.asked)
    for name in ("result.json", "scores.jsonl"):
        pair = [(tmp_path / folder / name).read_bytes() for folder in ("whole", "parts")]
        assert pair[0] == pair[1]
    assert expected["failures"]["a"] == {"refused": expected["missing"]["a"]}
    with pytest.raises(ValueError, match="holds another race"):
        run_race(Counting(), RaceSettings(seed=1), tmp_path / "parts", quiet)


class Saying:
    """A judge that gives prepared labels."""

    def __init__(self, *labels: str) -> None:
        self.labels = labels

    def judge(self, questions: Sequence[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question, label in zip(questions, self.labels, strict=True):
            yield question, Verdict(label, label)

    def identity(self) -> dict[str, str]:
        return {"kind": "saying"}


def test_a_picture_that_can_not_be_judged_has_no_score() -> None:
    case = Case("row", "v", 1, 0, "p", ("row",), weights={"x": 3.0, "y": 1.0})
    questions = [
        Question(f"c/{name}", "yes_no", (), ("yes", "no"), "?", {}, (Image.new("RGB", (9, 9)),))
        for name in ("x", "y")
    ]
    assert case_score(case, questions, Saying("yes", "no")) == Scored(0.75)
    assert case_score(case, questions, Saying("no", "unparsed")) == Scored(None, "unparsed")
    assert case_score(case, [], Saying()) == Scored(None, "missing")


class Brightness(Saying):
    """Says yes to bright pictures, and nothing that can be read to grey ones."""

    def judge(self, questions: Sequence[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            mean = np.asarray(question.images[-1]).mean()
            label = "unparsed" if 100 < mean < 150 else question.labels[0 if mean > 150 else 1]
            yield question, Verdict(label, label)


def test_a_live_race_makes_judges_and_counts_what_went_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("counterprior.eval.studies.racing.open_judge", lambda spec: Brightness())
    source = Provenance(bank="rules.yaml", entry="r", author="curated", calls=[])
    rows = Rows(
        [
            RuleDecoupling(rule=f"r{n}", variant="v", factual=False, prompt="p",
                           assessment_point="bright", review=["code"], provenance=source)
            for n in range(40)
        ],
        "digest",
    )  # fmt: skip
    suite = open_suite("rule_decoupling")
    cases = [case for row in rows.rows for case in suite.cases(row, 1)]
    for name, grey in (("bright", 255), ("dark", 10)):
        (tmp_path / name).mkdir()
        for number, case in enumerate(cases):
            picture = Image.new("RGB", (32, 32), (grey,) * 3)
            if name == "dark" and number % 4 == 0:
                picture = Image.new("RGB", (32, 32), (128,) * 3)
            if name == "dark" and number % 4 == 1:
                continue
            picture.save(tmp_path / name / f"{case.row}-{case.variant}-{case.seed}.png")
        (tmp_path / name / f"{cases[2].row}-{cases[2].variant}-{cases[2].seed}.png").write_bytes(
            b"x"
        )
    specs = tuple(f"folder:{tmp_path / name}" for name in ("bright", "dark"))
    settings = LiveSettings("rule_decoupling", specs, "any", "data")
    live = Live(settings, tmp_path / "out", rows)
    assert len(live.items) == 40
    result = run_race(live, RaceSettings(), tmp_path / "out", quiet)
    assert result["leaders"] == [specs[0]] and result["ending"] == "decided"
    assert result["means"] == {specs[0]: 1.0, specs[1]: 0.0}
    assert set(result["failures"][specs[1]]) <= {"missing", "unparsed", "error"}
    assert {live.score(specs[1], case.id).why for case in cases} == {
        "", "missing", "unparsed", "error",
    }  # fmt: skip


def test_the_command_on_recorded_scores(tmp_path: Path, cli: Run) -> None:
    table = simulated([0.3, 0.8], seed=5, n=300)
    for name, row in zip("ab", table, strict=True):
        rows = [{"sample_id": i, "pse": v} for i, v in zip(ITEMS, row.tolist(), strict=False)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    files = [w for n in "ab" for w in ("--scores", f"{n}={tmp_path / n}.jsonl")]
    out = tmp_path / "race"
    done = cli("race", *files, "--metric", "pse", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["leaders"] == ["b"]
    wrong = cli("race", *files, "--metric", "clip", "--out", tmp_path / "other")
    assert wrong.returncode == 2 and "no metric 'clip'" in wrong.stderr
    none = cli("race", "--out", tmp_path / "other")
    assert none.returncode == 2 and "needs --scores, or --suite" in none.stderr


@pytest.mark.lane
@pytest.mark.parametrize("means", [(0.5, 0.5, 0.5), (0.6, 0.62, 0.66), (0.5, 0.45)])
def test_the_best_is_dropped_at_most_as_often_as_promised(means: tuple[float, ...]) -> None:
    runs, alpha = 1000, 0.05
    best = max(range(len(means)), key=lambda g: means[g])
    wrong = 0
    for seed in range(runs):
        found = raced(simulated(means, seed, n=600), RaceSettings(alpha=alpha, seed=seed))
        wrong += f"g{best}" not in found.leaders
    print(means, wrong, "of", runs)
    assert wrong <= binom.ppf(0.999, runs, alpha)
