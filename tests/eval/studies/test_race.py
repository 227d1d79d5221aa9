"""Racing generators: the evidence holds at all times, the best wins, a stopped race goes on."""

import json
import math
import re
import subprocess
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from refusals import assert_refused, raises
from scipy.stats import binom

from counterprior.agents.budget import BudgetError
from counterprior.errors import InUseError, RunFailed, UsageError
from counterprior.eval.core import ImageRequest, Question, Verdict
from counterprior.eval.detectors import Detection, mask_box
from counterprior.eval.engine.costs import Cost
from counterprior.eval.engine.data import Rows
from counterprior.eval.geometry.metrics import METRICS
from counterprior.eval.judges import as_judge
from counterprior.eval.judges.by_rule import MetricJudge
from counterprior.eval.judges.pixels import PixelJudge
from counterprior.eval.selftest.trials import trials_of
from counterprior.eval.stats.sequential import STAKES, Wealth, confidence_sequence
from counterprior.eval.studies import racing
from counterprior.eval.studies.race import RaceSettings, passes_over, race, ucb_index
from counterprior.eval.studies.racing import Live, LiveSettings, race_live, run_race
from counterprior.eval.suites import SUITES, open_suite
from counterprior.eval.suites.base import Suite
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


@pytest.mark.slow
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


def test_the_clearly_best_wins_early_and_the_images_saved_are_counted() -> None:
    found = raced(simulated([0.2, 0.26, 0.66], seed=1))
    assert found.leaders == ("g2",) and found.ending == "decided"
    assert {one.name: one.by for one in found.dropped} == {"g0": "g2", "g1": "g2"}
    drawn = sum(found.images.values())
    assert drawn < 200 and found.saved == 3 * 4000 - drawn
    assert found == raced(simulated([0.2, 0.26, 0.66], seed=1))
    last = found.differences[2]
    assert (last.first, last.second) == ("g1", "g2") and last.interval[1] < 0.1


def test_a_dropped_generator_makes_no_more_images() -> None:
    found = raced(simulated([0.05, 0.6, 0.62], seed=2, n=800))
    first = found.dropped[0]
    assert first.name == "g0" and found.images["g0"] == first.items < 60
    assert found.images["g1"] == found.images["g2"] == 800


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
    assert found.differences[0].items == found.images["a"] - found.missing["a"]
    nothing = race(["a", "b"], ["x"], lambda g, i: None)
    assert nothing.means == {"a": None, "b": None} and nothing.differences[0].interval is None


def test_a_generator_whose_wrong_images_have_no_score_is_not_crowned() -> None:
    """Right in half of its images, and almost nothing else has a score: a mean of 0.95."""
    rng = np.random.default_rng(1)
    honest = (rng.random(2_000) < 0.75).astype(float)
    abstaining = np.where(rng.random(2_000) < 0.5, 1.0, np.nan)
    table = {"honest": honest, "abstaining": abstaining}

    def score(name: str, item: str) -> float | None:
        value = float(table[name][int(item[1:])])
        return None if math.isnan(value) else value

    result = race(list(table), ITEMS[:2_000], score)
    assert result.means["abstaining"] == 1 and result.missing["abstaining"] > 800
    assert not result.dropped and set(result.leaders) == set(table)


def laws(seed: int, clusters: int = 10, items: int = 20) -> tuple[np.ndarray, dict[str, str]]:
    """Two generators that are equally good over all laws, each law better for one of them: right or
    wrong, shape (2, items), and the law of each item."""
    rng = np.random.default_rng(seed)
    rates = 1 / (1 + np.exp(-5 * rng.normal(size=(2, clusters, 1))))
    table = (rng.random((2, clusters, items)) < rates).reshape(2, -1).astype(float)
    return table, {ITEMS[n]: f"law{n // items}" for n in range(clusters * items)}


