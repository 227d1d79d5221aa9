"""The texts that each role is given in a round: a function of bank, rounds and settings."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ..chat import ImagePart
from ..hygiene import one_line
from ..pairs import KnownPair
from .answers import Proposal
from .coverage import Gaps, describe
from .rounds import BankContract, LoopSettings, Round, Written

SHOWN_PAIRS = 400
"""Pairs of the bank that the Scout is shown, those of the emptiest domains first."""

SHOWN_REJECTIONS = 20
"""Rejections of the last round that the Scout is told."""

SHOWN_FLAGS = 200
"""Proposals that the Critic rejected before the last round, which the Scout is told, the newest."""

QUOTED = 300
"""Characters of a directive or reason that is passed on."""


def scout_text(
    now: Round,
    settings: LoopSettings,
    pairs: Collection[KnownPair],
    wanted: Gaps,
    past: Sequence[Round],
) -> str:
    """The gaps, the pairs of the bank, the results of the last round, and what the Critic turned
    down before."""
    last = past[-1] if past else None
    sections = [
        f"Round {now.number}. The bank holds {len(pairs)} of {settings.target} pairs. "
        f"Propose {now.requested} new ones.",
        f"Pairs still wanted:\n{describe(wanted)}",
    ]
    if pairs:
        sections.append("Pairs that are there:\n" + _data(_pair_lines(pairs, wanted)))
    # What hygiene stopped is not quoted: it may be written to be read by a model.
    if last and (lines := [f"{r.what}: {r.why}" for r in last.rejected if r.by != "hygiene"]):
        sections.append("Rejected last round:\n" + _data(lines[:SHOWN_REJECTIONS]))
    if settings.lists_flagged and (lines := _turned_down(past[:-1])):
        sections.append("Rejected by the Critic in earlier rounds:\n" + _data(lines))
    if last and last.criticism:
        lines = [one_line(text, QUOTED) for text in last.criticism.directives]
        sections.append("The Critic's directives:\n" + _data(lines))
    return "\n\n".join(sections)


def critic_parts(
    now: Round, wanted: Gaps, images: Mapping[int, bytes]
) -> Iterator[str | ImagePart]:
    """The gaps and the round's proposals, then the image of each that is drawn."""
    yield (
        f"Round {now.number}. Pairs still wanted:\n{describe(wanted)}\n\n"
        f"The Scout's proposals:\n{_numbered(now.proposals)}"
    )
    for number, image in images.items():
        yield f"Proposal {number}, as its fact table has it:"
        yield ImagePart(image)


def layouts_text(contract: BankContract) -> str:
    """Frames and facts, which Scout and Curator need in every round; apart, so that caches and
    ledger hold it once."""
    return f"Frames:\n{_data(contract.frames)}\n\nFact tables:\n{_data(contract.facts)}"


def registry_text(contract: BankContract, domains: Iterable[str]) -> str:
    """Returns the registry for the Curator, which needs it in every round; apart for caches too."""
    standards = [f"{name}: {title}" for name, title in sorted(contract.standards.items())]
    return f"Registry of standards:\n{_data(standards)}\n\nDomains: {', '.join(domains)}"


def curator_text(now: Round, written: Mapping[str, Written]) -> str:
    """Returns the run's entries, the Critic's review, and the proposals that it accepted."""
    assert now.criticism is not None
    flagged = {*now.criticism.arbitrary, *now.returned}
    standing = {number for number in range(1, len(now.proposals) + 1) if number not in flagged}
    review = [one_line(t, QUOTED) for t in (now.criticism.strengths, now.criticism.weaknesses)]
    listed = [
        f"{name}: {w.entry['left']} | {w.entry['right']} | {w.entry['context']}"
        for name, w in sorted(written.items())
    ]
    return "\n\n".join(
        [
            "Entries written so far, by id:\n" + _data(listed),
            f"Round {now.number}. The Critic says:\n" + _data(review),
            "Proposals that stand:\n" + _numbered(now.proposals, standing),
        ]
    )


def _turned_down(rounds: Sequence[Round]) -> list[str]:
    """Proposals that the Critic flagged or sent back, the newest last."""
    rejected = [r for past in rounds for r in past.rejected if r.by in ("critic", "image")]
    return list(dict.fromkeys(r.what for r in rejected))[-SHOWN_FLAGS:]


def _pair_lines(pairs: Iterable[KnownPair], wanted: Gaps) -> list[str]:
    order = sorted(pairs, key=lambda p: (-wanted.get(p.domain, 0), p.id))
    return [f"{p.domain}: {p.left} | {p.right} | {p.context}" for p in order[:SHOWN_PAIRS]]


def _data(lines: Iterable[str]) -> str:
    # No line can close the block that marks it as material.
    listed = "\n".join(f"- {line.replace('</', '< /')}" for line in lines)
    return f"<data>\n{listed}\n</data>"


def _numbered(proposals: Sequence[Proposal], only: set[int] | None = None) -> str:
    lines = [
        f"{number}. {json.dumps(proposal.model_dump(), ensure_ascii=False)}"
        for number, proposal in enumerate(proposals, 1)
        if only is None or number in only
    ]
    return "<data>\n" + "\n".join(lines) + "\n</data>"
