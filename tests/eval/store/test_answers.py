"""Answers of several processes, read as one log."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import raises

from counterprior.errors import DataError
from counterprior.eval.store import places
from counterprior.eval.store.answers import AnswerLog
from counterprior.eval.store.shards import RunShard, owns_row
from counterprior.parsing import parse_as
from counterprior.storage import RecordError

shards = st.one_of(
    st.none(), st.integers(1, 3).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n)))
)
ROWS = 4


@dataclass(frozen=True)
class Number:
    case: str
    value: int = 0

    def to_record(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_record(cls, record: dict[str, Any], place: str) -> Number:
        return parse_as(cls, record, place)


def numbers(
    folder: Path, shard: RunShard | None = None, in_memory: bool = False, by: str = ""
) -> AnswerLog[Number]:
    return AnswerLog(folder, "images", Number, key="case", shard=shard, by=by, in_memory=in_memory)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(shards, st.lists(st.integers(0, ROWS - 1), max_size=4)), max_size=7),
    st.booleans(),
)
def test_the_newest_answer_is_the_last_whoever_wrote_it(
    processes: list[tuple[RunShard | None, list[int]]], in_memory: bool
) -> None:
    """One process after the other answers rows that it owns."""
    with tempfile.TemporaryDirectory() as name:
        written: dict[str, list[Number]] = {}
        for number, (shard, rows) in enumerate(processes):
            with numbers(Path(name), shard, in_memory) as log:
                for row in rows:
                    if owns_row(shard, row):
                        answer = Number(f"row{row}", 100 * number + len(written))
                        log.append(answer)
                        written.setdefault(answer.case, []).append(answer)
                        assert log[answer.case] == answer
        log = numbers(Path(name), in_memory=in_memory)
        assert {case: log.of(case) for case in log} == written == log.read()
        assert dict(log) == {case: answers[-1] for case, answers in written.items()}
        assert sorted(n.value for n in log.every()) == sorted(
            n.value for answers in written.values() for n in answers
        )
        assert len(log) == len(written) and log.is_empty == (not written)


def test_one_process_alone_stamps_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        numbers(tmp_path).append(Number("a"))
    assert (tmp_path / "images.jsonl").read_text() == '{"case":"a","value":0}\n' * 2


def test_a_later_process_of_a_shard_stamps_higher(tmp_path: Path) -> None:
    for shard in ((1, 2), (1, 2), None):
        numbers(tmp_path, shard).append(Number("a"))
    first, second = (tmp_path / "images.1-of-2.jsonl").read_text().splitlines()
    last = (tmp_path / "images.jsonl").read_text()
    assert [json.loads(line)["session"] for line in (first, second, last)] == [1, 2, 3]


def test_without_sessions_no_line_is_stamped(tmp_path: Path) -> None:
    for shard in ((2, 2), (1, 2)):
        log = AnswerLog(tmp_path, "s", Number, key="case", shard=shard, sessions=False)
        log.append(Number("a", shard[0]))
    merged = AnswerLog(tmp_path, "s", Number, key="case", sessions=False)
    assert [number.value for number in merged.of("a")] == [1, 2]
    assert "session" not in (tmp_path / "s.1-of-2.jsonl").read_text()


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_torn_last_line_is_ignored_and_then_cut_off(tmp_path: Path, in_memory: bool) -> None:
    (tmp_path / "images.jsonl").write_text('{"case":"a","value":1}\n{"case":"a","va')
    log = numbers(tmp_path, in_memory=in_memory)
    assert log["a"].value == 1
    log.append(Number("a", 2))
    assert [n.value for n in numbers(tmp_path).of("a")] == [n.value for n in log.of("a")] == [1, 2]


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize(
    ("line", "fact"),
    [('{"cass":"b"}', "case"), ('{"case":"b","session":-1}', "session"), ("[]", "JSON")],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, fact: str, in_memory: bool) -> None:
    (tmp_path / "images.1-of-2.jsonl").write_text(f'{{"case":"a","value":1}}\n{line}\n')
    with raises("damaged-log", "images.1-of-2.jsonl:2:", fact, error=RecordError):
        len(numbers(tmp_path, in_memory=in_memory))


@pytest.mark.parametrize("in_memory", [False, True])
def test_rejects_a_line_with_bytes_of_a_surrogate(tmp_path: Path, in_memory: bool) -> None:
    # `json.loads` accepts them in bytes, though they are not UTF-8.
    (tmp_path / "images.jsonl").write_bytes(b'{"case":"a","value":1,"\xed\xa0\x80":0}\n')
    with raises("damaged-log", "images.jsonl:1:", error=RecordError):
        list(numbers(tmp_path, in_memory=in_memory))


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_payload_of_another_type_is_named_where_it_is_read(
    tmp_path: Path, in_memory: bool
) -> None:
    (tmp_path / "images.jsonl").write_text('{"case":"a","value":1}\n{"case":"b","value":"x"}\n')
    log = numbers(tmp_path, in_memory=in_memory)
    with raises("wrong-type", tmp_path / "images.jsonl:2:", "value:", error=DataError):
        log["b"]


def test_answers_of_somebody_else_are_refused(tmp_path: Path) -> None:
    numbers(tmp_path, by="0001").append(Number("a", 1))
    assert numbers(tmp_path, by="0001")["a"] == Number("a", 1)
    with raises("another-run", "images.jsonl:1", "0001", "0002"):
        numbers(tmp_path, by="0002")["a"]


def test_two_keys_of_one_hash_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(places, "hash", lambda name: 7, raising=False)
    with numbers(tmp_path) as log:
        for number, case in enumerate("aba"):
            log.append(Number(case, number))
    assert log["a"] == Number("a", 2)
    assert log.of("b") == [Number("b", 1)]
    assert log.get("c") is None
