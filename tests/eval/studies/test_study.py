"""A study does what is missing, once, whatever happens meanwhile."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import study_doubles as doubles
import yaml
from forking import ForkedProcess, ForkingCommand
from refusals import assert_refused, raises

from counterprior.errors import InUseError
from counterprior.eval.api import prompts
from counterprior.eval.core import ImageRequest
from counterprior.eval.engine.run import Run, RunError
from counterprior.eval.generators import open_generator
from counterprior.eval.results.scoring import ScoreSettings, score_runs
from counterprior.eval.studies.folder import Study
from counterprior.eval.studies.formats import format_table
from counterprior.eval.studies.runner import run_study
from counterprior.eval.studies.status import study_status
from counterprior.eval.studies.table import study_table
from counterprior.eval.workers.farm import IN_PROCESS, Scale
from counterprior.storage import Lock

Plain = dict[str, Any]
Cli = Callable[..., subprocess.CompletedProcess[str]]


def study_of(data: Path, **changes: Any) -> Plain:
    """Two suites, two generators, two judges; 24 images, 48 questions and their swapped ones."""
    suites = {"t2i_homogenization": {"limit": 3}, "spatial_uc": {"limit": 4}}
    two = doubles.study_file(data, suites, painters=["red", "blue"], readers=["ann", "ben"])
    return two | {"probes": ["swap"]} | changes


def states(study: Study) -> Counter[str]:
    return Counter(status.state for status in study_status(study))


def work_of(did: Counter[str]) -> dict[str, int]:
    """How often each image was made and each question asked."""
    return {n: c for n, c in did.items() if not n.startswith(("opened", "loaded"))}


def test_every_cell_is_done_and_each_model_is_loaded_once(
    text_release: Path, tmp_path: Path
) -> None:
    seen: list[str] = []
    done = run_study(
        study_of(text_release), tmp_path, progress=lambda stage, done, total: seen.append(stage)
    )
    assert not done.failures and states(done.study) == {"done": 8}
    for name in ("red", "blue", "ann", "ben"):
        assert doubles.DID[f"opened {name}"] == doubles.DID[f"loaded {name}"] == 1
    assert doubles.MOST == [1], "two models were in memory at the same time"
    assert {"spatial_uc x red, images", "spatial_uc x blue x ben, verdicts"} <= set(seen)
    for folder in tmp_path.glob("runs/*/*"):
        run = Run.open(folder)
        assert len(run.present()) == len(run.cases()) and len(run.judges()) == 2
    roots = sorted(tmp_path.glob("runs/*/*"))
    assert len(score_runs(roots, ScoreSettings(groups=False))) == 8


def test_again_does_nothing_and_a_new_generator_costs_its_own_part(
    text_release: Path, tmp_path: Path
) -> None:
    plain = study_of(text_release)
    run_study(plain, tmp_path)
    doubles.reset()
    run_study(plain, tmp_path)
    assert not doubles.DID
    plain["generators"]["green"] = "python:study_doubles:painter?name=green"
    done = run_study(plain, tmp_path)
    assert states(done.study) == {"done": 12}
    assert {name.split()[0] for name in doubles.DID} == {"opened", "loaded", "green", "ann", "ben"}
    images = sum(n for name, n in doubles.DID.items() if name.startswith("green"))
    asked = sum(n for name, n in doubles.DID.items() if name.startswith("ann "))
    assert images == 6 + 4 and asked == 2 * images  # each question and its swapped one


def test_stopped_at_any_moment_nothing_is_done_twice(text_release: Path, tmp_path: Path) -> None:
    plain = study_of(text_release, suites={"spatial_uc": {"limit": 6}})
    whole = run_study(plain, tmp_path / "whole").table()
    once = work_of(doubles.DID)
    rng = random.Random(7)
    doubles.reset()
    for _ in range(8):
        left = [rng.randrange(1, 7)]

        def before(left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt

        doubles.BEFORE[:] = [before]
        with pytest.raises(KeyboardInterrupt):
            run_study(plain, tmp_path / "cut")
    doubles.BEFORE.clear()
    done = run_study(plain, tmp_path / "cut")
    assert done.table() == whole
    assert work_of(doubles.DID) == once and once


def test_a_cell_that_fails_does_not_hold_up_the_others(text_release: Path, tmp_path: Path) -> None:
    plain = study_of(text_release)
    plain["generators"]["torn"] = "python:study_doubles:painter?name=torn&loads=no"
    plain["judges"] |= {
        "dark": "python:study_doubles:broken",
        "shut": "python:study_doubles:keyless",
        "rent": "python:study_doubles:reader?name=rent&loads=no",
    }
    done = run_study(plain, tmp_path)
    causes = {(f.cell.generator, f.cell.judge): f.cause for f in done.failures}
    assert len(done.failures) == 2 * (5 + 3 + 3)
    assert "torn can't be loaded" in causes["torn", "ann"]
    assert "all 12 calls failed; the first: broken has no lamp" in causes["red", "dark"] or (
        "all 8 calls failed; the first: broken has no lamp" in causes["red", "dark"]
    )
    assert "no key: set THE_KEY" in causes["blue", "shut"]
    assert "rent can't be loaded" in causes["blue", "rent"]
    assert states(done.study) == {"done": 8, "failed": 22}
    table = done.table()
    assert "(incomplete)" in table and "broken has no lamp" in table
    # What was missing is mended: only that is done.
    doubles.reset()
    plain["generators"]["torn"] = "python:study_doubles:painter?name=torn"
    del plain["judges"]["dark"], plain["judges"]["rent"], plain["judges"]["shut"]
    again = run_study(plain, tmp_path)
    assert not again.failures and states(again.study) == {"done": 12}
    assert not any(name.startswith(("red", "blue")) for name in doubles.DID)


def test_what_was_done_stays_done_where_a_judge_is_gone_later(
    text_release: Path, tmp_path: Path
) -> None:
    plain = study_of(text_release, suites={"spatial_uc": {"limit": 2}})
    run_study(plain, tmp_path)
    plain["generators"]["green"] = "python:study_doubles:painter?name=green"
    doubles.SHUT.add("ann")
    done = run_study(plain, tmp_path)
    assert [(f.cell.generator, f.cell.judge, f.cause) for f in done.failures] == [
        ("green", "ann", "ann is shut")
    ]
    assert states(done.study) == {"done": 5, "failed": 1}


def test_a_replaced_image_is_no_longer_done_and_judged_again(
    text_release: Path, tmp_path: Path
) -> None:
    plain = study_of(text_release, suites={"spatial_uc": {"limit": 4}}, probes=[])
    del plain["judges"]["ben"], plain["generators"]["blue"]
    made = run_study(plain, tmp_path / "made")
    images = tmp_path / "made/runs/spatial_uc/red/images"
    plain["generators"] = {"mine": f"folder:{images}"}
    assert states(run_study(plain, tmp_path / "mine").study) == states(made.study) == {"done": 1}
    first = sorted(images.iterdir())[0]
    first.write_bytes(sorted(images.iterdir())[1].read_bytes())
    (status,) = study_status(Study.open(tmp_path / "mine"))
    assert status.state == "verdicts" and status.gap.startswith("judged in part")
    doubles.reset()
    done = run_study(plain, tmp_path / "mine")
    assert states(done.study) == {"done": 1}
    assert [name for name in doubles.DID if name.startswith("ann ")] == [
        name for name in doubles.DID if first.stem in name
    ]


def test_an_image_of_its_own_that_was_replaced_is_named_and_made_again(
    text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    plain = study_of(text_release, suites={"spatial_uc": {"limit": 4}}, probes=[])
    del plain["judges"]["ben"], plain["generators"]["blue"]
    run_study(plain, tmp_path)
    first, second, *_ = sorted(tmp_path.glob("runs/spatial_uc/red/images/*"))
    drawn = first.read_bytes()
    first.write_bytes(second.read_bytes())
    run_study(plain, tmp_path)
    said = f"spatial_uc x red: 1 image could not be made, the first: images/{first.name} is not the"
    assert said in " ".join(cli("study", "status", tmp_path).stdout.split())
    run_study(plain, tmp_path)
    assert first.read_bytes() == drawn
    assert "could not be made" not in cli("study", "status", tmp_path).stdout


def test_a_judge_whose_server_is_gone_is_left_alone(
    text_release: Path, tmp_path: Path, server: Any, naps: list[float]
) -> None:
    plain = study_of(text_release)
    plain["judges"] = {"gone": server.spec("openai"), "ann": plain["judges"]["ann"]}
    server.close()
    done = run_study(plain, tmp_path)
    assert {f.cell.judge for f in done.failures} == {"gone"} and len(done.failures) == 4
    assert not list(tmp_path.glob("runs/*/*/verdicts/openai-*/verdicts.jsonl"))
    assert states(done.study) == {"done": 4, "failed": 4}


def test_a_judge_without_an_answer_that_counts_fails_its_cells(
    text_release: Path, tmp_path: Path
) -> None:
    mute = study_of(text_release, scorers={}, judges={"mute": "python:gold_judges:mute"})
    for _ in range(2):  # also where nothing is left to ask
        done = run_study(mute, tmp_path)
        assert [f.cell.judge for f in done.failures] == ["mute"] * 4
        assert all("mute gave no answer that counts: " in f.cause for f in done.failures)
    assert states(done.study) == {"done": 4}, "all was asked"


def test_listed_seeds_are_those_of_every_prompt(
    text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    suites = {"spatial_uc": {"limit": 4, "seeds": [0, 3]}}
    plain = doubles.study_file(text_release, suites, painters=["red"], readers=["ann"])
    run_study(plain, tmp_path)
    run = Run.open(next(tmp_path.glob("runs/*/*")))
    assert run.header.common_seeds == (0, 3) and run.header.seeds == 2
    assert [case.seed for case in run.cases()] == [0, 3] * 4
    assert len({case.row for case in run.cases()}) == 4
    printed = cli("study", "table", tmp_path, "--as", "spatialbench-uc-7")
    assert printed.returncode == 0 and "seeds 0, 3, digest" in printed.stdout, printed.stderr


CONTRADICTIONS: dict[str, tuple[Plain, tuple[str, ...]]] = {
    "limit": (
        {"suites": {"t2i_homogenization": {"limit": 2}, "spatial_uc": {"limit": 4}}},
        ("t2i_homogenization/blue", "limit 3", " 2"),
    ),
    "seeds": (
        {"except": [{"generator": "red", "seeds": 2}]},
        ("/red ", "seeds 1", " 2"),
    ),
    "seeds of all prompts": (
        {"except": [{"generator": "red", "seeds": [7]}]},
        ("/red ", "seeds 1", " (7,)"),
    ),
    "generator": (
        {"generators": {"red": "python:study_doubles:painter?name=pink"}},
        ("'t2i_homogenization/red'", "painter?name=red", "painter?name=pink"),
    ),
    "judge": (
        {"judges": {"ann": "python:study_doubles:reader?name=eve"}},
        ("judge 'ann'", "reader?name=eve"),
    ),
    "study": (
        {"generators": {"grey": "python:study_doubles:painter?name=grey"}},
        ("spatial_uc/blue",),
    ),
}


@pytest.fixture(scope="module")
def finished(text_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "study"
    run_study(study_of(text_release), out)
    return out


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_file_that_contradicts_what_is_there_is_refused(
    name: str, text_release: Path, finished: Path
) -> None:
    changes, facts = CONTRADICTIONS[name]
    before = {p: p.read_bytes() for p in finished.rglob("*") if p.is_file()}
    with raises("another-run", *facts, error=RunError):
        run_study(study_of(text_release, **changes), finished)
    assert {p: p.read_bytes() for p in finished.rglob("*") if p.is_file()} == before


def test_folders_of_something_else(text_release: Path, tmp_path: Path, finished: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with raises("not-a-study", tmp_path, "not empty"):
        run_study(study_of(text_release), tmp_path)
    with raises("not-a-study", tmp_path, "study run"):
        Study.open(tmp_path)
    with (
        Lock(finished / "study.lock", "a test"),
        raises("in-use", finished, error=InUseError),
    ):
        run_study(study_of(text_release), finished)


def test_one_cap_holds_over_generators_and_judges(
    text_release: Path, tmp_path: Path, server: Any
) -> None:
    prices = tmp_path / "prices.yaml"
    each = {"input": 1000, "output": 1000}  # an answer of the server: 100 + 10 tokens
    prices.write_text(yaml.safe_dump({"openai:m-1": each, "openai:m-2": each}))
    server.answer = lambda body: "1"
    judges = {"one": server.spec("openai"), "two": server.spec("openai").replace("m-1", "m-2")}
    out = tmp_path / "study"
    plain = study_of(text_release, judges=judges, prices=str(prices), concurrency=1, probes=[])
    done = run_study(plain, out, max_usd=10)
    assert {f.cell.judge for f in done.failures} >= {"two"}
    assert all("the cap of 10 USD" in f.cause for f in done.failures)
    first = server.paid
    assert first and done.spending.usd <= 10
    stopped = run_study(plain, out, max_usd=10)
    assert server.paid == first and stopped.failures, "what was spent before counts"
    whole = run_study(plain, out, max_usd=100_000)
    assert not whole.failures
    assert server.paid == 2 * (2 * 6 + 2 * 4)


@pytest.mark.slow
def test_the_command_line_says_what_failed(text_release: Path, tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "s.yaml"
    plain = study_of(text_release)
    plain |= {
        "suites": {"t2i_homogenization": {"limit": 2}},
        "generators": {"fair": "render:"},
        "judges": {"px": "pixels", "shut": "boxes:gone.jsonl"},
        "probes": [],
    }
    file.write_text(yaml.safe_dump(plain))
    done = cli("study", "run", file, "--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "x fair x shut: " in done.stderr and "Traceback" not in done.stderr
    assert "t2i_homogenization x fair x px, verdicts: 4/4" in done.stderr
    assert "2 cells: 1 done, 1 failed" in done.stdout
    table = cli("study", "table", tmp_path / "out", "--format", "json", cwd=tmp_path)
    found = json.loads(table.stdout)
    assert table.returncode == 0 and not found["complete"] and "is not complete" in table.stderr
    status = json.loads(cli("study", "status", tmp_path / "out", "--json").stdout)
    assert [one["state"] for one in status] == ["done", "failed"]
    report = cli("report", tmp_path / "out", "--out", tmp_path / "site")
    assert_refused(report, "incomplete-run", tmp_path / "out", "1 of", "x shut", exit_code=1)
    place = (tmp_path / "out", "--out", tmp_path / "site", "--partial")
    report = cli("report", *place, "--export", "inspect")
    first_page = (tmp_path / "site" / "index.html").read_text()
    assert report.returncode == 0 and "by px; 95 % CI" in first_page, "the study's own name"
    (log,) = (tmp_path / "site" / "export" / "inspect").glob("*.json")
    exported = json.loads(log.read_text())
    assert "_t2i-homogenization_" in log.name and exported["results"]["scores"]
    assert all(sample["attachments"] for sample in exported["samples"])


WRONG = {
    "no file": (["run", "gone.yaml", "--out", "o"], ("no-such-file", "gone.yaml:")),
    "no data": (
        ["run", "s.yaml", "--trust", "--out", "o", "--set", "data=dist/gone"],
        ("no-such-file", "dist/gone"),
    ),
    "no study": (["table", "."], ("not-a-study", ".")),
    "no recipe": (["recipes", "ots-bench"], ("unknown-name", "'ots-bench'", "ots-bench-")),
    "no key": (
        ["run", "s.yaml", "--out", "o", "--set", "jugdes.x=pixels"],
        ("unknown-field", "'jugdes'", "judges"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_words_on_the_command_line(
    name: str, text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    words, (code, *facts) = WRONG[name]
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(study_of(text_release)))
    done = cli("study", *words, cwd=tmp_path)
    assert_refused(done, code, *facts, exit_code=1 if name == "no study" else 2)
    assert not (tmp_path / "o" / "cells.jsonl").exists()


OTS = ["t2i_homogenization", "t2i_correctness", "i2i_homogenization", "i2i_correctness"]


def paper_study(
    data: Path, suites: list[str], limit: int, server: Any, folder: Path, cli: Cli
) -> Path:
    """The recipe of OTS-Bench's Table 4 with renderers of set bias and two judges."""
    server.answer = lambda body: str(1 + random.Random(json.dumps(body)).randrange(3))
    plain = yaml.safe_load(cli("study", "recipes", "ots-bench-4").stdout)
    plain |= {
        "data": str(data),
        "suites": {suite: {"limit": limit} for suite in suites},
        "generators": {
            "SDXL": "render:",
            "FLUX-dev": "render:?order_bias=2",
            "Qwen-Image": "render:?order_bias=4&binding_bias=0.5",
        },
        "judges": {
            "Qwen3-VL-8B": server.spec("openai"),
            "other": server.spec("openai").replace("m-1", "m-2"),
        },
        "except": [],
    }
    file = folder / "ots.yaml"
    file.write_text(yaml.safe_dump(plain, sort_keys=False))
    return file


