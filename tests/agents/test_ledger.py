"""The ledger: replay, drift, torn tails, locks, and the published form."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises

from counterprior.agents.chat import ChatRequest, Completion, ImagePart, JsonSchema, Usage
from counterprior.agents.ledger import DriftError, Ledger, LedgerError, spec_hash
from counterprior.errors import InUseError

WHO = {"kind": "openai", "model": "m", "provider": "openai"}
ASK = ChatRequest("scout", "Find pairs.\nBe brief.", ("Round 1", ImagePart(b"x")), 100)
DONE = Completion("ok", "text", Usage(10, 5, 2, 1), {"id": "x"}, (("1", -0.5),), 1)


def test_a_recorded_call_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        assert ledger.find("r1/scout", WHO, ASK) is None
        ledger.append("r1/scout", WHO, ASK, DONE, "0.01")
    with Ledger(path) as ledger:
        found = ledger.find("r1/scout", WHO, ASK)
        assert found is not None
        assert (found.completion, found.usd, found.role) == (DONE, "0.01", "scout")
        assert len(ledger) == 1 and "r1/scout" in ledger


@pytest.mark.parametrize(
    ("identity", "request_", "shown"),
    [
        (WHO, ChatRequest("scout", "Find pairs.\nBe long.", ASK.user, 100), "+Be long."),
        (WHO, ChatRequest("scout", ASK.system, ("Round 2", ASK.user[1]), 100), '+   "Round 2"'),
        (WHO, ChatRequest("scout", ASK.system, ("Round 1", ImagePart(b"y")), 100), "image"),
        (WHO, ChatRequest("scout", ASK.system, ASK.user, 99), '+  "max_tokens": 99'),
        (WHO, ChatRequest("scout", ASK.system, ASK.user, 100, JsonSchema("a", {})), "schema"),
        (WHO, ChatRequest("critic", ASK.system, ASK.user, 100), '+  "role": "critic"'),
        ({**WHO, "model": "other"}, ASK, '+  "model": "other"'),
    ],
)
def test_drift_is_an_error_that_shows_what_changed(
    tmp_path: Path, identity: dict[str, str], request_: ChatRequest, shown: str
) -> None:
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        ledger.append("r1/scout", WHO, ASK, DONE, None)
        with raises("changed-call", "r1/scout", shown, error=DriftError):
            ledger.find("r1/scout", identity, request_)


def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append("a", WHO, ASK, DONE, None)
    whole = path.read_bytes()
    with Ledger(path) as ledger:
        ledger.append("b", WHO, ASK, DONE, None)
    both = path.read_bytes()
    for length in {*range(len(whole), len(both), 7), len(both) - 1}:
        path.write_bytes(both[:length])
        with Ledger(path) as ledger:
            assert len(ledger) == 1
            ledger.append("b", WHO, ASK, DONE, None)
        assert path.read_bytes() == both


def test_a_replay_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append("a", WHO, ASK, DONE, None)
    path.write_bytes(path.read_bytes() + b'{"torn')
    before = path.read_bytes()
    with Ledger(path, read_only=True) as ledger:
        assert ledger.find("a", WHO, ASK) is not None
        with raises("not-recorded", path, "record b", error=LedgerError):
            ledger.append("b", WHO, ASK, DONE, None)
    assert path.read_bytes() == before


@pytest.mark.parametrize("line", ["{}", "[]", "nonsense", '{"id": 3', "7"])
def test_damage_before_the_end_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append("a", WHO, ASK, DONE, None)
    path.write_text(line + "\n" + path.read_text())
    with raises("damaged-log", ":1:", error=LedgerError):
        Ledger(path)


def test_an_id_is_recorded_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append("a", WHO, ASK, DONE, None)
        with raises("duplicate-id", path, "call a", error=LedgerError):
            ledger.append("a", WHO, ASK, DONE, None)


def test_a_line_that_was_copied_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append("a", WHO, ASK, DONE, "2")
    path.write_text(path.read_text() * 2)
    with Ledger(path) as ledger:
        assert [str(cost.usd) for _, cost in ledger.costs()] == ["2"]


def test_of_several_answers_the_first_good_one_is_used_and_all_were_paid(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    failed, good = (replace(DONE, outcome=o, text=o) for o in ("error", "ok"))
    with Ledger(path) as ledger:
        assert ledger.next_name("a") == "a"
        ledger.append("a", WHO, ASK, failed, "1")
        assert ledger.next_name("a") == "a/answer2"
        ledger.append("a", WHO, ASK, good, "2")
        assert ledger.next_name("a") == "a/answer3"
        with raises("duplicate-id", "call a", error=LedgerError):
            ledger.append("a", WHO, ASK, good, "3")
    lines = path.read_text().splitlines(keepends=True)
    other = lines[-1].replace('"usd":"2"', '"usd":"4"')  # a process that no lock kept out
    for text in ("".join([*lines, other]), "".join([other, *lines])):
        path.write_text(text)
        with Ledger(path) as ledger:
            record = ledger.find("a", WHO, ASK)
            assert record is not None and record.completion.text == "ok" and len(ledger) == 1
            costs = {name: cost.usd for name, cost in ledger.costs()}
            assert set(costs) == {"a", "a/answer2", "a/answer3"}
            assert sum(filter(None, costs.values())) == 7
            assert all(ledger.cost_of(name).usd == usd for name, usd in costs.items())  # type: ignore[union-attr]
            assert ledger.cost_of("a/answer4") is None


def test_rejects_a_second_process(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path), raises("in-use", path, error=InUseError):
        Ledger(path)
    with Ledger(path):
        pass


def test_the_published_form_knows_no_order(tmp_path: Path) -> None:
    published = []
    for number, ids in enumerate((["b", "a", "c"], ["c", "b", "a"])):
        with Ledger(tmp_path / f"{number}.jsonl") as ledger:
            for name in ids:
                ask = ChatRequest(f"role-{name}", f"system {name}", (name,), 5)
                ledger.append(name, WHO, ask, DONE, "0.1")
            ledger.publish(tmp_path / f"{number}.published.jsonl")
        published.append((tmp_path / f"{number}.published.jsonl").read_bytes())
    assert published[0] == published[1]
    with Ledger(tmp_path / "0.published.jsonl") as ledger:
        assert [r.id for r in ledger.records()] == ["a", "b", "c"]


def test_a_call_is_on_disk_when_it_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "ledger.jsonl", []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda f: (synced.append(path.stat().st_size), fsync(f)))
    with Ledger(path) as ledger:
        for number in range(3):
            ledger.append(f"c{number}", WHO, ASK, DONE, None)
            assert synced[-1] == path.stat().st_size
        ledger.open_batch("b", {"c9": spec_hash(WHO, ASK)})
        assert synced[-1] == path.stat().st_size


def test_shared_texts_are_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        for number in range(50):
            ledger.append(f"c{number}", WHO, ASK, DONE, None)
    assert path.read_text().count("Be brief.") == 1


@given(text=st.text(st.characters(exclude_categories=())), prompt=st.text(max_size=50))
def test_any_text_survives(
    tmp_path_factory: pytest.TempPathFactory, text: str, prompt: str
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "ledger.jsonl"
    ask = ChatRequest("r", prompt, (text,), 5)
    with Ledger(path) as ledger:
        ledger.append("a", WHO, ask, Completion("ok", text, None, {"t": text}), None)
    with Ledger(path) as ledger:
        found = ledger.find("a", WHO, ask)
        assert found is not None and found.completion.text == text
    assert all(json.loads(line) for line in path.read_text("ascii").split("\n")[:-1])


def test_identities_are_those_of_a_role(tmp_path: Path) -> None:
    other: dict[str, Any] = {**WHO, "model": "other"}
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        ledger.append("a", WHO, ASK, DONE, None)
        ledger.append("b", other, ChatRequest("critic", "s", ("u",), 5), DONE, None)
        assert ledger.identities("scout") == [WHO]
        assert len(ledger.identities()) == 2
