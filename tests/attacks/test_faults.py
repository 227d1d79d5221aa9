"""Faults of the machine and files that are not what they seem: one line with its remedy."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from refusals import raises
from releases import small_release

from counterprior.agents.chat import ChatRequest, Completion, Usage
from counterprior.agents.ledger import Ledger
from counterprior.cards.validate import validate
from counterprior.cards.verify import verify_release
from counterprior.cli.console import failing
from counterprior.errors import DataError, UsageError
from counterprior.eval.judges.checker.run import run_check
from counterprior.parsing import read_rows, read_yaml
from counterprior.release import CHECKSUMS, ReleaseError, iter_records, read_checksums, verify
from counterprior.storage import RecordLog, read_records

# --- the operating system ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EMFILE]
)
def test_a_fault_without_a_file_is_one_line(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended, failing():
        raise OSError(number, os.strerror(number))
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert said.count("\n") == 1 and said.startswith(
        f"counterprior: {os.strerror(number).lower()}: "
    )


def test_reports_missing_memory_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, failing():
        raise MemoryError
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("counterprior: out of memory: free some")


PRINTING = """
from counterprior.cli.console import failing
with failing():
    print("x" * 100_000)
"""


def run_with(output: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", f'exec "$0" -c "$1" {output}', sys.executable, PRINTING]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True)


def test_a_full_disk_behind_stdout_is_one_line() -> None:
    done = run_with(">/dev/full")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "no space left on device: free" in done.stderr


def test_ignores_a_closed_stdout() -> None:
    done = run_with(">&-")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def half_written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many writes there are to the one of which half comes to a disk that is then full."""
    write, left = os.write, [-9]

    def failing_write(file: int, data: bytes) -> int:
        left[0] -= 1
        if left[0] == 0:
            return write(file, data[: len(data) // 2])
        if left[0] == -1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data)

    monkeypatch.setattr(os, "write", failing_write)
    return left


def test_half_a_record_is_taken_back(half_written: list[int], tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with RecordLog(path) as log:
        log.append({"a": 1})
        half_written[0] = 1
        with pytest.raises(OSError, match="No space"):
            log.append({"b": "x" * 99})
        log.append({"c": 3})  # somebody has made room
    assert list(read_records(path)) == [{"a": 1}, {"c": 3}]


def test_half_a_call_is_taken_back(half_written: list[int], tmp_path: Path) -> None:
    who, done = {"kind": "openai", "model": "m"}, Completion("ok", "1", Usage(1, 1), {})
    with Ledger(tmp_path / "l.jsonl") as ledger:
        for name in "abcd":
            half_written[0] = 1 if name == "b" else -9
            asked = ChatRequest("judge", "Look.", (f"Where is {name}?",), 10)
            with pytest.raises(OSError) if name == "b" else nullcontext():
                ledger.append(name, who, asked, done, "1")
            found = ledger.find(name, who, asked)
            assert (found is None) == (name == "b")
    with Ledger(tmp_path / "l.jsonl") as again:
        assert [record.id for record in again.records()] == ["a", "c", "d"]


# --- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["out.jsonl", "out.metrics.json", "out.metrics.md"])
@pytest.mark.parametrize("linked", [False, True])
def test_check_never_writes_over_what_it_reads(name: str, linked: bool, tmp_path: Path) -> None:
    detections = tmp_path / name
    detections.write_text('{"precious": 1}\n')
    out = tmp_path / "out.jsonl"
    given = detections
    if linked:
        given = tmp_path / "link.jsonl"
        given.symlink_to(detections)
    with raises("would-overwrite", "--out", error=UsageError):
        run_check(given, None, out)
    assert detections.read_text() == '{"precious": 1}\n'


NESTED = {
    "brackets": "[" * 50_000,
    "braces": "{a: " * 50_000,
    "dashes": "- " * 50_000,
    "questions": "? " * 50_000,
    "lines": "[\n" * 50_000,
    "indents": "".join(" " * n + "a:\n" for n in range(300)),
    "no text": "\xff\0",
    "an object": "a: &a [*a, *a]\nb: !!python/x 1",
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_a_deep_bank_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bank.yaml"
    path.write_text(text, "latin-1")
    code, facts = ("bad-yaml", ()) if "\xff" in text or "!!python" in text else ("too-deep", (64,))
    with raises(code, path, *facts, error=DataError):
        read_yaml(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b'{"a": 1}\n\xff\xfe\n'),
        ("a.jsonl", b'{"a": 1}\n\0\0\0\n'),
        ("a.jsonl", b'{"a": 1}\n' + b"[" * 100_000 + b"\n"),
        ("a.json", b"[" * 100_000),
        ("a.json", b"\xff"),
        ("a.csv", b"a,b\n1,\xff\n"),
        ("a.csv", b'a,b\n"' + b"x" * 200_000 + b'",1\n'),
    ],
)
def test_rejects_malformed_lines_by_number(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    place = f"{path}:2:" if name == "a.jsonl" else f"{path}:"
    with raises("bad-csv" if name == "a.csv" else "bad-json", place, error=DataError):
        list(read_rows(path))


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        ("case;question;label\na;order;first_left\n", "1: fields are divided by ';'"),
        ("case\tlabel\na\tfirst_left\n", "1: fields are divided by '\\t'"),
        ("case,label\n\xe4,first_left\n", " not UTF-8 after line 1: save it as UTF-8"),
    ],
)
def test_a_spreadsheet_s_own_csv_is_named_with_its_remedy(
    content: str, fact: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content, "latin-1")
    with raises("bad-csv", f"{path}:{fact}", error=DataError):
        list(read_rows(path))
    path.write_text("case\na;b\n")
    assert list(read_rows(path)) == [(2, {"case": "a;b"})]