def killed_and_whole(
    file: Path, tmp_path: Path, server: Any, cli: ForkingCommand, *, kills: int, longest: int
) -> tuple[str, str]:
    """The table of a study that was killed so often, and of one that never was."""

    def table(out: Path) -> str:
        return format_table(study_table(Study.open(out)), "md")

    def start(out: Path) -> ForkedProcess:
        return cli.start("study", "run", file, "--out", out, "--trust")

    def finish(out: Path) -> None:
        running = start(out)
        assert running.wait() == 0, running.read("stderr")

    def work(out: Path) -> int:
        logs = [*out.glob("runs/*/*/images.jsonl"), *out.glob("runs/*/*/verdicts/*/verdicts.jsonl")]
        return sum(log.read_bytes().count(b"\n") for log in logs)

    rng, cut, whole = random.Random(3), tmp_path / "cut", tmp_path / "whole"
    for _ in range(kills):
        running, enough = start(cut), work(cut) + rng.randrange(1, longest)
        while running.poll() is None and work(cut) < enough:
            time.sleep(0.01)
        assert running.poll() is None, "it ended before it was killed"
        running.kill()
        running.wait()
    assert "(incomplete)" in table(cut)
    finish(cut)
    paid = server.paid
    finish(whole)
    under_way = 8  # what a kill loses of paid calls, at most
    assert paid <= server.paid - paid + under_way * kills, "paid again for what was there"
    return table(cut), table(whole)


