"""Servers that reject model or key: nothing of it is recorded, and what was can be asked again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from refusals import raises
from typer.testing import CliRunner
from wire import Fault

from counterprior.agents.chat import UnusableModelError
from counterprior.cli.main import app
from counterprior.eval.engine import evaluation, steps
from counterprior.eval.engine.costs import Cost
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import Done, generate, judge_run
from counterprior.eval.selftest import rows as trials
from counterprior.eval.store.verdicts import JudgeFailed

IMAGES = 4
SUITE = "t2i_homogenization"
ERRORS: list[BaseException] = []
"""What the tests caught, kept as a notebook keeps the last error: it must hold no ledger's lock."""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    rows = Rows.of([trials.neutral(a, b) for a, b in trials.pairs(trials.STOUT)[: IMAGES // 2]])
    for module in (evaluation, steps):
        monkeypatch.setattr(module, "read_rows", lambda *_: rows)
    generate(RunSettings(SUITE, "memory", tmp_path / "run"), "render:")
    yield tmp_path / "run"


def judged(run: Path, server: Any, retry_failed: bool = False, one: bool = False) -> Done:
    server.answer = lambda body: "1"
    cost = Cost(1 if one else 8, retry_failed=retry_failed)
    return judge_run(run, [server.spec("openai", "attempts=1&timeout=5")], cost=cost)


def failure(run: Path, server: Any) -> str:
    """Message of a judge of which every call failed."""
    with pytest.raises(JudgeFailed) as caught:
        judged(run, server)
    ERRORS.append(caught.value)
    return str(caught.value)


def labels(done: Done) -> list[str]:
    ((log, _),) = done.judged
    return sorted(answered.verdict.label for answered in log)


def lines(run: Path, pattern: str) -> int:
    """Lines about calls or verdicts in the files that a pattern names."""
    texts = (path.read_text() for path in run.glob(pattern))
    return sum('"case"' in line or '"completion"' in line for t in texts for line in t.splitlines())


ABOUT_SETTINGS = {
    "unknown model": Fault(400, message="unknown model: m-1"),
    "a code alone": Fault(400, message="no", code="model_not_found"),
    "Mistral": Fault(400, message="Invalid model: m-1"),
    "OpenRouter": Fault(400, message="me/m-1 is not a valid model ID"),
    "an old API": Fault(400, message="The model `m-1` does not exist"),
    "Gemini": Fault(400, message="API key not valid. Please pass a valid API key."),
    "xAI": Fault(400, message="Incorrect API key provided: x"),
    "a bad key": Fault(401, message="bad key"),
    "an empty account": Fault(402, message="pay"),
    "a forbidden model": Fault(403, message="not yours"),
    "a wrong address": Fault(404, message="what?"),
    "a redirect": Fault(302, message="elsewhere"),
}


@pytest.mark.parametrize("name", ABOUT_SETTINGS)
def test_an_error_of_the_settings_ends_the_run_and_is_no_answer(
    name: str, run: Path, server: Any, survived: Callable[[str, bool], None]
) -> None:
    server.faults.extend([ABOUT_SETTINGS[name]] * 99)
    with raises("server-error", "HTTP", "run the same command again", error=UnusableModelError):
        judged(run, server, one=True)
    asked = len(server.asked)
    assert asked == 1 and not lines(run, "ledgers/*.jsonl") + lines(run, "verdicts/*/*.jsonl")
    server.faults.clear()  # the model exists now, and so on
    done = judged(run, server)
    well = len(server.asked) == 1 + IMAGES and "error" not in labels(done)
    survived("errors of the settings", well)
    assert well


@pytest.mark.parametrize(
    "message",
    ["the image is too large for this model", "model: field required", "bad value: model"],
)
def test_a_rejected_request_is_one_failure(message: str, run: Path, server: Any) -> None:
    server.faults.append(Fault(400, message=message))
    done = judged(run, server, one=True)
    assert labels(done).count("error") == 1 and len(server.asked) == IMAGES


def test_a_recorded_rejection_is_asked_again_on_demand(
    run: Path, server: Any, survived: Callable[[str, bool], None]
) -> None:
    server.faults.extend([Fault(400, message="the image is too large")] * IMAGES)
    for _ in range(2):  # recorded: the second asks nothing
        message = failure(run, server)
        assert "too large" in message and "--retry-failed" in message
        assert len(server.asked) == IMAGES
    server.faults.append(Fault(400, message="still too large"))
    done = judged(run, server, retry_failed=True, one=True)
    assert len(server.asked) == 2 * IMAGES  # each once, the one that failed again as well
    assert labels(done).count("error") == 1
    done = judged(run, server, retry_failed=True)
    well = len(server.asked) == 2 * IMAGES + 1 and "error" not in labels(done)
    survived("recorded rejections", well)
    assert well
    judged(run, server, retry_failed=True)
    assert len(server.asked) == 2 * IMAGES + 1  # what has an answer is never asked again


