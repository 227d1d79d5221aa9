"""Price files that change between the runs of one folder: what was paid keeps its price."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from counterprior.cli.main import app
from counterprior.eval.engine import evaluation, steps
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.selftest import rows as trials

SUITE = "t2i_homogenization"
ROWS = 4
TOKENS = 150
"""Of each call, as the server reports them."""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose images exist."""
    rows = Rows.of([trials.neutral(a, b) for a, b in trials.pairs(trials.STOUT)[:ROWS]])
    for module in (evaluation, steps):
        monkeypatch.setattr(module, "read_rows", lambda *_: rows)
    steps.generate(RunSettings(SUITE, "memory", tmp_path / "run"), "render:")
    return tmp_path / "run"


def judge(run: Path, server: Any, price: str | None, cap: str | None = None) -> tuple[int, str]:
    """Judges with 100 and more images to go; returns the exit code and what was printed."""
    server.answer = lambda body: "1"
    words = ["judge", str(run), "--judge", server.spec("openai"), "--concurrency", "1"]
    if price is not None:
        (run.parent / "prices.yaml").write_text(f"openai:m-1: {price}\n")
        words += ["--prices", str(run.parent / "prices.yaml")]
    done = CliRunner().invoke(app, [*words, *(["--max-usd", cap] if cap else [])])
    return done.exit_code, " ".join(done.output.split())


DEAR = "{input: 1000000, output: 1000000}"
"""A dollar a token: a call may cost 8,098, and costs 150."""

CAP = "8200"
"""Holds one call of them."""


@pytest.mark.parametrize("cap", [None, "2000"])
@pytest.mark.parametrize(
    "price",
    ["{input: 100, output: 100}", "{input: 1000000, output: 1}", "{input: 0, output: 0}"],
)
def test_a_lower_price_is_named_and_nothing_is_asked(
    cap: str | None, price: str, run: Path, server: Any, survived: Callable[[str, bool], None]
) -> None:
    code, said = judge(run, server, DEAR, CAP)
    paid = len(server.asked)
    assert code == 1 and "over" in said and paid == 1
    code, said = judge(run, server, price, cap)
    well = len(server.asked) == paid and code == 1
    survived("cheaper prices in a later run", well)
    assert well
    assert "openai:m-1 would count at a lower price than before" in said
    assert "instead of 1000000 USD" in said and "--lower-prices" in said
    assert "Traceback" not in said


def test_a_person_can_accept_lower_prices(run: Path, server: Any) -> None:
    judge(run, server, DEAR, CAP)
    judge(run, server, "{input: 100, output: 200}")
    settle = ["doctor", str(run), "--prices", str(run.parent / "prices.yaml")]
    assert "from now on" not in CliRunner().invoke(app, settle).output  # looking accepts nothing
    assert judge(run, server, "{input: 100, output: 200}")[0] == 1
    done = CliRunner().invoke(app, [*settle, "--lower-prices"])
    assert "openai:m-1 counts at input 100, output 200 USD from now on" in done.output
    assert f"of {TOKENS:.4f} spent" in done.output  # what was paid keeps its price
    code, said = judge(run, server, "{input: 100, output: 200}", "8200")
    assert code == 0, said


def test_a_higher_price_counts_from_then_on(run: Path, server: Any) -> None:
    low = "{input: 1, output: 1}"
    assert judge(run, server, low, "0.0082")[0] == 1
    paid = len(server.asked)
    assert judge(run, server, "{input: 2, output: 1}", "0.0163")[0] == 1
    assert len(server.asked) > paid
    assert judge(run, server, low, "10")[0] == 1


def test_what_no_price_counts_is_unknown(run: Path, server: Any) -> None:
    code, said = judge(run, server, None)
    assert code == 0 and "spent an unknown sum for" in said, said
    done = CliRunner().invoke(app, ["doctor", str(run)])
    calls = len(server.asked)
    said = f"0 attempts without an outcome, an unknown sum for {calls} calls without a price spent"
    assert said in done.output and "0.0000" not in done.output
    (run.parent / "prices.yaml").write_text("openai:m-1: {input: 1000000, output: 1000000}\n")
    words = ["doctor", str(run), "--prices", str(run.parent / "prices.yaml")]
    assert f"of {calls * TOKENS:.4f} spent" in CliRunner().invoke(app, words).output