@pytest.mark.lane
def test_killed_eight_times_the_paper_s_table_is_the_same(
    full_release: Path, tmp_path: Path, server: Any, cli: ForkingCommand
) -> None:
    file = paper_study(full_release, OTS, 20, server, tmp_path, cli)
    cut, whole = killed_and_whole(file, tmp_path, server, cli, kills=8, longest=60)
    assert cut == whole
    assert "(incomplete)" not in whole and "I2I Ali - Rev" in whole


def test_searches_of_a_study_share_their_images(text_release: Path, tmp_path: Path) -> None:
    asked = study_of(
        text_release,
        suites={"spatial_uc": {"limit": 4}},
        generators={"red": "python:study_doubles:painter?name=red"},
        methods={
            "two": "best-of:2?by=python:study_doubles:grader%3Fname%3Done",
            "five": "best-of:5?by=python:study_doubles:grader%3Fname%3Done",
            "other": "best-of:4?by=python:study_doubles:grader%3Fname%3Dtwo",
        },
        judges={"ann": "python:study_doubles:reader?name=ann"},
        probes=[],
    )
    done = run_study(asked, tmp_path / "study")
    assert not done.failures
    cases = {n: count for n, count in doubles.DID.items() if n.startswith("red ")}
    assert len(cases) == 4 and set(cases.values()) == {5}, "of 1 + 2 + 5 + 4 images"
    for method in ("two", "five", "other"):
        doubles.reset()
        only = asked | {"methods": {method: asked["methods"][method]}}
        alone = run_study(only, tmp_path / method)
        assert not alone.failures
        for folder in ("candidates", "images", "candidates.jsonl"):
            together, apart = (
                files_of(root / "runs" / "spatial_uc" / f"red+{method}" / folder)
                for root in (tmp_path / "study", tmp_path / method)
            )
            assert together == apart and together