def test_rejections_of_another_shard_are_asked_again(run: Path, server: Any) -> None:
    server.faults.extend([Fault(400, message="too large")] * IMAGES)
    failure(run, server)
    (ledger,) = (path for path in run.glob("ledgers/openai-*.jsonl"))
    ledger.rename(ledger.with_suffix(".1-of-2.jsonl"))
    (verdicts,) = run.glob("verdicts/*/verdicts.jsonl")
    verdicts.unlink()
    assert "error" not in labels(judged(run, server, retry_failed=True))
    assert "error" not in labels(judged(run, server))
    assert len(server.asked) == 2 * IMAGES


def test_money_of_repeated_calls_is_counted_once_each(run: Path, server: Any) -> None:
    prices = run.parent / "prices.yaml"
    prices.write_text("openai:m-1: {input: 0, output: 1000000}\n")
    server.answer = lambda body: "1"
    server.faults.extend([Fault(400, message="too large")] * IMAGES)
    spec = server.spec("openai", "attempts=1&timeout=5&max_tokens=50")
    with pytest.raises(JudgeFailed) as caught:
        judge_run(run, [spec], cost=Cost(prices=prices, max_usd=10_000))
    ERRORS.append(caught.value)
    rejected = 50 * IMAGES  # a server that nobody knows may bill what it rejects
    assert Cost(prices=prices).plan(run).budget.spent == rejected
    judge_run(run, [spec], cost=Cost(prices=prices, max_usd=10_000, retry_failed=True))
    spent = rejected + 30 * IMAGES
    assert Cost(prices=prices).plan(run).budget.spent == spent
    (run / "ledgers" / "spending.jsonl").unlink()  # found again in the ledger
    assert Cost(prices=prices).plan(run).budget.spent == spent


def test_a_drawer_without_its_model_ends_the_run(server: Any, tmp_path: Path, run: Path) -> None:
    server.faults.extend([ABOUT_SETTINGS["OpenRouter"]] * 99)
    spec = f"openai-image:m-1@{server.url}/v1?attempts=1"
    out = tmp_path / "drawn"
    with raises("server-error", "not a valid model", error=UnusableModelError):
        generate(RunSettings(SUITE, "memory", out), spec, Cost(1))
    assert len(server.asked) == 1 and not dict(Run.open(out).images())


def test_moderation_is_a_refusal(run: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    error = {"code": 403, "message": "flagged", "metadata": {"flagged_input": "a dog"}}
    monkeypatch.setattr(server, "_reply", lambda *_: json.loads(json.dumps({"error": error})))
    server.faults.extend([Fault(403)] * IMAGES)
    assert labels(judged(run, server)) == ["refused"] * IMAGES


def test_what_nobody_knows_the_price_of_is_not_said_to_cost_nothing(
    run: Path, server: Any, tmp_path: Path
) -> None:
    spent = str(judged(run, server).spending)
    assert spent.startswith(f"an unknown sum for {IMAGES} calls") and "0.0000" not in spent
    prices = tmp_path / "prices.yaml"
    prices.write_text("openai:m-1: {input: 0, output: 1000000}\n")
    cost = Cost(prices=prices)
    other = judge_run(run, [server.spec("openai", "timeout=5&max_tokens=50")], cost=cost)
    assert str(other.spending).startswith(f"{30 * IMAGES}.0000 USD, ")


def test_a_model_that_writes_is_asked_again_on_demand(
    server: Any, tmp_path: Path, survived: Callable[[str, bool], None]
) -> None:
    prompts, ledger = tmp_path / "prompts.txt", tmp_path / "calls.jsonl"
    prompts.write_text("A cat left of a dog.\nA cup on a table.\n")
    server.answer = lambda body: json.dumps({"relations": []})

    def author(*options: str) -> None:
        words = ["spatial", "relations", str(prompts), "--out", str(tmp_path / "relations.jsonl")]
        backend = ["--backend", server.spec("openai", "attempts=1&timeout=5")]
        done = CliRunner().invoke(app, [*words, "--ledger", str(ledger), *backend, *options])
        assert done.exit_code == 0, done.output

    server.faults.extend([Fault(400, message="the prompt is too long")] * 2)
    for _ in range(2):  # recorded: the second asks nothing
        author()
        assert len(server.asked) == 2
    author("--retry-failed")
    well = len(server.asked) == 4
    survived("rejections asked again on demand", well)
    assert well
    author("--retry-failed")  # answered by now
    assert len(server.asked) == 4
