"""Constrained pairs: the loop's contract with the bank, and what it writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...agents.constrained.answers import Proposal
from ...agents.constrained.loop import SCOUT, ConstrainedLoop
from ...agents.constrained.rounds import Authored, BankContract, LoopSettings
from ...agents.pairs import KnownPair
from ...agents.session import SessionSettings, open_session
from ...errors import UsageError
from ...progress import Progress, silent
from ...scenes.vector import ShapeError
from ...storage import write_json
from ..bank import DEFAULT_BANK, reasons
from ..constrained import ConstrainedPair, Standard, pair_faults, read_pairs, read_standards
from ..depictions import DEPICTIONS, drawable_by_fact
from ..facts import FactTables, read_facts
from ..frames import FRAMES
from ..gold import draw_gold
from ..phrases import wrong_article
from .folder import AuthoringReport, extend, refuse, report, write_queue, written_bank

RUN = "constrained"
"""Name of the loop's run in a ledger."""

UNLIMITED = 10_000
"""Idle rounds of a replay: it ends with its ledger, whatever ended the run."""


def author_constrained(
    session: SessionSettings,
    loop: LoopSettings,
    base: Path | None,
    bank: Path,
    progress: Progress = silent,
) -> AuthoringReport:
    """Runs the three-agent loop and writes its bank after every round.

    Raises UsageError, BankError or LedgerError for what the user can mend, and BackendError if the
    model can't be used.
    """
    refuse(base, bank)
    with open_session(session) as opened:
        contract = constrained_contract(base)
        if session.replay:
            record_ids = {r.id.partition("/")[0] for r in opened.ledger.records()}
            contract, loop = recorded(opened.ledger.inputs(RUN), contract, len(record_ids))
            if contract.pairs and base is None:
                raise UsageError(
                    f"{session.ledger}: extended a bank; name that bank as --base",
                    code="another-run",
                )
        elif opened.ledger.has_run(RUN):
            loop = _resumed(opened.ledger.inputs(RUN), loop)
        opened.ledger.bind(RUN, inputs(contract, loop))
        recorded_calls = len(opened.ledger)

        def after_round(so_far: Authored) -> None:
            if len(opened.ledger) > recorded_calls:  # rounds that are read back need no copy
                write_constrained(base, bank, so_far)

        running = ConstrainedLoop(opened.author(SCOUT.name), contract, loop)
        authored = running.run(after_round, progress)
        write_constrained(base, bank, authored)
        counts = {
            "rounds": len(authored.rounds),
            "entries": len(authored.entries),
            "rejected": sum(len(r.rejected) for r in authored.rounds),
            "standards to review": len(authored.standards),
            "failed rounds": sum(bool(r.failure) for r in authored.rounds),
        }
        ended = "the end of the ledger" if session.replay else authored.stopped
        stopped = f"{ended}: {authored.reason}" if authored.reason else ended
        return report(opened, bank, stopped, counts)


def inputs(contract: BankContract, loop: LoopSettings) -> dict[str, Any]:
    """Returns the inputs of a run's prompts, which its ledger records."""
    plan = {"rounds": loop.planned or loop.rounds} if loop.lists_flagged else {}
    return plan | {
        "target": loop.target,
        "proposals": loop.proposals,
        "domains": sorted({*contract.domains, *loop.domains}),
        "eyes": loop.eyes,
        "standards": dict(contract.standards),
        "frames": list(contract.frames),
        "facts": list(contract.facts),
        "pairs": [asdict(pair) for pair in contract.pairs],
        "ids": sorted(contract.ids),
    }


def recorded(
    ledger_inputs: Mapping[str, Any], contract: BankContract, rounds: int
) -> tuple[BankContract, LoopSettings]:
    """Contract and settings of a recorded run of `rounds`; validators and images are current."""
    pairs = tuple(KnownPair(**pair) for pair in ledger_inputs["pairs"])
    ids = frozenset(ledger_inputs["ids"])
    then = BankContract(
        domains=tuple(ledger_inputs["domains"]),
        standards=ledger_inputs["standards"],
        frames=tuple(ledger_inputs["frames"]),
        facts=tuple(ledger_inputs["facts"]),
        pairs=pairs,
        ids=ids,
        faults=contract.faults,
        draw=contract.draw,
    )
    loop = LoopSettings(
        rounds=rounds,
        target=ledger_inputs["target"],
        patience=UNLIMITED,
        eyes=ledger_inputs["eyes"],
    )
    return then, _resumed(ledger_inputs, loop)