def files_of(path: Path) -> dict[str, bytes]:
    """Name -> bytes of the files in a folder, or of one file."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def test_methods_are_generators_of_their_own(text_release: Path, tmp_path: Path) -> None:
    asked = study_of(
        text_release,
        suites={"t2i_homogenization": {"limit": 2}},
        generators={"fair": "render:?order_bias=2&decides=4"},
        methods={"late": "switch:b2a?at=3"},
        judges={"pixels": "pixels"},
        scorers={"eva": "python:study_doubles:grader?name=eva"},
        probes=[],
    )
    done = run_study(asked, tmp_path / "study")
    assert not done.failures
    runs = {cell.generator: done.study.run_of(cell) for cell in done.study.cells}
    assert set(runs) == {"fair", "fair+late"}
    identities = {name: run.header.generator for name, run in runs.items() if run}
    assert "method" not in identities["fair"]
    assert identities["fair+late"]["method"].startswith("switch")
    table = study_table(done.study)
    (report,) = table.changes
    assert [(c.first, c.kind, c.scorer, c.n) for c in report.changes] == [
        ("fair+late", "bias", "pixels", 2),  # rows in both orders of mention
        ("fair+late", "quality", "eva", 4),
    ]
    assert [line.cells[1].score.value for line in table.lines if line.cells[1].score] == [
        report.changes[1].before,
        report.changes[1].after,
    ]
    told = format_table(table, "md").partition("against fair")[2]
    assert told.count("| fair+late |") == 2
    # Another method under the same name is another generator, and refused by name.
    with raises("another-run", "late"):
        run_study(asked | {"methods": {"late": "switch:b2a?at=4"}}, tmp_path / "study")


@pytest.mark.lane
def test_workers_give_the_table_of_one_process(text_release: Path, tmp_path: Path) -> None:
    asked = study_of(
        text_release,
        suites={"t2i_homogenization": {"limit": 4}},
        generators={"fair": "render:", "biased": "render:?order_bias=2"},
        judges={"pixels": "pixels", "visor": "visor:pixels"},
    )
    tables = []
    for name, scale in (("one", IN_PROCESS), ("two", Scale(workers=2))):
        done = run_study(asked, tmp_path / name, scale=scale)
        assert not done.failures
        tables.append(format_table(study_table(done.study), "json"))
    assert tables[0] == tables[1]
    # What workers see is kept, too, for the next rule.
    kept = [
        {p.name: p.read_bytes() for p in (tmp_path / name / "detections").glob("*/*.json")}
        for name in ("one", "two")
    ]
    assert kept[0] == kept[1] and kept[0]


@pytest.mark.slow
def test_summaries_say_why_a_judge_failed(text_release: Path, tmp_path: Path, cli: Cli) -> None:
    suite = "t2i_homogenization"
    render, images = open_generator("render:"), tmp_path / "images"
    images.mkdir()
    widths = [300, 300, 300, 301, 301, 302, 303]
    for number, case in enumerate(prompts(suite, data=str(text_release), limit=4)):
        image = render.generate(ImageRequest(case.prompt, case.seed))
        size = (widths[number], 200) if number < len(widths) else image.size
        image.resize(size).save(images / case.file)
    plain = {
        "data": str(text_release),
        "suites": {suite: {"limit": 4}},
        "generators": {"mine": f"folder:{images}"},
        "judges": {"px": "pixels"},
    }
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(plain))
    why = "pixels: the image is {} x 200, rendered ones are 512 x 384"
    most = ("3 errors{}: " + why.format(300), "2 errors{}: " + why.format(301))
    rest = "1 error{}: for 1 other reason"
    ran = cli("study", "run", tmp_path / "s.yaml", "--out", tmp_path / "out").stdout
    status = cli("study", "status", tmp_path / "out").stdout
    where = ("--suite", suite, "--data", text_release, "--limit", 4, "--out", tmp_path / "run")
    judged = cli("eval", *where, "--generator", f"folder:{images}", "--judge", "pixels")
    scored = " ".join(judged.stdout.split())
    for reason in (*most, rest):
        assert reason.format("") in ran and reason.format("") in status
        assert f"counterprior: pixels: {reason.format('')}" in judged.stderr
        assert f"note: {reason.format(' of the judge')}" in scored
