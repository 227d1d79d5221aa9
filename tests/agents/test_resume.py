"""A run of 36 calls that is killed at every one of them pays for 36 calls, and writes the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import raises

from counterprior.agents.constrained.rounds import LoopSettings
from counterprior.agents.ledger import DriftError, Ledger
from counterprior.agents.session import SessionSettings
from counterprior.builders.authoring.constrained import author_constrained

ROUNDS = 12
CALLS = 3 * ROUNDS
LOOP = LoopSettings(rounds=ROUNDS, target=1000)


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def run(stage: Any, base: Path, folder: Path) -> Path:
    session = SessionSettings(folder / "ledger.jsonl", stage.spec("openai"))
    author_constrained(session, LOOP, base, folder / "bank")
    return folder / "bank"


@pytest.mark.parametrize("protocol", ["openai", pytest.param("anthropic", marks=pytest.mark.slow)])
def test_trouble_that_passes_changes_nothing_but_the_bill(
    stage: Any, small_bank: Path, tmp_path: Path, protocol: str, fault: Any, naps: list[float]
) -> None:
    loop = LoopSettings(rounds=4, target=1000)

    def play(name: str) -> Path:
        session = SessionSettings(tmp_path / f"{name}.jsonl", stage.spec(protocol, "timeout=0.7"))
        author_constrained(session, loop, small_bank, tmp_path / name)
        return tmp_path / name

    calm = files(play("calm"))
    told = [
        {"status": 429, "headers": {"retry-after": "3"}},
        {"status": 529},
        {"status": 503},
        {"cut": True},
        {"torn": True},
        {"delay": 1.2},
        {"cut": True},
    ]
    for each in told:
        stage.faults += [None, fault(**each)]
    asked = len(stage.asked)
    assert files(play("stormy")) == calm
    assert len(stage.asked) - asked == 12 + len(told)
    assert 3.0 in naps and len(naps) == len(told)
    with Ledger(tmp_path / "stormy.jsonl", read_only=True) as ledger:
        assert sum(r.completion.lost_attempts for r in ledger.records()) == 4


def test_a_refusal_on_the_wire_costs_its_round(
    stage: Any, small_bank: Path, tmp_path: Path, fault: Any
) -> None:
    stage.faults += [None, None, None, None, fault(finish="refusal")]  # the Critic of round 2
    session = SessionSettings(tmp_path / "l.jsonl", stage.spec("openai"))
    author_constrained(session, LoopSettings(3, 1000), small_bank, tmp_path / "bank")
    archive = tmp_path / "bank" / "archive" / "constrained"
    failures = [json.loads(p.read_text())["failure"] for p in sorted(archive.iterdir())]
    assert failures == ["", "critic: refused: I can't help with that.", ""]


@pytest.mark.slow
def test_a_replay_is_offline_free_and_the_same(
    stage: Any, small_bank: Path, tmp_path: Path
) -> None:
    bank = run(stage, small_bank, tmp_path)
    stage.close()
    ledger = tmp_path / "ledger.jsonl"
    before = ledger.read_bytes()
    for name in ("once", "twice", "once"):
        session = SessionSettings(ledger, replay=True)
        author_constrained(session, LoopSettings(), small_bank, tmp_path / name)
        assert files(tmp_path / name) == files(bank)
    assert stage.paid == CALLS and ledger.read_bytes() == before


@pytest.mark.slow
def test_a_changed_prompt_file_is_shown(
    stage: Any, small_bank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(stage, small_bank, tmp_path)
    prompts = tmp_path / "prompts"
    from counterprior.agents import roles
    from counterprior.agents.constrained import loop

    for source in (roles.PROMPTS / "constrained").iterdir():
        target = prompts / "constrained" / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.read_text().replace("the largest first", "the smallest first"))
    monkeypatch.setattr(roles, "PROMPTS", prompts)
    monkeypatch.delitem(loop.SCOUT.__dict__, "system")
    with raises("changed-call", error=DriftError) as caught:
        run(stage, small_bank, tmp_path)
    monkeypatch.delitem(loop.SCOUT.__dict__, "system")
    shown = str(caught.value)
    assert "r01/scout/attempt0" in shown
    assert "-" in shown and "the largest first" in shown and "the smallest first" in shown
    assert stage.paid == CALLS


@pytest.mark.slow
def test_other_settings_with_an_old_ledger_are_an_error(
    stage: Any, small_bank: Path, tmp_path: Path
) -> None:
    run(stage, small_bank, tmp_path)
    session = SessionSettings(tmp_path / "ledger.jsonl", stage.spec("openai"))
    with raises("changed-call", '"target": 500', error=DriftError):
        author_constrained(session, LoopSettings(target=500), small_bank, tmp_path / "bank")


@pytest.mark.parametrize("older", [{}, {"lists_flagged": False, "proposals": 20}])
def test_more_rounds_ask_recorded_ones_what_they_were_asked(
    stage: Any, small_bank: Path, tmp_path: Path, older: dict[str, Any]
) -> None:
    """Also where the ledger was written before rounds planned and the Scout learned of flags."""
    session = SessionSettings(tmp_path / "l.jsonl", stage.spec("openai"))

    def play(rounds: int, name: str, **changes: Any) -> int:
        loop = LoopSettings(rounds, 500, **changes)
        asked = len(stage.asked)
        author_constrained(session, loop, small_bank, tmp_path / name)
        return len(stage.asked) - asked

    assert play(2, "two", **older) == 6
    assert play(4, "four") == 6 and play(4, "again") == 0
    with Ledger(session.ledger, read_only=True) as ledger:
        assert ledger.inputs("constrained").get("rounds") == (None if older else 2)
    with raises("changed-call", "proposals", error=DriftError):
        play(4, "other", proposals=7)
