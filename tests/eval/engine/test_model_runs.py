"""Whole runs from the command line, with models in place of the renderer and the pixel judge."""

from __future__ import annotations

import json
import operator
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import assert_refused

from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import evaluate_run

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.slow
def test_a_command_is_judged_over_the_wire_and_paid_once(
    text_release: Path, tmp_path: Path, cli: Cli, server: Any
) -> None:
    draw = tmp_path / "draw.py"
    draw.write_text(
        "import random, sys\nfrom PIL import Image\nprompt, seed, output = sys.argv[1:]\n"
        "pixels = random.Random(prompt + seed).randbytes(32 * 32 * 3)\n"
        "Image.frombytes('RGB', (32, 32), pixels).save(output)\n"
    )
    command = shlex.join([sys.executable, str(draw)]) + " {prompt} {seed} {output}"
    prices = tmp_path / "prices.yaml"
    prices.write_text("openai:m-1: {input: 1, output: 1}\n")
    server.answer = lambda body: "1"
    run = tmp_path / "run"
    words: list[object] = [
        "eval",
        "--suite",
        "t2i_homogenization",
        "--data",
        text_release,
        "--limit",
        "3",
        "--generator",
        f"command:{command}",
        "--judge",
        server.spec("openai"),
        "--out",
        run,
        "--concurrency",
        "2",
        "--max-usd",
        "1",
        "--prices",
        prices,
    ]
    done = cli(*words)
    assert done.returncode == 0, done.stderr
    paid = server.paid
    assert paid == len(server.asked) > 0
    verdicts = next(run.glob("verdicts/openai-*/verdicts.jsonl"))
    before = [json.loads(line) for line in verdicts.read_text().splitlines()]
    assert len(before) == paid and {r["raw"] for r in before} == {"1"}
    verdicts.unlink()  # the verdicts are lost, what was paid is not
    again = cli(*words)
    assert again.returncode == 0, again.stderr
    key = operator.itemgetter("key")
    after = [json.loads(line) for line in verdicts.read_text().splitlines()]
    assert server.paid == paid and sorted(after, key=key) == sorted(before, key=key)
    written = [path for path in run.rglob("*") if path.is_file()]
    assert not [path for path in written if b"4f1c0de" in path.read_bytes()]


def two_rows(release: Path, out: Path) -> list[object]:
    """A command that draws two rows; a judge is still to be named."""
    return [
        "eval",
        "--suite",
        "t2i_homogenization",
        "--data",
        release,
        "--limit",
        "2",
        "--generator",
        "render:",
        "--out",
        out,
    ]


def test_a_cap_and_an_outage_are_one_line(
    text_release: Path, tmp_path: Path, cli: Cli, server: Any
) -> None:
    words = two_rows(text_release, tmp_path / "run")
    capped = cli(*words, "--judge", server.spec("openai"), "--max-usd", "1")
    assert_refused(capped, "no-price", "openai:m-1", "--max-usd", exit_code=1)
    assert server.asked == []
    spec = server.spec("openai", "attempts=1&timeout=5")
    server.close()
    gone = cli(*words, "--judge", spec)
    assert_refused(gone, "server-unreachable", "Connection", exit_code=1)
    assert "valid" not in gone.stdout
    assert not (tmp_path / "run" / "images").exists()  # nothing is made for a judge that is gone


@pytest.mark.slow
def test_a_judge_that_is_never_let_in_ends_the_run_with_the_cause(
    text_release: Path, tmp_path: Path, cli: Cli, server: Any, fault: Any
) -> None:
    words = [
        *two_rows(text_release, tmp_path / "run"),
        "--judge",
        server.spec("openai", "attempts=1&timeout=5"),
    ]
    server.faults.extend([fault(status=401, message="no such key")] * 40)
    refused = cli(*words)
    assert_refused(refused, "server-error", "no such key", exit_code=1)
    assert "valid" not in refused.stdout
    # Nothing that a wrong key gave counts as an answer, so there is nothing to score yet.
    assert_refused(cli("score", tmp_path / "run"), "nothing-judged", exit_code=1)
    server.faults.clear()
    server.answer = lambda body: "1"
    assert cli(*words).returncode == 0


@pytest.mark.slow
def test_a_pipeline_is_judged_by_a_local_model(
    text_release: Path, tmp_path: Path, checkpoint: Callable[[str], Path]
) -> None:
    pipeline = f"diffusers:{checkpoint('sd15')}?device=cpu&steps=2&height=64&width=64"
    judge = f"hf-vlm:{checkpoint('llava')}?device=cpu&min_mass=0"
    settings = RunSettings("t2i_homogenization", str(text_release), tmp_path, limit=1)
    done = evaluate_run(settings, pipeline, [judge])
    assert [image.status for image in done.run.images().values()] == ["made", "made"]
    ((log, _),) = done.judged
    assert len(list(log)) == 2
    for answered in log:
        verdict = answered.verdict
        assert verdict.label in answered.labels and 0 < (verdict.mass or 0) < 1
        assert sum((verdict.probabilities or {}).values()) == pytest.approx(1)
