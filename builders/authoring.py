"""Banks that agents write: what a run starts from, what may enter, and how it is stored.

A written bank is its base plus the accepted entries: a function of base and ledger, made anew in
each run, so that resumed, repeated and replayed runs end in the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ..agents.caller import Progress
from ..agents.constrained.loop import (
    SCOUT,
    Authored,
    BankContract,
    ConstrainedLoop,
    LoopSettings,
    Written,
)
from ..agents.pairs import KnownPair
from ..agents.session import Account, SessionSettings, open_session
from .bank import DEFAULT_BANK, BankError, reasons
from .constrained import ConstrainedPair, Standard, pair_faults, read_pairs, read_standards
from .phrases import wrong_article

RUN = "constrained"
"""Name of the loop's run in a ledger."""

UNLIMITED = 10_000
"""Rounds of a replay: it ends with its ledger."""

MARKER = "AUTHORED.json"
"""Lists the files of a written bank with their SHA-256, so that a person's edits are seen."""


@dataclass(frozen=True)
class Report:
    """What an authoring run did."""

    bank: Path
    """The written bank."""
    stopped: str
    """Why it ended."""
    counts: Mapping[str, int]
    """How much was accepted, rejected, queued."""
    accounts: list[Account]
    """Tokens and money by role and model, over the whole ledger."""


def author_constrained(
    session: SessionSettings,
    loop: LoopSettings,
    base: Path | None,
    bank: Path,
    progress: Progress = lambda stage, done, total: None,
) -> Report:
    """Runs the three-agent loop and writes its bank after every round.

    Raises ValueError for what the user can mend, BackendError where the model can't be used.
    """
    _refuse(base, bank)
    with open_session(session) as opened:
        contract = constrained_contract(base)
        if session.replay:
            contract, loop = recorded(opened.ledger.inputs(RUN), contract)
            if contract.pairs and base is None:
                raise ValueError(f"{session.ledger}: it extended a bank; name that as --base")
        opened.ledger.bind(RUN, inputs(contract, loop))
        recorded_calls = len(opened.ledger)

        def after_round(so_far: Authored) -> None:
            if len(opened.ledger) > recorded_calls:  # rounds that are read back need no copy
                write_constrained(base, bank, so_far)

        running = ConstrainedLoop(opened.author(SCOUT.short), contract, loop)
        authored = running.run(after_round, progress)
        write_constrained(base, bank, authored)
        counts = {
            "rounds": len(authored.rounds),
            "entries": len(authored.entries),
            "rejected": sum(len(r.rejected) for r in authored.rounds),
            "standards to review": len(authored.standards),
            "failed rounds": sum(bool(r.failure) for r in authored.rounds),
        }
        stopped = f"{authored.stopped}: {authored.reason}" if authored.reason else authored.stopped
        return Report(bank, stopped, counts, opened.accounts())


def inputs(contract: BankContract, loop: LoopSettings) -> dict[str, Any]:
    """What the prompts of a run are made from; its ledger records it."""
    return {
        "target": loop.target,
        "proposals": loop.proposals,
        "domains": sorted({*contract.domains, *loop.domains}),
        "standards": dict(contract.standards),
        "layouts": list(contract.layouts),
        "pairs": [asdict(pair) for pair in contract.pairs],
    }


def recorded(given: Mapping[str, Any], contract: BankContract) -> tuple[BankContract, LoopSettings]:
    """Contract and settings of a recorded run; only the validators are today's."""
    pairs = tuple(KnownPair(**pair) for pair in given["pairs"])
    domains, layouts = tuple(given["domains"]), tuple(given["layouts"])
    then = BankContract(domains, given["standards"], layouts, pairs, contract.faults)
    # The ledger ends the replay, whatever ended the run.
    return then, LoopSettings(UNLIMITED, given["target"], UNLIMITED, given["proposals"])


