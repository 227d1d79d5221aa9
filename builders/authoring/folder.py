"""The folder of a written bank: made whole or not at all, and never over a person's edits."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ...agents.budget import Spending
from ...agents.session import Account, Session
from ...storage import write_json, write_whole
from ..bank import DEFAULT_BANK, BankError

MARKER = "AUTHORED.json"
"""Lists the files of a written bank with their SHA-256, so that a person's edits show."""

KEPT_APART = (MARKER, "archive", "review")
"""Files and folders of a run, not of the bank; those of a base are not copied."""


@dataclass(frozen=True)
class AuthoringReport:
    """Result of an authoring run."""

    bank: Path
    """The written bank."""
    stopped: str
    """Why it ended."""
    counts: Mapping[str, int]
    """How many entries were accepted, rejected, queued."""
    accounts: list[Account]
    """Tokens and money by role and model, over the whole ledger."""
    spending: Spending
    """Cost of the calls of this run."""


def report(
    session: Session, bank: Path, stopped: str, counts: Mapping[str, int]
) -> AuthoringReport:
    """The report of a session that has written `bank`."""
    return AuthoringReport(
        bank=bank,
        stopped=stopped,
        counts=counts,
        accounts=session.accounts(),
        spending=session.budget.spending,
    )


def _copy(source: Path, target: Path, left_out: Callable[[str, list[str]], set[str]]) -> None:
    """Copies a folder. Raises the OSError of the first file or folder that can't be written, which
    `shutil.copytree` would tell as text alone."""
    for name, folders, files in os.walk(source):
        ignored = left_out(name, [*folders, *files])
        folders[:] = sorted({*folders} - ignored)
        folder = target / Path(name).relative_to(source)
        folder.mkdir(parents=True)
        for file in sorted({*files} - ignored):
            shutil.copy2(Path(name) / file, folder / file)


@contextmanager
def written_bank(base: Path | None, bank: Path, without: str) -> Iterator[Path]:
    """A folder to write into that becomes `bank` when the block ends well.

    It starts as a copy of `base`, or of the shipped bank without the file or folder `without`.
    Raises BankError if `bank` holds anything but an unedited earlier result.
    """
    refuse(base, bank)
    partial = bank.with_name(bank.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    left_out = shutil.ignore_patterns(*KEPT_APART, *([] if base else [without]))
    _copy(base or DEFAULT_BANK, partial, left_out)
    yield partial
    files = {path: _sha(partial / path) for path in _files(partial)}
    write_json(partial / MARKER, {"files": files})
    _replace(bank, partial)


def refuse(base: Path | None, bank: Path) -> None:
    """Raises BankError if writing `bank` would destroy something."""
    if base is not None and base.resolve() == bank.resolve():
        raise BankError(
            f"{bank}: a run can't overwrite its own base; name another --bank",
            code="would-overwrite",
        )
    if not bank.exists() or (bank.is_dir() and not any(bank.iterdir())):
        return
    if not (bank / MARKER).is_file():
        raise BankError(
            f"{bank}: exists and is not a bank that a run wrote: name an empty folder as --bank",
            code="folder-not-empty",
        )
    listed = json.loads((bank / MARKER).read_text(encoding="utf-8"))["files"]
    there = {path: _sha(bank / path) for path in _files(bank) if path != MARKER}
    changed = sorted(path for path in {*listed, *there} if listed.get(path) != there.get(path))
    if changed:
        raise BankError(
            f"{bank}: {changed[0]} was edited since it was written; keep this bank, use it as "
            "--base, and name another --bank",
            code="changed-file",
        )


def extend(file: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Replaces changed entries and appends new ones; the rest stays as a person wrote it.

    Entries start with their id.
    """
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    for entry in entries:
        block = to_yaml([dict(entry)])
        if old := _block(text, entry["id"]):
            text = text[: old.start()] + block + "\n" + text[old.end() :]
        else:
            text = (text.rstrip("\n") + "\n\n" if text else "") + block
    write_whole(file, text.rstrip("\n") + "\n")


def remove(file: Path, name: str) -> None:
    """Removes an entry from a bank file, and the file if it was the last entry."""
    text = file.read_text(encoding="utf-8")
    block = _block(text, name)
    if block is None:
        raise BankError(
            f"{file}: no entry {name} that starts with its id", code="unknown-reference"
        )
    text = (text[: block.start()] + text[block.end() :]).rstrip("\n") + "\n"
    if re.search(r"^- ", text, re.MULTILINE):
        write_whole(file, text)
    else:
        file.unlink()


def _block(text: str, name: str) -> re.Match[str] | None:
    """The lines of the entry with this id."""
    return re.search(rf"^- id: {re.escape(name)}\n(?:(?!- id:).*\n?)*", text, re.MULTILINE)


def write_queue(file: Path, waiting: list[dict[str, Any]]) -> None:
    """Writes entries that a person has to decide on."""
    write_whole(file, to_yaml(waiting))


def to_yaml(entries: list[dict[str, Any]]) -> str:
    """Entries as a bank file holds them."""
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=100)


def _replace(bank: Path, partial: Path) -> None:
    old = bank.with_name(bank.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if bank.exists():
        bank.rename(old)
    partial.rename(bank)
    shutil.rmtree(old, ignore_errors=True)


def _files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def _sha(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