@pytest.mark.slow
def test_items_of_a_cluster_are_no_independent_evidence() -> None:
    dropped = Counter[bool]()
    for seed in range(30):
        table, clusters = laws(seed)
        for known in (True, False):
            result = race(
                ["g0", "g1"],
                list(clusters),
                lambda g, i, table=table: float(table[int(g[1:]), int(i[1:])]),
                RaceSettings(seed=seed),
                clusters=clusters if known else None,
            )
            dropped[known] += "g0" not in result.leaders
    assert dropped[True] <= binom.ppf(0.98, 30, 0.05) < dropped[False]


def test_looks_weigh_all_items_alike_whatever_the_sizes_of_their_clusters() -> None:
    clusters = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "c1": "c", "c2": "c"}
    values = dict(zip(clusters, (1.0, 0.5, 0.0, 1.0, 0.25, 0.0), strict=True))
    drawn = Counter[str]()
    for seed in range(3000):
        (single, _), (whole, _) = passes_over(clusters, RaceSettings(seed=seed))
        assert len({clusters[look.items[0]] for look in single}) == len(single)
        drawn.update(look.items[0] for look in single)
        assert all(len(look.items) == 1 and look.weight == 1 for look in single)
    assert sorted(item for look in whole for item in look.items) == sorted(clusters)
    total = sum(look.weight * np.mean([values[i] for i in look.items]) for look in whole)
    assert total / sum(look.weight for look in whole) == pytest.approx(np.mean([*values.values()]))
    assert all(count == pytest.approx(1000, abs=120) for count in drawn.values())
    ((only, alpha),) = passes_over({item: item for item in clusters}, RaceSettings())
    assert {look.items for look in only} == {(item,) for item in clusters} and alpha == 0.05


@pytest.mark.parametrize("size", [1, 5])
def test_items_drawn_by_information_weigh_alike(size: int) -> None:
    """The weighted mean of the looks is that of all items, whose values follow the information."""
    items = ITEMS[:60]
    clusters = {item: f"c{n // size}" for n, item in enumerate(items)}
    information = {item: 0.5 * (n / 60) ** 2 for n, item in enumerate(items)}
    del information[items[0]]
    values = {item: n / 60 for n, item in enumerate(items)}
    sums = np.zeros(2)
    drawn = Counter[str]()
    for seed in range(1500):
        (single, first), (_, second) = passes_over(clusters, RaceSettings(seed=seed), information)
        assert (first, second) == pytest.approx((0.04, 0.01))
        for look in single:
            assert 0 < look.weight <= 1 and len(look.items) == 1
            sums += look.weight * np.array([values[look.items[0]], 1])
            drawn[look.items[0]] += 1
    assert sums[0] / sums[1] == pytest.approx(np.mean([*values.values()]), abs=0.01)
    assert drawn[items[-1]] > 2 * drawn[items[1]] > 0
    assert drawn[items[0]] == pytest.approx(drawn[items[-1]], rel=0.2)  # nothing known: as the best


@pytest.mark.slow
def test_a_wrong_model_of_items_does_not_crown_the_worse() -> None:
    """Better on the most informative tenth, worse over all."""
    rates = np.array([[0.2, 0.6], [0.8, 0.4]])
    wrong = 0
    for seed in range(20):
        kind = (np.arange(1000) >= 100).astype(int)
        table = (np.random.default_rng(seed).random((2, 1000)) < rates[:, kind]).astype(float)
        information = {item: 0.5 if n < 100 else 0.01 for n, item in enumerate(ITEMS[:1000])}
        result = race(
            ["g0", "g1"],
            ITEMS[:1000],
            lambda g, i, table=table: float(table[int(g[1:]), int(i[1:])]),
            RaceSettings(seed=seed),
            information=information,
        )
        wrong += "g0" not in result.leaders
    assert wrong <= binom.ppf(0.99, 20, 0.05)


def test_a_race_of_clusters_ends_after_an_item_of_each_if_that_is_enough() -> None:
    table = simulated([0.1, 0.9], seed=2, n=400)
    clusters = {item: f"law{n // 10}" for n, item in enumerate(ITEMS[:400])}
    result = race(
        ["g0", "g1"],
        list(clusters),
        lambda g, i: float(table[int(g[1:]), int(i[1:])]),
        clusters=clusters,
    )
    assert result.leaders == ("g1",) and result.items == result.clusters < 40
    low, high = result.differences[0].interval or (0, 0)
    assert low < -0.8 < high < 0.1


