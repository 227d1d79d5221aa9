"""Releases whose checksums fit and whose rows do not, and banks with odd entries: one line each."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from counterprior.builders.bank import DEFAULT_BANK, BankError
from counterprior.builders.build import BuildSettings, build
from counterprior.builders.suite import Banks
from counterprior.cards.write import staged, write_release
from counterprior.cli.main import app
from counterprior.release import CHECKSUMS, parquet_path, sha256_file
from counterprior.schema import rows_digest

CONFIG = "t2i_homogenization"
FILE = parquet_path(CONFIG)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sound") / "release"
    made = build(BuildSettings((CONFIG,), bank=DEFAULT_BANK))
    with staged(root) as folder:
        write_release(made, folder)
    return root


Rows = list[dict[str, Any]]


def changed(**values: Any) -> Callable[[Rows], Rows]:
    """Changes fields of the first row."""
    return lambda rows: [{**rows[0], **values}, *rows[1:]]


def typed(field: str, value: Any) -> Callable[[Rows], Rows]:
    """Changes a field of all rows, and so the type of its column."""
    return lambda rows: [{**row, field: value} for row in rows]


def without(field: str) -> Callable[[Rows], Rows]:
    return lambda rows: [{k: v for k, v in row.items() if k != field} for row in rows]


CHANGES: dict[str, Callable[[Rows], Rows]] = {
    "a long id": changed(id="x" * 5_000),
    "an id that leads elsewhere": changed(id="../../../etc/passwd"),
    "no id": changed(id=None),
    "an empty id": changed(id=""),
    "an id twice": lambda rows: [rows[0], *rows],
    "ids that are numbers": typed("id", 7),
    "an escape in a prompt": changed(prompt="\x1b[31mred\x07\u202e"),
    "a decomposed prompt": changed(prompt="Zo\u0065\u0301"),
    "a prompt of 5 MB": changed(prompt="a cat " * 900_000),
    "no prompt": changed(prompt=None),
    "an empty prompt": changed(prompt=""),
    "prompts that are lists": typed("prompt", ["a", "b"]),
    "prompts that are numbers": typed("prompt", 1.5),
    "seeds that are texts": typed("seeds", ["a"]),
    "no seeds": changed(seeds=[]),
    "negative seeds": changed(seeds=[-1, -2, -3, -4]),
    "an entity that is a text": typed("first", "cat"),
    "no entity": changed(first=None),
    "an entity without kind": lambda rows: [
        {**row, "first": {k: v for k, v in row["first"].items() if k != "kind"}} for row in rows
    ],
    "an unknown kind": lambda rows: changed(first={**rows[0]["first"], "kind": "gas"})(rows),
    "a column too many": typed("surplus", 1),
    "no column of prompts": without("prompt"),
    "an unknown status": changed(status="blessed"),
    "all retired": typed("status", "retired"),
    "no row": lambda rows: [],
}

REFUSED = {
    "an id twice": "row 2: id: ",
    "an empty id": "id: ",
    "no seeds": "seeds: ",
    "negative seeds": "seeds: ",
    "all retired": "nothing to draw: all of its ",
    "no row": "nothing to draw: it has no rows",
}
"""What must be said of them, before an image is made."""


def forge(sound: Path, root: Path, change: Callable[[Rows], Rows]) -> Path:
    """A copy with other rows, whose checksums say that they are right."""
    shutil.copytree(sound, root)
    path = root / FILE
    table = pq.read_table(path)
    rows = change(table.to_pylist())
    pq.write_table(pa.Table.from_pylist(rows) if rows else table.slice(0, 0), path)
    try:
        digest = rows_digest(pq.read_table(path).to_pylist())
    except TypeError:  # ids that have no order
        digest = "0" * 64
    return sealed(root, digest)


def sealed(root: Path, digest: str | None = None) -> Path:
    """Puts the digest of the file into the checksums."""
    checksums = json.loads((root / CHECKSUMS).read_text())
    entry = checksums["files"][FILE]
    entry |= {"sha256": sha256_file(root / FILE), "bytes": (root / FILE).stat().st_size}
    entry |= {"rows_sha256": digest} if digest else {}
    (root / CHECKSUMS).write_text(json.dumps(checksums))
    return root


def outcome(release: Path, out: Path) -> tuple[int, str, bool]:
    """Exit code and error output of an evaluation, and whether it went well."""
    words = ["eval", "--suite", CONFIG, "--data", str(release), "--limit", "2"]
    words += ["--generator", "render:", "--judge", "pixels:", "--out", str(out)]
    done = CliRunner().invoke(app, words)
    said = done.output
    own = done.exception is None or isinstance(done.exception, SystemExit)
    well = own and done.exit_code in (0, 1, 2) and "Traceback" not in said and "bug" not in said
    return done.exit_code, said + repr(done.exception), well and "\x1b[31m" not in said


def test_a_sound_release_is_scored(sound: Path, tmp_path: Path) -> None:
    release = forge(sound, tmp_path / "forged", lambda rows: rows)
    code, said, well = outcome(release, tmp_path / "run")
    assert code == 0 and well, said


@pytest.mark.parametrize("name", CHANGES)
def test_no_row_of_a_stranger_gives_a_traceback(
    name: str, sound: Path, tmp_path: Path, survived: Callable[[str, bool], None]
) -> None:
    release = forge(sound, tmp_path / "forged", CHANGES[name])
    before = {path for path in tmp_path.iterdir()}
    code, said, well = outcome(release, tmp_path / "run")
    well = well and {p for p in tmp_path.iterdir()} - before <= {tmp_path / "run"}
    if code:
        errors = [line for line in said.splitlines() if re.search(r" \[[a-z-]+\]$", line)]
        well = well and len(errors) == 1 and len(errors[0]) < 1_000
        well = well and str(tmp_path) in errors[0]  # the release or run, not this test's words
    if name in REFUSED:
        well = well and code != 0 and REFUSED[name] in said and not (tmp_path / "run").exists()
    survived("rows of a release whose checksums fit", well)
    assert well, said[-2_000:]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(400) + b"PAR1"], ids=len)
def test_no_file_of_a_stranger_gives_a_traceback(
    content: bytes, sound: Path, tmp_path: Path, survived: Callable[[str, bool], None]
) -> None:
    shutil.copytree(sound, tmp_path / "forged")
    (tmp_path / "forged" / FILE).write_bytes(content)
    code, said, well = outcome(sealed(tmp_path / "forged"), tmp_path / "run")
    survived("rows of a release whose checksums fit", well and code != 0)
    assert well and code != 0, said[-2_000:]


@pytest.mark.parametrize("field", ["plural", "article", "category", "look", "size", "grounding"])
@pytest.mark.parametrize("value", [None, "[1, {a: b}]", "7"], ids=["missing", "list", "number"])
def test_an_odd_entry_of_a_bank_is_one_line(
    field: str, value: str | None, tmp_path: Path, survived: Callable[[str, bool], None]
) -> None:
    bank = tmp_path / "bank"
    shutil.copytree(DEFAULT_BANK, bank)
    head, entry, rest = (bank / "objects.yaml").read_text("utf-8").partition("- name: chair\n")
    block, blank, others = rest.partition("\n\n")
    lines, inside = [], False
    for line in block.splitlines():
        inside = line.startswith(f"  {field}:") or (inside and line.startswith("    "))
        if not inside:
            lines.append(line)
    lines += [] if value is None else [f"  {field}: {value}"]
    (bank / "objects.yaml").write_text(head + entry + "\n".join(lines) + blank + others, "utf-8")
    if value is not None:  # a command says what the reader of the bank raises, if it does
        try:
            _ = Banks(bank).taxonomy
        except BankError as error:
            well = field in str(error) and "objects.yaml, entry 1 (chair)" in str(error)
            survived("odd entries of a bank", well)
            assert well, error
            return
    words = ["build", "--config", CONFIG, "--bank", str(bank), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*words, "--jobs", "1"])
    said = " ".join(done.output.split())
    own = done.exception is None or isinstance(done.exception, SystemExit)
    well = own and "Traceback" not in said and (not done.exit_code or field in said)
    if done.exit_code:
        well = well and "objects.yaml, entry 1 (chair)" in said
    survived("odd entries of a bank", well)
    assert well, done.output[-2_000:] + repr(done.exception)
