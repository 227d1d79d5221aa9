"""Opt-in, never in CI: three rounds with a paid model, under a cap.

    COUNTERPRIOR_LIVE=openai:MODEL pytest -m lane tests/lanes/test_live_models.py

with the model's key in OPENAI_API_KEY or ANTHROPIC_API_KEY; COUNTERPRIOR_LIVE_USD sets the cap.
"""

import os
import socket
from pathlib import Path

import pytest

from counterprior.agents.constrained.rounds import LoopSettings
from counterprior.agents.session import SessionSettings
from counterprior.builders.authoring.constrained import author_constrained
from counterprior.builders.constrained import read_pairs

pytestmark = [pytest.mark.lane, pytest.mark.online]

CONNECT = socket.socket.connect
MODEL = os.environ.get("COUNTERPRIOR_LIVE", "")
CAP = float(os.environ.get("COUNTERPRIOR_LIVE_USD", "0.5"))


@pytest.mark.skipif(not MODEL, reason="set COUNTERPRIOR_LIVE to the spec of a paid model")
def test_a_paid_model_writes_pairs_below_the_cap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket.socket, "connect", CONNECT)  # the one test that may leave loopback
    session = SessionSettings(tmp_path / "ledger.jsonl", MODEL, max_usd=CAP)
    loop = LoopSettings(rounds=3, target=400, proposals=5)
    report = author_constrained(session, loop, None, tmp_path / "bank")
    print(report)
    assert sum(account.usd for account in report.accounts) <= CAP
    assert report.counts["entries"] == sum(map(len, read_pairs(tmp_path / "bank").values()))