@pytest.mark.parametrize("policy", ["eliminate", "ucb"])
def test_bad_races_are_refused(policy: Any) -> None:
    settings = RaceSettings(policy)
    refused: list[tuple[list[str], list[str], str]] = [
        (["a"], ["x"], "two or more generators"),
        (["a", "a"], ["x"], "two or more generators"),
        (["a", "b"], [], "items"),
    ]
    for names, items, fact in refused:
        with raises("too-few-items", fact):
            race(names, items, lambda g, i: 1.0, settings)
    with raises("out-of-range", "a", "item x", "1.5"):
        race(["a", "b"], ["x"], lambda g, i: 1.5, settings)
    with raises("out-of-range", "nan"):
        race(["a", "b"], ["x"], lambda g, i: math.nan, settings)
    for name, value, code in (
        *(("alpha", 0, "out-of-range"), ("delta", 1, "out-of-range")),
        *(("policy", "luck", "unknown-name"), ("convention", "ours", "unknown-name")),
    ):
        with raises(code, f"{name} {value!r}"):
            RaceSettings(**{name: value})


def test_the_bandit_as_published() -> None:
    found = raced(simulated([0.2, 0.26, 0.66], seed=1), RaceSettings("ucb"))
    assert found.leaders == ("g2",) and found.ending == "rounds"
    assert found.images["g2"] > max(found.images["g0"], found.images["g1"])
    assert sum(found.images.values()) <= 5 * 103
    assert found == raced(simulated([0.2, 0.26, 0.66], seed=1), RaceSettings("ucb"))
    assert ucb_index(0.5, 4, 16) == pytest.approx(0.5 + 2 * math.sqrt(math.log(16) / 4))
    blind = race(["a", "b"], ["x", "y"], lambda g, i: None, RaceSettings("ucb"))
    assert blind.leaders == () and blind.means == {"a": None, "b": None}


