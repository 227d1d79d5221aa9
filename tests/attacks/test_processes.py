"""Real processes that share a cap, are killed, interrupted and settled."""

from __future__ import annotations

import io
import json
import random
import re
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from forking import ForkingCommand
from PIL import Image
from refusals import assert_refused, raises

from counterprior.agents.ledger import Ledger
from counterprior.errors import UsageError
from counterprior.eval.engine.settling import settle

Cli = ForkingCommand

JUDGING = """
import sys
from pathlib import Path
from PIL import Image
from counterprior.agents.budget import BudgetError
from counterprior.eval.core import Question
from counterprior.eval.engine.costs import Cost
from counterprior.eval.judges import open_judge

spec, root, number, cap = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
answers = {"1": "a", "2": "b", "3": "invalid"}
asked = [
    Question(str(n), "order", "original", "order", ("dog", "cat"), ("a", "b", "invalid"),
             f"{n}?", answers, (Image.new("RGB", (8, 8), (n, 0, 0)),))
    for n in range(number, 40, 2)
]
plan = Cost(3, cap, root / "prices.yaml").plan(root, (number + 1, 2))
try:
    print(sum(v.label == "b" for _, v in open_judge(spec, plan).judge(asked)))
except BudgetError as error:
    print(error)
"""
PRICE, WORST = 30, 50
"""Dollars of an answer (the server's 30 tokens), and of the longest."""


@pytest.mark.parametrize(
    ("seed", "rounds"),
    [pytest.param(seed, 4, marks=pytest.mark.lane) for seed in range(21)],
)
def test_two_processes_keep_one_cap_through_losses_and_kills(
    seed: int, rounds: int, server: Any, fault: Any, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    (tmp_path / "prices.yaml").write_text("openai:m-1: {input: 0, output: 1000000}\n")
    server.answer = lambda body: "2"
    cap = rng.randint(600, 1500)
    kinds: list[dict[str, Any]] = [
        {"cut": True},
        {"torn": True},
        {"delay": 1.2},
        {"status": 500},
        {"status": 504},
    ]
    faults = [rng.choice(kinds) if rng.random() < 0.3 else None for _ in range(1000)]
    server.faults.extend(fault(**kind) if kind else None for kind in faults)
    running: list[subprocess.Popen[str]] = []
    deaths = {rng.randint(3, 60) for _ in range(rounds)}

    def kill(number: int) -> None:
        if number in deaths:
            rng.choice(running).kill()

    server.before = kill
    spec = server.spec("openai", "attempts=3&timeout=0.6&max_tokens=50")
    for _ in range(rounds):
        for number in "01":
            command = [sys.executable, "-c", JUDGING, spec, str(tmp_path), number, str(cap)]
            pipe = subprocess.PIPE
            running.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True))
        for process in running[-2:]:
            _, errors = process.communicate(timeout=120)
            assert process.returncode in (0, -signal.SIGKILL), errors
        # A server's error is not billed; a gateway's may be.
        billed = sum(kind != {"status": 500} for kind in faults[: len(server.asked)])
        assert PRICE * billed <= cap
    assert PRICE * billed > cap / 4
    ledgers = list((tmp_path / "ledgers").glob("*-of-2.jsonl"))
    assert len(ledgers) == 2
    for path in ledgers:
        with Ledger(path, read_only=True) as ledger:
            assert len(ledger) == len({record.id.split("/")[0] for record in ledger.records()})


def red(body: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (32, 32), "red").save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.lane), signal.SIGTERM]
)
def test_an_interrupted_run_records_what_is_under_way(
    number: signal.Signals, text_release: Path, tmp_path: Path, server: Any, cli: Cli
) -> None:
    (tmp_path / "prices.yaml").write_text(
        "openai:m-1: {input: 0, output: 1000}\nopenai-image:i: {image: 1, edit: 1}\n"
    )
    server.draw, server.answer = red, lambda body: "1"

    def hold(asked: int) -> None:
        if asked == 20:  # 16 images, then questions
            running.send_signal(number)
        if asked >= 20:
            time.sleep(0.3)  # so that several are on their way

    server.before = hold
    words = ["eval", "--suite", "t2i_homogenization", "--data", text_release, "--limit", "8"]
    words += ["--generator", f"openai-image:i@{server.url}/v1", "--judge", server.spec("openai")]
    words += ["--out", tmp_path / "run", "--prices", tmp_path / "prices.yaml", "--max-usd", "50"]
    words += ["--concurrency", "3"]
    running = cli.start(*words)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130 and "interrupted" in errors, errors
    asked = len(server.asked)
    open_ones = cli("doctor", tmp_path / "run", "--json")
    assert json.loads(open_ones.stdout)["attempts"] == [], open_ones
    server.before = lambda asked: None
    done = cli(*words)
    assert done.returncode == 0, done.stderr
    assert len(server.asked) == 32 and 20 <= asked < 24


@pytest.mark.slow
def test_a_person_settles_from_the_command_line(
    text_release: Path, tmp_path: Path, server: Any, fault: Any, cli: Cli
) -> None:
    (tmp_path / "prices.yaml").write_text("openai-image:i: {image: 1, edit: 1}\n")
    server.draw = red
    server.faults.extend([fault(cut=True)] * 2)
    words = ["generate", "--suite", "t2i_homogenization", "--data", text_release, "--limit", "1"]
    words += ["--generator", f"openai-image:i@{server.url}/v1?attempts=2", "--out", tmp_path / "r"]
    words += ["--prices", tmp_path / "prices.yaml", "--concurrency", "1", "--max-usd", "3"]
    lost = cli(*words)
    assert_refused(lost, "server-unreachable", "2 attempts", exit_code=1)
    short = cli(*words)
    assert_refused(short, "over-budget", "2.0000 USD", "counterprior doctor", exit_code=1)
    shown = cli("doctor", tmp_path / "r")
    assert shown.returncode == 0 and "2 attempts without an outcome, 2.0000 USD of" in shown.stdout
    settled = cli("doctor", tmp_path / "r", "--billed", "1")
    assert "they count as 1.0000 USD from now on" in settled.stdout, settled
    assert cli(*words).returncode == 0
    assert cli("doctor", tmp_path / "r", "--billed", "-1").returncode == 2
    with raises("conflicting-options", "--billed", "--worst", error=UsageError):
        settle(tmp_path / "r", Decimal(1), worst=True)
    with raises("no-such-file", "spending.jsonl", error=UsageError):
        settle(tmp_path)


def test_a_race_shows_no_password(
    text_release: Path, tmp_path: Path, server: Any, cli: Cli
) -> None:
    server.draw, server.answer = red, lambda body: "1"
    where = server.url.replace("://", "://me:p4ssw0rd@")
    words = ["study", "race", "--suite", "t2i_correctness", "--data", text_release, "--limit", "1"]
    for model in "ab":
        words += ["--generator", f"openai-image:{model}@{where}/v1"]
    done = cli(*words, "--judge", f"openai:m-1@{where}/v1", "--out", tmp_path / "race")
    assert done.returncode in (0, 1) and (tmp_path / "race" / "race.json").exists(), done
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    shown = b"\n".join(path.read_bytes() for path in kept).decode(errors="replace")
    assert "p4ssw0rd" not in shown + done.stdout + done.stderr
    assert re.search(r"openai-image:a@http://127\.0\.0\.1:\d+/v1", shown)