def test_a_pipe_in_place_of_a_table_is_not_waited_for(release_copy: Path) -> None:
    (table, *_) = sorted(release_copy.rglob("*.parquet"))
    table.unlink()
    os.mkfifo(table)
    with raises("not-a-file", table, error=ReleaseError):
        list(iter_records(release_copy, table.parent.name))
    with raises("not-a-file", table.name, error=ReleaseError):
        validate(release_copy, lambda *_: [])
    (release_copy / "manifest.json").unlink()
    os.mkfifo(release_copy / "manifest.json")
    with raises("not-a-file", "manifest.json", error=ReleaseError):
        verify_release(str(release_copy))


def test_the_size_of_every_document_is_checked(release_copy: Path) -> None:
    path = release_copy / CHECKSUMS
    checksums = json.loads(path.read_text())
    for name, entry in checksums["files"].items():
        was, entry["bytes"] = entry["bytes"], entry["bytes"] + 1
        path.write_text(json.dumps(checksums))
        assert [problem.file for problem in verify(release_copy)] == [name]
        entry["bytes"] = was


DIGEST = {"sha256": "a" * 64}


@pytest.mark.parametrize(
    ("files", "code", "facts"),
    [
        ({"../x": DIGEST}, "outside-folder", ("'../x'",)),
        ({"/etc/passwd": DIGEST}, "outside-folder", ("'/etc/passwd'",)),
        ({"a\0": DIGEST}, "outside-folder", (r"'a\x00'",)),
        ({"x": {"sha256": "../x"}}, "bad-value", ("x: sha256:",)),
        ({"x": 1}, "bad-value", ("x:",)),
        ({"x": {"rows_sha256": 1}}, "bad-value", ("x: rows_sha256:",)),
    ],
)
def test_checksums_name_files_of_the_release(
    files: object, code: str, facts: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / CHECKSUMS).write_text(json.dumps({"files": files}))
    with raises(code, tmp_path / CHECKSUMS, *facts, error=ReleaseError):
        read_checksums(tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_release(tmp_path_factory.mktemp("built") / "release")


@pytest.fixture
def release_copy(tmp_path: Path, built: Path) -> Path:
    """A release that a test may damage."""
    return Path(shutil.copytree(built, tmp_path / "release"))