@pytest.mark.parametrize(("exploration", "a", "b"), [(0.0, 8, 1), (2.0, 6, 3), (100.0, 5, 4)])
def test_pulls_by_the_weight_of_the_bonus(
    exploration: float, a: int, b: int, tmp_path: Path, cli: Run
) -> None:
    # Counted by hand: a always scores 1, b 0; seven pulls after the first two, the clock at 11.
    for name, value in (("a", 1.0), ("b", 0.0)):
        rows = [{"sample_id": i, "pse": value} for i in ITEMS[:3]]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    files = [w for n in "ab" for w in ("--scores", f"{n}={tmp_path / n}.jsonl")]
    options = ("--metric", "pse", "--policy", "ucb", "--rounds", "7", "--json")
    done = cli(
        "study",
        "race",
        *files,
        *options,
        "--exploration",
        str(exploration),
        "--out",
        tmp_path / "r",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pulls"] == {"a": a, "b": b}
    with raises("out-of-range", "exploration -1.0"):
        RaceSettings("ucb", exploration=-1.0)


def quiet(stage: str, done: int, total: int) -> None:
    pass


def rules(n: int) -> Rows:
    """Rules whose images must be bright."""
    source = Provenance(bank="rules.yaml", entry="r", author="curated", calls=[])
    rows = [
        RuleDecoupling(
            rule=f"r{number}",
            variant="v",
            factual=False,
            prompt="p",
            assessment_point="bright",
            review=["code"],
            provenance=source,
        )
        for number in range(n)
    ]
    return Rows(rows, "digest")


def cases_of(rows: Rows) -> list[Any]:
    suite = open_suite("rule_decoupling")
    return [case for row in rows.rows for case in suite.cases(row, 1)]


def folders(root: Path, rows: Rows) -> tuple[str, str]:
    """Specs of a generator that is always right, and of one that is always wrong or worse.

    The second has no file for every fourth case and a gray image for every other fourth.
    """
    cases = cases_of(rows)
    for name, gray in (("bright", 255), ("dark", 10)):
        (root / name).mkdir()
        for number, case in enumerate(cases):
            level = 128 if name == "dark" and number % 4 == 0 else gray
            if name == "bright" or number % 4 != 1:
                Image.new("RGB", (32, 32), (level,) * 3).save(root / name / case.file)
    (root / "dark" / cases[2].file).write_bytes(b"x")
    return f"folder:{root / 'bright'}", f"folder:{root / 'dark'}"


class Brightness:
    """Says yes to bright images, by the digit that stands for it, and mumbles at gray ones."""

    def __init__(self, stop_at: int = -1) -> None:
        self.asked: Counter[str] = Counter()
        self.digits: set[tuple[str, str]] = set()
        self.stop_at = stop_at

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            if self.asked.total() == self.stop_at:
                raise KeyboardInterrupt
            mean = np.asarray(question.images[-1]).mean()
            self.asked[f"{question.id} {mean:.0f}"] += 1
            if 100 < mean < 150:
                yield question, Verdict("unparsed", "hm")
                continue
            means = {label: digit for digit, label in question.answers.items()}
            digit = means["yes" if mean > 150 else "no"]
            self.digits.add((digit, question.answers[digit]))
            yield question, Verdict(question.answers[digit], digit)

    def identity(self) -> dict[str, str]:
        return {"kind": "brightness"}


def settings_of(specs: Sequence[str], **changes: Any) -> LiveSettings:
    return LiveSettings("rule_decoupling", tuple(specs), "any", "data", **changes)


def test_a_live_race_makes_judges_and_counts_what_went_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = Brightness()
    monkeypatch.setattr(racing, "as_judge", lambda spec, plan: judge)
    rows = rules(40)
    good, bad = folders(tmp_path, rows)
    with Live(settings_of([good, bad]), tmp_path / "out", rows) as live:
        assert len(live.items) == 40
        result = run_race(live, RaceSettings(), tmp_path / "out", quiet)
        assert result["leaders"] == [good] and result["ending"] == "decided"
        assert result["means"] == {good: 1.0, bad: 0.0}
        assert result["missing"][bad] == sum(result["failures"][bad].values()) > 0
        why = [live.score(bad, case.id) for case in cases_of(rows)]
        assert set(why) == {0.0, "missing", "unparsed", "error"}
        assert set(result["failures"][bad]) <= set(why)
        with raises("in-use", tmp_path / "out", error=InUseError):
            Live(settings_of([good, bad]), tmp_path / "out", rows)
    assert set(judge.asked.values()) == {1}
    assert {("1", "yes"), ("2", "yes"), ("1", "no"), ("2", "no")} <= judge.digits
    runs = tmp_path / "out" / "runs"
    assert {path.name for path in runs.iterdir()} == {"0", "1"}
    assert (runs / "0" / "verdicts").is_dir()


@pytest.mark.slow
def test_a_perfect_generator_races_at_one_whatever_the_digits_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[tuple[str, ...]] = set()

    def by_digit(question: Question) -> str:
        """What `pixels` sees, written as the question wants it."""
        ((_, verdict),) = PixelJudge().judge([question])
        means = {label: digit for digit, label in question.answers.items()}
        seen.add((*question.labels, *(means[label] for label in ("correct", "wrong"))))
        return means[verdict.label]

    monkeypatch.setattr(racing, "as_judge", lambda spec, plan: as_judge(by_digit, plan, "1"))
    (trial, *_) = trials_of("t2i_correctness")
    rows = Rows.of(trial.rows[:24])
    biased = "render:?order_bias=9&grounding=0"
    live = LiveSettings("t2i_correctness", ("render:", biased), "any", "trial")
    with Live(live, tmp_path / "out", rows) as opened:
        result = run_race(opened, RaceSettings(), tmp_path / "out", quiet)
    assert result["means"]["render:"] == 1.0 and result["leaders"] == ["render:"]
    # It draws what is mentioned first on the left: right in one of the two orders.
    assert 0.2 < result["means"][biased] < 0.8
    assert len(seen) >= 6 and {labels[0] for labels in seen} == {"correct", "wrong"}


@pytest.mark.parametrize("name", SUITES)
def test_only_suites_with_right_and_wrong_images_are_raced(name: str, tmp_path: Path) -> None:
    suite = open_suite(name)
    assert suite.has_right_images == (type(suite).correctness is not Suite.correctness)
    live = LiveSettings(name, ("render:", "render:?order_bias=1"), "pixels", str(tmp_path))
    # A suite that can be raced gets as far as reading the release.
    file = tmp_path if name == "own_prompts" else tmp_path / "checksums.json"
    code, fact = ("no-such-file", file) if suite.has_right_images else ("unsupported", name)
    with raises(code, fact):
        race_live(live, RaceSettings(), tmp_path / "out", quiet)


class Making:
    """A generator that counts what it makes; stops the process, as it were, where it is told."""

    def __init__(self, gray: int, stop_at: int = -1) -> None:
        self.gray, self.stop_at = gray, stop_at
        self.made: Counter[str] = Counter()

    def generate(self, request: ImageRequest) -> Image.Image:
        if self.made.total() == self.stop_at:
            raise KeyboardInterrupt
        assert request.case is not None
        self.made[request.case.id] += 1
        return Image.new("RGB", (32, 32), (self.gray,) * 3)

    def identity(self) -> dict[str, str]:
        return {"kind": "making", "gray": str(self.gray)}


def made_race(
    out: Path, monkeypatch: pytest.MonkeyPatch, making: Sequence[Making], judge: Brightness
) -> dict[str, Any]:
    generators = dict(zip("ab", making, strict=True))
    monkeypatch.setattr(racing, "as_generator", generators.__getitem__)
    monkeypatch.setattr(racing, "as_judge", lambda spec, plan: judge)
    with Live(settings_of("ab"), out, rules(40)) as live:
        return run_race(live, RaceSettings(), out, quiet)


@pytest.mark.parametrize("stop", ["making", "judging"])
def test_a_stopped_race_goes_on_and_makes_and_asks_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    whole = [Making(255), Making(10)]
    expected = made_race(tmp_path / "whole", monkeypatch, whole, Brightness())
    assert expected["ending"] == "decided"
    out = tmp_path / "parts"
    before = [Making(255, stop_at=3 if stop == "making" else -1), Making(10)]
    first = Brightness(stop_at=5 if stop == "judging" else -1)
    with pytest.raises(KeyboardInterrupt):
        made_race(out, monkeypatch, before, first)
    assert not (out / "result.json").exists()
    with (out / "runs" / "0" / "images.jsonl").open("a") as file:
        file.write('{"case": "a", "st')
    after, second = [Making(255), Making(10)], Brightness()
    assert made_race(out, monkeypatch, after, second) == expected
    for all_made, *parts in zip(whole, before, after, strict=True):
        assert parts[0].made + parts[1].made == all_made.made
    assert set((first.asked + second.asked).values()) == {1}
    result = [(tmp_path / name / "result.json").read_bytes() for name in ("whole", "parts")]
    assert result[0] == result[1]
    idle, unasked = [Making(255, stop_at=0), Making(10, stop_at=0)], Brightness(stop_at=0)
    assert made_race(out, monkeypatch, idle, unasked) == expected
    with (
        Live(settings_of("ab"), out, rules(40)) as live,
        raises("another-run", out, error=UsageError),
    ):
        run_race(live, RaceSettings(seed=1), out, quiet)


def seen_by_server(body: dict[str, Any]) -> str:
    """What an honest model says of a bright or dark image, by the digits of the prompt."""
    parts = body["messages"][-1]["content"]
    url = next(part["image_url"]["url"] for part in parts if part["type"] == "image_url")
    text = next(part["text"] for part in parts if part["type"] == "text")
    bright = np.asarray(Image.open(BytesIO(b64decode(url.partition(",")[2])))).mean() > 128
    found = re.search(rf"(\d): {'yes' if bright else 'no'}", text, re.IGNORECASE)
    assert found is not None, text
    return found[1]


def test_a_judge_behind_a_server_is_paid_once_and_under_a_cap(tmp_path: Path, server: Any) -> None:
    server.answer = seen_by_server
    rows, out = rules(40), tmp_path / "out"
    prices = tmp_path / "prices.yaml"
    prices.write_text("openai:m-1: {input: 1000, output: 1000}\n")
    specs = folders(tmp_path, rows)

    def go(max_usd: float) -> dict[str, Any]:
        cost = Cost(max_usd=max_usd, prices=prices)
        live = replace(settings_of(specs, cost=cost), judge=server.spec("openai"))
        with Live(live, out, rows) as opened:
            return run_race(opened, RaceSettings(), out, quiet)

    with raises("over-budget", "8.3", error=BudgetError):
        go(8.3)  # a call may cost 7.75, and costs 0.15
    assert server.paid == 4 and not (out / "result.json").exists()
    result = go(100)
    assert result["leaders"] == [specs[0]] and result["means"][specs[0]] == 1.0
    paid = server.paid
    assert paid == result["items"] * 2 - result["failures"][specs[1]]["missing"]
    assert go(100) == result and server.paid == paid


def test_a_race_in_which_nothing_can_be_scored_fails_with_the_first_cause(
    tmp_path: Path, server: Any, fault: Any
) -> None:
    rows, out = rules(8), tmp_path / "out"
    live = replace(settings_of(folders(tmp_path, rows)), judge=server.spec("openai"))
    with Live(live, out, rows) as opened:
        server.faults += [fault(status=400, message="out of memory")] * 64
        with raises("all-failed", "of memory", error=RunFailed):
            run_race(opened, RaceSettings(), out, quiet)


def test_the_command_on_recorded_scores(tmp_path: Path, cli: Run) -> None:
    table = simulated([0.3, 0.8], seed=5, n=300)
    for name, row in zip("ab", table, strict=True):
        rows = [{"sample_id": i, "pse": v} for i, v in zip(ITEMS, row.tolist(), strict=False)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    files = [w for n in "ab" for w in ("--scores", f"{n}={tmp_path / n}.jsonl")]
    out = tmp_path / "race"
    done = cli("study", "race", *files, "--metric", "pse", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["leaders"] == ["b"]
    for name, row in zip("ab", table, strict=True):  # the same, of ten laws
        rows = [
            {"sample_id": item, "pse": value, "cluster": f"law{int(item[1:]) % 10}"}
            for item, value in zip(ITEMS, row.tolist(), strict=False)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    laws_race = cli(
        "study", "race", *files, "--metric", "pse", "--out", tmp_path / "laws", "--json"
    )
    decided = json.loads(laws_race.stdout)
    assert decided["clusters"] == 10 and decided["ending"] == "exhausted"
    with (tmp_path / "b.jsonl").open("a") as file:
        file.write(json.dumps({"sample_id": "i09999", "pse": 1, "cluster": "law1"}) + "\n")
    (tmp_path / "a.jsonl").write_text('{"sample_id": "i09999", "pse": 0, "cluster": "law2"}\n')
    other = cli("study", "race", *files, "--metric", "pse", "--out", tmp_path / "contradiction")
    assert_refused(other, "conflicting-labels", "b.jsonl:301", "i09999", "law1", "law2")
    (tmp_path / "a.jsonl").write_text('{"sample_id": "i09999", "pse": 0, "cluster": "law1"}\n')
    wrong = cli("study", "race", *files, "--metric", "clip", "--out", tmp_path / "other")
    assert_refused(wrong, "unknown-name", "a.jsonl", "metric", "'clip'", "pse")
    none = cli("study", "race", "--out", tmp_path / "other")
    assert_refused(none, "missing-option", "--scores", "--suite", "--generator", "--judge")


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


# Judges by rule, and the bandit's course.


def test_regret_and_pulls_are_the_bandits_course(tmp_path: Path, cli: Run) -> None:
    found = raced(simulated([0.2, 0.26, 0.66], seed=1), RaceSettings("ucb"))
    counts = Counter(found.choices)
    assert len(found.choices) == len(found.regret) == 100
    assert found.pulls == {name: counts[name] + 1 for name in ("g0", "g1", "g2")}
    assert found.pulls["g2"] == max(found.pulls.values())
    steps = np.diff([0, *found.regret])
    assert (steps >= 0).all() and (steps[np.array(found.choices) == "g2"] == 0).all()
    # It learns: the second half loses less than the first.
    assert found.regret[-1] - found.regret[49] < found.regret[49]
    assert raced(simulated([0.2, 0.6], seed=1)).pulls == {}
    table = simulated([0.3, 0.8], seed=5, n=300)
    for name, row in zip("ab", table, strict=True):
        rows = [{"sample_id": i, "pse": v} for i, v in zip(ITEMS, row.tolist(), strict=False)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    files = [w for n in "ab" for w in ("--scores", f"{n}={tmp_path / n}.jsonl")]
    options = ("--metric", "pse", "--policy", "ucb", "--rounds", "12", "--out", tmp_path / "race")
    done = cli("study", "race", *files, *options)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^pulls\.b\s+\d+$", done.stdout, re.MULTILINE)
    assert re.search(r"^regret\s+\d+\.\d{4}$", done.stdout, re.MULTILINE)
    figure = ElementTree.fromstring((tmp_path / "race" / "race.svg").read_text())
    words = [element.text or "" for element in figure.iter() if element.tag.endswith("text")]
    pulls = json.loads((tmp_path / "race" / "result.json").read_text())["pulls"]
    assert pulls["a"] + pulls["b"] == 14
    assert {f"{name}: {count} pulls" for name, count in pulls.items()} <= set(words)


def drawn(body: dict[str, Any], shift: int) -> bytes:
    """A red cat and a blue dog, as far to the right as told, so that PSE is in between."""
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[:, shift : 32 + shift, 0] = 255
    pixels[:, 32:, 2] = 255
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


class Colors:
    """Finds the cat where it is red and the dog where it is blue."""

    def identity(self) -> dict[str, str]:
        return {"kind": "colors"}

    def detect(self, requests: Sequence[Any]) -> list[list[Detection]]:
        found = []
        for request in requests:
            pixels = np.asarray(request.image)
            masks = {"cat": pixels[..., 0] > 128, "dog": pixels[..., 2] > 128}
            boxed = [(n, m, mask_box(m)) for n, m in masks.items()]
            found.append([Detection(n, 0.9, b, m) for n, m, b in boxed if b is not None])
        return found


def test_paid_generators_race_by_pse_under_one_cap(
    tmp_path: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        racing, "as_judge", lambda spec, plan: MetricJudge(METRICS["pse"], Colors())
    )
    shift = {"far": 0, "near": 16}
    server.draw = lambda body: drawn(body, shift[body["model"]])
    prices = tmp_path / "prices.yaml"
    prices.write_text(
        "".join(f"openai-image:{name}: {{image: 0.04, edit: 0.04}}\n" for name in shift)
    )
    prompts = tmp_path / "p.txt"
    prompts.write_text("".join(f"A cat to the left of a dog; take {n}.\n" for n in range(9)))
    specs = tuple(f"openai-image:{name}@{server.url}/v1?attempts=1" for name in shift)
    out = tmp_path / "out"

    def go(max_usd: float, by: Any) -> dict[str, Any]:
        live = LiveSettings(
            suite="own_prompts",
            generators=specs,
            judge="pse",
            data=str(prompts),
            cost=Cost(max_usd=max_usd, prices=prices),
            by=by,
        )
        return race_live(live, RaceSettings("ucb", rounds=6), out, quiet)

    with raises("over-budget", error=BudgetError):
        go(0.2, "number")
    assert len(server.asked) == 5 and not (out / "result.json").exists()
    result = go(2, "number")
    assert result["means"][specs[0]] == 1.0
    assert result["means"][specs[1]] == pytest.approx(0.75)
    assert result["leaders"] == [specs[0]] and sum(result["pulls"].values()) == 8
    assert result["regret"] == sorted(result["regret"])
    # Nothing is paid twice, and each image once.
    assert len(server.asked) == sum(result["images"].values())
    assert go(2, "number") == result and len(server.asked) == sum(result["images"].values())
    with raises("another-run", error=UsageError):
        go(2, "label")  # by label both are right: PSE is above one half
    with raises("unknown-name", "worth", "--by", error=UsageError):
        go(2, "worth")
