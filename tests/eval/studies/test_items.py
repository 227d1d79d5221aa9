"""`study items`: difficulty and discrimination, by command and against simulated truth."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged import judged_run
from refusals import assert_refused, raises

from counterprior.eval.core import Case, Outcome, Verdict
from counterprior.eval.studies.items import ItemSettings, analyze_items, read_items
from counterprior.release import iter_records

Cli = Callable[..., subprocess.CompletedProcess[str]]
MISKEYED = (3, 17)
"""Items that better generators get wrong."""
STRANGE = 40
"""Item that the second judge always calls wrong."""


def simulated(generators: int, items: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Right or wrong, shape (generators, items), and the difficulties."""
    rng = np.random.default_rng(seed)
    abilities = np.linspace(-2, 2, generators)[:, None]
    difficulties = 2 * rng.normal(size=items)
    slopes = np.ones(items)
    difficulties[list(MISKEYED)], slopes[list(MISKEYED)] = 0, -2
    chance = 1 / (1 + np.exp(difficulties - slopes * abilities))
    return (rng.random((generators, items)) < chance).astype(float), difficulties


def written(root: Path, table: np.ndarray, second: np.ndarray | None = None) -> list[Path]:
    """A run of each generator; NaN is an answer that can't be read."""
    runs = []
    for number, row in enumerate(table):
        for judge, of_judge in (
            ("test", row),
            ("other", None if second is None else second[number]),
        ):
            if of_judge is None:
                continue
            outcomes = [
                Outcome(
                    Case(f"row{i:03}", "reverse", 0, 0, f"prompt {i}", (f"pair{i // 2}",)),
                    {("arrangement", "original"): Verdict(label_of(value))},
                )
                for i, value in enumerate(of_judge.tolist())
            ]
            judged_run(root / f"g{number:02}", outcomes, judge)
        runs.append(root / f"g{number:02}")
    return runs


def label_of(value: float) -> str:
    return "unparsed" if np.isnan(value) else "correct" if value else "wrong"


