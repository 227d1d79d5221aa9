"""A judge on llmock, a server that injects faults on request and grades its clients.

COUNTERPRIOR_LLMOCK: its command, of an environment with `pip install llmock`.
"""

from __future__ import annotations

import json
import os
import shutil
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import serving

pytestmark = pytest.mark.lane

COMMAND = os.environ.get("COUNTERPRIOR_LLMOCK") or shutil.which("llmock")
START = 120
"""Most seconds until the server answers."""
KEY = "sk-of-the-mock-3c9"
PROTOCOLS = ("openai:gpt-4o@{}/v1", "anthropic:claude-3-5-sonnet-20241022@{}/anthropic")

QUESTION = {"match": {"path": "*[!l]s"}}
"""`chat/completions` and `messages`, but not `models`."""
LIST = {"match": {"path": "*models"}}


class Mock:
    """The control API of the server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def behave(self, *behaviors: dict[str, Any]) -> None:
        """Queues faults and replies, each for one request, and the reply `1` for all others."""
        always = {"type": "reply", "text": "1", "times": None}
        self._ask("/scenario", {"behaviors": [*behaviors, always]})

    def answered(self) -> int:
        """Questions that were answered, and so paid."""
        requests = self._ask("/requests")["requests"]
        return sum(r["method"] == "POST" and r["status"] == 200 for r in requests)

    def verdict(self) -> dict[str, Any]:
        """How the client coped, as the server judges."""
        return self._ask("/verdict")

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"{self.url}/_llmock{path}", data, timeout=20) as response:
            answer: dict[str, Any] = json.load(response)
        return answer


@pytest.fixture
def mock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mock]:
    if not COMMAND:
        pytest.skip("no llmock in COUNTERPRIOR_LLMOCK or on the path")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with serving((COMMAND, "serve"), tmp_path / "llmock.log", "/health", within=START) as url:
        yield Mock(url)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_judge_survives_every_fault_and_is_paid_once(
    protocol: str, mock: Mock, cli: Callable[..., Any], text_release: Path, tmp_path: Path
) -> None:
    mock.behave(
        {"type": "fail", "status": 429, "retry_after": 1, **LIST},
        {"type": "fail", "status": 503, **LIST},
        {"type": "fail", "status": 500, **LIST},
        {"type": "fail", "status": 429, "retry_after": 1, **QUESTION},
        {"type": "fail", "status": 500, **QUESTION},
        {"type": "fail", "status": 503, **QUESTION},
        {"type": "delay", "seconds": 2, **QUESTION},
        {"type": "delay", "seconds": 12, **QUESTION},
    )
    run = tmp_path / "run"
    command = (
        *("eval", "--suite", "t2i_homogenization", "--data", text_release, "--limit", 2),
        *("--generator", "render:?order_bias=1", "--out", run),
        *("--judge", f"{protocol.format(mock.url)}?attempts=6&timeout=8"),
    )
    done = cli(*command)
    assert done.returncode == 0, done.stderr
    assert "0 errors" in done.stderr and " 0 retries" not in done.stderr, done.stderr
    (log,) = (run / "verdicts").glob("*/verdicts.jsonl")
    labels = Counter(json.loads(line)["label"] for line in log.read_text().splitlines())
    assert labels == {"first_left": 2, "first_right": 2}
    verdict = mock.verdict()
    assert verdict["passed"] and not verdict["findings"], verdict["findings"]
    assert verdict["faults_injected"] == 6
    answered = mock.answered()
    again = cli(*command)
    assert again.returncode == 0 and mock.answered() == answered, again.stderr