def constrained_contract(base: Path | None) -> BankContract:
    """The contract of a bank to extend; without one, of the shipped bank without its pairs."""
    bank = base or DEFAULT_BANK
    standards = read_standards(bank)
    domains = read_pairs(bank)
    examples: dict[str, str] = {}
    for pair in (p for _, pairs in sorted(domains.items()) for p in pairs):
        if pair.check and len(pair.code_check) < len(examples.get(pair.check["layout"], "x" * 200)):
            examples[pair.check["layout"]] = pair.code_check
    known = tuple(
        KnownPair(p.id, domain, p.difficulty, p.left, p.right, p.context)
        for domain, pairs in sorted(domains.items())
        for p in pairs
        if p.status != "retired"
    )
    return BankContract(
        domains=tuple(sorted(domains)),
        standards={s.id: f"{s.citation}. {s.fixes}" for s in standards.values()},
        layouts=tuple(examples[layout] for layout in sorted(examples)),
        pairs=known if base else (),
        faults=lambda domain, entry: entry_faults(domain, entry, standards),
    )


def entry_faults(
    domain: str, entry: Mapping[str, Any], standards: dict[str, Standard]
) -> list[str]:
    """What keeps an entry out of a bank and its prompts out of a release."""
    try:
        pair = ConstrainedPair.model_validate(entry)
    except ValidationError as error:
        return [reasons(error)]
    faults = pair_faults(pair, domain, standards)
    for prompt in (pair.aligned_prompt, pair.reverse_prompt):
        if (wrong := wrong_article(prompt)) is not None:
            faults.append(f"left, right: the wrong article in {wrong!r}")
        if not (prompt[0].isupper() or prompt[0].isdigit()):
            faults.append("left, right: must start with a letter or digit")
    return faults


def write_constrained(base: Path | None, bank: Path, authored: Authored) -> None:
    """Writes base plus accepted entries, archive and review queue to `bank`, whole or not at all.

    Raises BankError where `bank` holds anything but an unedited earlier result.
    """
    _refuse(base, bank)
    partial = bank.with_name(bank.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    kept = shutil.ignore_patterns(MARKER, "archive", "review", *([] if base else ["constrained"]))
    shutil.copytree(base or DEFAULT_BANK, partial, ignore=kept)
    folder = partial / "constrained"
    folder.mkdir(exist_ok=True)
    for domain in sorted({w.domain for w in authored.entries.values()}):
        _extend(folder / f"{domain}.yaml", [w for w in authored.entries.values()
                                            if w.domain == domain])  # fmt: skip
    read_pairs(partial)
    _write_archive(partial / "archive" / "constrained", authored)
    if authored.standards:
        (partial / "review").mkdir()
        text = _yaml(authored.standards)
        (partial / "review" / "standards.yaml").write_text(text, encoding="utf-8")
    files = {path: _sha(partial / path) for path in _files(partial)}
    (partial / MARKER).write_text(json.dumps({"files": files}, indent=1) + "\n", encoding="utf-8")
    _replace(bank, partial)


def _extend(file: Path, written: Iterable[Written]) -> None:
    """Puts changed entries in the place of the old ones and new ones at the end."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    for each in written:
        block = _yaml([dict(each.entry)])
        old = re.search(
            rf"^- id: {re.escape(each.entry['id'])}\n(?:(?!- id:).*\n?)*", text, re.MULTILINE
        )
        if old:
            text = text[: old.start()] + block + "\n" + text[old.end() :]
        else:
            text = (text.rstrip("\n") + "\n\n" if text else "") + block
    file.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def _write_archive(folder: Path, authored: Authored) -> None:
    folder.mkdir(parents=True)
    for past in authored.rounds:
        text = json.dumps(past.archive(), indent=1, ensure_ascii=False) + "\n"
        (folder / f"r{past.number:02d}.json").write_text(text, encoding="utf-8")


def _yaml(entries: list[dict[str, Any]]) -> str:
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=100)


def _refuse(base: Path | None, bank: Path) -> None:
    """Raises BankError where writing `bank` would destroy something."""
    if base is not None and base.resolve() == bank.resolve():
        raise BankError(f"{bank}: a run can't write over its own base; name another --bank")
    if not bank.exists() or (bank.is_dir() and not any(bank.iterdir())):
        return
    if not (bank / MARKER).is_file():
        raise BankError(f"{bank}: exists and is no written bank; name an empty folder as --bank")
    listed = json.loads((bank / MARKER).read_text(encoding="utf-8"))["files"]
    there = {path: _sha(bank / path) for path in _files(bank) if path != MARKER}
    changed = sorted(path for path in {*listed, *there} if listed.get(path) != there.get(path))
    if changed:
        raise BankError(
            f"{bank}: {changed[0]} was edited since it was written; keep this bank as the --base "
            "of a run into another --bank"
        )


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