@pytest.mark.slow
def test_the_command_names_faulty_prompts_and_writes_a_short_form(tmp_path: Path, cli: Cli) -> None:
    table, difficulties = simulated(24, 120)
    table[0, :5] = np.nan
    second = table.copy()
    second[:, STRANGE] = 0
    table[:, STRANGE] = 1
    runs = written(tmp_path / "runs", table, second)
    out = tmp_path / "items"
    done = cli("study", "items", *runs, "--out", out, "--judge", "test", "--short-form", 30)
    assert done.returncode == 0, done.stderr
    assert "120 prompts, 24 generators" in done.stdout and "2 negative" in done.stdout
    assert "5 of 2,880 answers missing" in done.stdout and "short form" in done.stdout
    report = read_items(out)
    by_flag = {item.item: item.flags for item in report.items if "negative" in item.flags}
    assert set(by_flag) == {f"row{n:03}-reverse" for n in MISKEYED}
    estimates = np.array([item.difficulty for item in report.items])
    errors = np.array([item.difficulty_error for item in report.items])
    usual = [n for n in range(120) if n not in (*MISKEYED, STRANGE)]
    assert np.corrcoef(estimates[usual], difficulties[usual])[0, 1] > 0.9
    inside = np.abs(estimates - difficulties)[usual] < 1.96 * errors[usual]
    assert inside.mean() > 0.88
    assert [item.n for item in report.items[:5]] == [23] * 5
    with (out / "items.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 120
    assert [float(line["difficulty"]) for line in lines] == sorted(
        (round(item.difficulty, 4) for item in report.items), reverse=True
    )
    short = (out / "short-form.txt").read_text().split()
    assert len(set(short)) == 30 and report.short_form is not None
    assert report.short_form.error < report.short_form.random_errors[30]
    # Two prompts of one pair only where every pair has one.
    assert len({int(item[3:6]) // 2 for item in short}) == 30


@pytest.mark.slow
def test_a_prompt_that_one_judge_reads_otherwise_is_named(tmp_path: Path) -> None:
    table, _ = simulated(16, 60, seed=1)
    rng = np.random.default_rng(2)
    second = np.where(rng.random(table.shape) < 0.15, 0.0, table)  # stricter on all
    table[:, STRANGE], second[:, STRANGE] = 0, 1
    runs = written(tmp_path / "runs", table, second)
    report = analyze_items(runs, tmp_path / "out", ItemSettings(judges=("test", "other")))
    assert report.judge.startswith("test")
    (name,) = report.items[0].judges
    flagged = [item.item for item in report.items if f"judge:{name}" in item.flags]
    assert flagged == [f"row{STRANGE:03}-reverse"]
    shift = report.items[STRANGE].judges[name]
    assert shift["shift"] < -3 and shift["interval"][1] < 0 and shift["n"] == 16


def test_a_generator_with_a_single_answer_does_not_spoil_the_model(tmp_path: Path) -> None:
    table, _ = simulated(6, 40)
    table[5, 1:] = np.nan
    analyze_items(written(tmp_path, table), tmp_path, ItemSettings(short_form=10))
    short_form = read_items(tmp_path).short_form
    assert short_form is not None and 0 < short_form.random_errors[10] < 1


def test_refusals_name_what_is_needed(tmp_path: Path, cli: Cli) -> None:
    table, _ = simulated(6, 30)
    runs = written(tmp_path / "runs", table)
    few = cli("study", "items", *runs[:4], "--out", tmp_path / "out")
    assert_refused(few, "too-few-items", "4 generators", "5 are needed")
    long = cli("study", "items", *runs, "--out", tmp_path / "out", "--short-form", 30)
    assert_refused(long, "out-of-range", "--short-form 30", "30 prompts")
    other = cli("study", "items", *runs, "--out", tmp_path / "out", "--suite", "counterfactual")
    assert_refused(other, "unknown-name", "counterfactual", "t2i_correctness")
    with raises("no-such-file", tmp_path / "nothing"):
        read_items(tmp_path / "nothing")
    (tmp_path / "items.json").write_text("[]")
    with raises("bad-format", "items.json"):
        read_items(tmp_path / "items.json")
    plain: dict[str, Any] = {"format": 1, "suite": 3}
    (tmp_path / "items.json").write_text(json.dumps(plain))
    with pytest.raises(Exception, match=r"items.json"):
        read_items(tmp_path)


@pytest.mark.slow
def test_a_run_of_a_short_form_has_its_prompts_alone(
    tmp_path: Path, text_release: Path, cli: Cli
) -> None:
    rows = [r["id"] for r in list(iter_records(text_release, "t2i_homogenization"))[:2]]
    listing = tmp_path / "prompts.jsonl"
    release = ("--suite", "t2i_homogenization", "--data", text_release)
    assert cli("prompts", *release, "--out", listing).returncode == 0
    cases = [json.loads(line) for line in listing.read_text().splitlines()]
    chosen = [f"{case['row']}-{case['variant']}" for case in cases if case["row"] in rows][:3]
    only = tmp_path / "short.txt"
    only.write_text("\n".join(chosen))
    assert cli("prompts", *release, "--ids", only, "--out", listing).returncode == 0
    listed = [json.loads(line) for line in listing.read_text().splitlines()]
    assert {f"{case['row']}-{case['variant']}" for case in listed} == set(chosen)
    few = ("prompts", *release, "--where", "pair_type=A-A,H-H", "--where", "first_kind=animal")
    assert cli(*few, "--limit", 3, "--out", listing).returncode == 0
    listed = [json.loads(line) for line in listing.read_text().splitlines()]
    kinds = {r["id"]: r["pair_type"] for r in iter_records(text_release, "t2i_homogenization")}
    assert [kinds[case["row"]] for case in listed] == ["A-A"] * 6
    others = sorted(set(kinds.values()) - {"A-A"})
    assert others and cli(*few[:-4], "--where", "pair_type!=A-A", "--out", listing).returncode == 0
    listed = [json.loads(line) for line in listing.read_text().splitlines()]
    assert sorted({kinds[case["row"]] for case in listed}) == others
    unknown, none = "unknown-name", "nothing-to-do"
    for choice, code in (("pair!=A-A", unknown), ("pair=A-A", unknown), ("pair_type=A", none)):
        wrong = cli("prompts", *release, "--where", choice, "--out", listing)
        assert_refused(wrong, code, "pair_type" if code == "unknown-name" else "'A-A'")
    command = ("eval", *release, "--generator", "render:", "--judge", "pixels", "--unchecked")
    run = tmp_path / "run"
    done = cli(*command, "--ids", only, "--seeds", 2, "--out", run, "--json")
    assert done.returncode == 0, done.stderr
    made = [json.loads(line) for line in (run / "cases.jsonl").read_text().splitlines()]
    assert len(made) == 2 * len(chosen)
    header = json.loads((run / "run.json").read_text())
    assert header["where"].startswith("only ") and header["rows"] == len(rows)
    text = cli(*command, "--ids", only, "--seeds", 2, "--out", run)
    assert text.returncode == 0 and f"rows: {len(rows)}, only " in text.stdout
    no_value = cli("prompts", *release, "--where", "pair_type", "--out", listing)
    assert_refused(no_value, "bad-format", "--where pair_type", "FIELD=VALUE")
    again = cli(*command, "--seeds", 2, "--out", run)
    assert_refused(again, "another-run", "where", exit_code=1)
    both = cli(*command, "--ids", only, "--limit", 4, "--out", tmp_path / "b")
    assert_refused(both, "conflicting-options", "--limit")
    only.write_text("nothing-like-it\n")
    unknown = cli(*command, "--ids", only, "--out", tmp_path / "c")
    assert_refused(unknown, "unknown-reference", "1 of 1", "nothing-like-it")
    only.write_text("")
    assert_refused(cli(*command, "--ids", only, "--out", tmp_path / "d"), "nothing-to-do")
    gone = cli(*command, "--ids", tmp_path / "gone", "--out", tmp_path / "e")
    assert_refused(gone, "no-such-file", "gone")


@pytest.mark.slow
def test_a_race_draws_by_the_model_and_names_one_that_does_not_fit(
    tmp_path: Path, cli: Cli
) -> None:
    table, _ = simulated(12, 120)
    out = tmp_path / "items"
    analyze_items(written(tmp_path / "runs", table), out)
    for name, row in (("worst", table[0]), ("best", table[-1])):
        lines = [
            json.dumps({"sample_id": f"row{n:03}-reverse-0", "right": value})
            for n, value in enumerate(row.tolist())
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    files = [w for n in ("worst", "best") for w in ("--scores", f"{n}={tmp_path / n}.jsonl")]
    race = ("study", "race", *files, "--metric", "right", "--json")
    plain = cli(*race, "--out", tmp_path / "plain")
    informed = cli(*race, "--items", out, "--out", tmp_path / "informed")
    assert informed.returncode == plain.returncode == 0, informed.stderr
    assert json.loads(informed.stdout)["leaders"] == json.loads(plain.stdout)["leaders"] == ["best"]
    again = cli(*race, "--items", out, "--out", tmp_path / "informed")
    assert again.stdout == informed.stdout
    other = cli(*race, "--out", tmp_path / "informed")
    assert_refused(other, "another-run", "informed")
    bandit = cli(*race, "--items", out, "--policy", "ucb", "--out", tmp_path / "bandit")
    assert_refused(bandit, "conflicting-options", "ucb")
    (tmp_path / "worst.jsonl").write_text('{"sample_id": "x", "right": 1}\n')
    (tmp_path / "best.jsonl").write_text('{"sample_id": "x", "right": 0}\n')
    foreign = cli(*race, "--items", out, "--out", tmp_path / "foreign")
    assert_refused(foreign, "wrong-suite", "t2i_correctness", "120 prompts")


@pytest.mark.slow
def test_a_run_of_some_prompts_is_scored_over_all_by_a_model(tmp_path: Path, cli: Cli) -> None:
    table, _ = simulated(21, 120)
    out = tmp_path / "items"
    runs = written(tmp_path / "runs", table)
    left_out = runs.pop(15)
    settings = ItemSettings(short_form=40)
    chosen = analyze_items(runs, out, settings).short_form
    assert chosen is not None
    part = np.full(120, np.nan)
    numbers = [int(item[3:6]) for item in chosen.items]
    part[numbers] = table[15, numbers]
    (run,) = written(tmp_path / "short", part[None, :])
    done = cli("study", "items", run, "--by", out, "--json")
    assert done.returncode == 0, done.stderr
    (score,) = json.loads(done.stdout)
    assert (score["n"], score["prompts"]) == (40, 120) and score["error"] >= chosen.error
    assert abs(score["value"] - table[15].mean()) < 0.1
    low, high = score["interval"]
    assert low < table[15].mean() < high and high - low < 0.4
    whole = json.loads(cli("study", "items", left_out, "--by", out, "--json").stdout)
    assert whole[0]["value"] == pytest.approx(table[15].mean())
    assert whole[0]["error"] == pytest.approx(0, abs=1e-9)
    assert "40 │ 120" in cli("study", "items", run, "--by", out).stdout
    assert_refused(cli("study", "items", run), "missing-option", "--out", "--by")
    both = cli("study", "items", run, "--by", out, "--short-form", 3)
    assert_refused(both, "conflicting-options", "--short-form")
    report = json.loads((out / "items.json").read_text())
    for field, code in (("rows_sha256", "different-rows"), ("judge", "different-judges")):
        (out / "items.json").write_text(json.dumps(report | {field: "9"}))
        assert_refused(cli("study", "items", run, "--by", out), code, "g00", exit_code=1)