def _resumed(ledger_inputs: Mapping[str, Any], loop: LoopSettings) -> LoopSettings:
    """The settings with the recorded plan, so that recorded rounds ask what they asked; a number
    of proposals that was not recorded stays, for the ledger to refuse."""
    return replace(
        loop,
        proposals=ledger_inputs["proposals"] if loop.proposals is None else loop.proposals,
        planned=ledger_inputs.get("rounds"),
        lists_flagged="rounds" in ledger_inputs,
    )


def constrained_contract(base: Path | None) -> BankContract:
    """The contract of a bank to extend, or without one of the shipped bank without its pairs."""
    bank = base or DEFAULT_BANK
    standards = read_standards(bank)
    domains = read_pairs(bank)
    facts = read_facts(bank)
    depictions = cache(lambda: DEPICTIONS.read(bank))  # most runs draw nothing

    def draw(proposal: Proposal) -> bytes | None:
        drawable = drawable_by_fact(_proposed(proposal), depictions(), facts)
        if drawable is None:
            return None
        try:
            return draw_gold(drawable.image("right", drawable.depiction.styles[0], 0))
        except ShapeError:  # e.g. a number with a sign that the font lacks
            return None

    active = tuple(
        KnownPair(
            id=p.id,
            domain=domain,
            left=p.left,
            right=p.right,
            context=p.context,
            frame=p.frame,
        )
        for domain, pairs in sorted(domains.items())
        for p in pairs
        if p.status != "retired"
    )
    return BankContract(
        domains=tuple(sorted(domains)),
        standards={s.id: f"{s.citation}. {s.fixes}" for s in standards.values()},
        frames=tuple(f"{name}: {view.meaning}" for name, view in FRAMES.items()),
        facts=tuple(facts.described(name) for name in sorted(facts.facts)),
        pairs=active if base else (),
        ids=frozenset(p.id for pairs in domains.values() for p in pairs) if base else frozenset(),
        faults=lambda domain, entry: entry_faults(domain, entry, standards, facts),
        draw=draw,
    )


def _proposed(proposal: Proposal) -> ConstrainedPair:
    """A proposal as far as drawing needs it. Its id, which seeds the image, tells no side."""
    return ConstrainedPair(
        id=" | ".join(sorted((proposal.left, proposal.right))),
        **proposal.model_dump(exclude={"domain", "standard", "failure"}),
        text_bound=False,
        standards=[],
        tell_left="",
        tell_right="",
        mirror_safe=False,
    )


def entry_faults(
    domain: str, entry: Mapping[str, Any], standards: dict[str, Standard], facts: FactTables
) -> list[str]:
    """Returns the faults that keep an entry out of a bank and its prompts out of a release."""
    try:
        pair = ConstrainedPair.model_validate(entry)
    except ValidationError as error:
        return [reasons(error)]
    faults = pair_faults(pair, domain, standards, facts)
    for prompt in (pair.aligned_prompt, pair.reverse_prompt):
        if (wrong := wrong_article(prompt)) is not None:
            faults.append(f"left, right: the wrong article in {wrong!r}")
        if not (prompt[0].isupper() or prompt[0].isdigit()):
            faults.append("left, right: must start with a letter or digit")
    return faults


def write_constrained(base: Path | None, bank: Path, authored: Authored) -> None:
    """Writes base plus accepted entries, archive and review queue to `bank`, whole or not at all.

    Raises BankError if `bank` holds anything but an unedited earlier result.
    """
    with written_bank(base, bank, without="constrained") as folder:
        written = sorted(authored.entries.values(), key=lambda w: w.domain)
        for domain, group in groupby(written, key=lambda w: w.domain):
            extend(folder / "constrained" / f"{domain}.yaml", (w.entry for w in group))
        read_pairs(folder)
        for past in authored.rounds:
            name = f"r{past.number:02d}.json"
            write_json(folder / "archive" / "constrained" / name, past.archive())
        if authored.standards:
            write_queue(folder / "review" / "standards.yaml", authored.standards)
