"""The loop: the Scout proposes against measured gaps, the Critic reviews, the Curator writes, and
code decides what enters the bank (OTS-Bench, appendix C)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import ceil
from typing import Any

from ...errors import UsageError
from ...progress import Progress, silent
from ..budget import BudgetError, CheaperError, UnpricedError
from ..caller import Answer, Caller
from ..chat import ImagePart, NotRecordedError
from ..hygiene import one_line, skeleton, text_fault
from ..pairs import KnownPair, PairIndex
from ..roles import Role
from .answers import Criticism, Curation, Entry, Proposal, Scouting
from .coverage import gaps
from .questions import (
    QUOTED,
    critic_parts,
    curator_text,
    layouts_text,
    registry_text,
    scout_text,
)
from .rounds import Authored, BankContract, LoopSettings, Rejected, Round, Written

SCOUT = Role("constrained/scout", Scouting, 12_000)
CRITIC = Role("constrained/critic", Criticism, 4_000)
CURATOR = Role("constrained/curator", Curation, 16_000)

PROMPT_FIELDS = {"left": 80, "right": 80, "context": 160}
"""Texts that become part of prompts, and their longest length in characters."""

TOLD_FIELDS = {"rationale": 300, "tell_left": 160, "tell_right": 160, "scope": 80}
"""Texts that explain why and how, and their longest length in characters."""

STORED_FIELDS = (
    *("left", "right", "context", "frame", "fact", "family", "text_bound", "standards"),
    *("rationale", "tell_left", "tell_right", "mirror_safe", "scope"),
)
"""Fields of an entry that the bank stores unchanged, in its order."""

FLAGGED = "the Critic: nothing fixes its layout, or it names a side, or it is wrong"
"""Reason of a flag: the Critic lists numbers only."""

MOST_PROPOSALS = 40
"""Proposals that a round asks for at most, so that the answers of all roles have room."""

LOWEST_SURVIVAL = 0.25
"""Lowest share of proposals assumed to enter the bank, however few did so far."""

PROPOSED_FIELDS = {"standard": 200, "rationale": 400, "failure": 400, "scope": 80}
"""The same for a proposal."""


class ConstrainedLoop:
    """One run; a function of contract, settings and answers alone."""

    def __init__(self, caller: Caller, contract: BankContract, settings: LoopSettings) -> None:
        """Raises UsageError if there is no domain, or one with a wrong name."""
        self.caller = caller
        self.contract = contract
        self.settings = settings
        self.domains = tuple(sorted({*contract.domains, *settings.domains}))
        if not self.domains:
            raise UsageError(
                "the bank has no domain: name at least one with --domain", code="missing-option"
            )
        for domain in self.domains:
            if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", domain):
                raise UsageError(
                    f"domain {domain!r}: use lower-case words joined by _", code="bad-option"
                )
        self._base = {pair.id: pair for pair in contract.pairs}
        self._pairs = dict(self._base)
        self._taken = set(contract.ids)
        self._index = PairIndex(contract.pairs)
        self._result = Authored([], {}, "rounds")

    def run(
        self,
        after_round: Callable[[Authored], None] = lambda authored: None,
        progress: Progress = silent,
    ) -> Authored:
        """Runs rounds until target, budget, saturation or the number of rounds ends the loop.

        `after_round` is called with the result so far.
        """
        result = self._result
        for number in range(1, self.settings.rounds + 1):
            if len(self._pairs) >= self.settings.target:
                result.stopped = "target"
                break
            if self._idle() >= self.settings.patience:
                result.stopped = "saturation"
                break
            try:
                result.rounds.append(self._round(number))
            except (CheaperError, UnpricedError):
                raise
            except BudgetError as error:
                result.stopped, result.reason = "budget", str(error)
                break
            except NotRecordedError:
                result.stopped = "ledger"
                break
            progress("rounds", number, self.settings.rounds)
            after_round(result)
        return result

    def _idle(self) -> int:
        idle = 0
        for past in reversed(self._result.rounds):
            if past.accepted:
                break
            idle += 1
        return idle

    def _round(self, number: int) -> Round:
        now = Round(number)
        wanted = gaps(self.domains, self._pairs.values(), self.settings.target)
        now.requested = self._requested(number)
        briefing = scout_text(now, self.settings, self._pairs.values(), wanted, self._result.rounds)
        scouting = self._ask(now, SCOUT, layouts_text(self.contract), briefing)
        if scouting is None:
            return now
        now.notes.append(one_line(scouting.notes, 4 * QUOTED))
        now.proposals = list(self._sound(scouting.proposals, now))
        if not now.proposals:
            now.failure = "scout: no proposal passed the checks"
            return now
        images = self._images(now)
        now.shown = tuple(images)
        now.criticism = self._ask(now, CRITIC, *critic_parts(now, wanted, images))
        if now.criticism is None:
            return now
        if self.settings.lists_flagged:
            for flagged in now.flagged:
                sent = _name(now.proposals[flagged - 1])
                now.rejected.append(Rejected("critic", sent, FLAGGED))
        for number, back in now.returned.items():
            sent = _name(now.proposals[number - 1])
            now.rejected.append(Rejected("image", sent, one_line(back.why, QUOTED)))
        registry = registry_text(self.contract, self.domains)
        briefing = curator_text(now, self._result.entries)
        curation = self._ask(now, CURATOR, layouts_text(self.contract), registry, briefing)
        if curation is None:
            return now
        now.notes.append(one_line(curation.notes, 4 * QUOTED))
        for entry in curation.entries:
            self._decide(entry, now)
        return now

    def _requested(self, number: int) -> int:
        """Proposals to ask for: what is missing over the rounds that remain of the plan, and as
        many more as earlier rounds lost."""
        if self.settings.proposals is not None:
            return self.settings.proposals
        rounds = self.settings.planned or self.settings.rounds
        missing = self.settings.target - len(self._pairs)
        asked = sum(past.requested for past in self._result.rounds)
        won = len(self._pairs) - len(self._base)
        survival = min(1.0, max(LOWEST_SURVIVAL, won / asked)) if asked else 1.0
        return min(MOST_PROPOSALS, ceil(missing / max(1, rounds - number + 1) / survival))

    def _images(self, now: Round) -> dict[int, bytes]:
        """The drawn images of proposals by number, where the Critic sees images."""
        if not self.settings.eyes:
            return {}
        drawn = {n: self.contract.draw(proposal) for n, proposal in enumerate(now.proposals, 1)}
        return {number: image for number, image in drawn.items() if image is not None}

    def _ask(self, now: Round, role: Role[Any], *content: str | ImagePart) -> Any:
        call_id = f"r{now.number:02d}/{role.short}"
        answer: Answer[Any] = self.caller.call(call_id, role.request(*content), role.read)
        now.calls += answer.calls
        if answer.status != "ok":
            now.failure = f"{role.short}: {answer.status}: {one_line(answer.problem, QUOTED)}"
        return answer.value

    def _sound(self, proposals: Sequence[Proposal], now: Round) -> Iterator[Proposal]:
        """Proposals that may be shown to the next role, up to the number asked for."""
        for proposal in proposals[: now.requested]:
            fault = _text_faults(proposal, PROMPT_FIELDS, PROPOSED_FIELDS)
            fault = fault or _layout_fault(proposal)
            if fault is None and proposal.domain not in self.domains:
                fault = "domain: not one of the listed domains"
            if fault is not None:
                now.rejected.append(Rejected("hygiene", _name(proposal), fault))
            else:
                yield proposal

    def _decide(self, entry: Entry, now: Round) -> None:
        by, why = self._objection(entry, now)
        if by:
            now.rejected.append(Rejected(by, _name(entry), one_line(why, QUOTED)))
            if by == "standard" and entry.new_standard is not None:
                waiting = {"standard": entry.new_standard.model_dump(), "round": now.number}
                now.standards.append({**waiting, "entry": _stored(entry, "", now, self.caller)})
            return
        if entry.status == "new":
            self._add(entry, now)
        else:
            self._change(entry, now)

    def _objection(self, entry: Entry, now: Round) -> tuple[str, str]:
        """Returns the objector to an entry and the reason; both empty without an objection."""
        assert now.criticism is not None
        if (fault := _text_faults(entry, PROMPT_FIELDS, TOLD_FIELDS)) is not None:
            return "hygiene", fault
        if (fault := _reference_fault(entry)) is not None:
            return "hygiene", fault
        if entry.domain not in self.domains:
            return "protocol", "domain: not one of the listed domains"
        if entry.status == "new":
            if not 1 <= entry.proposal <= len(now.proposals):
                return "protocol", "proposal: no such number"
            if entry.proposal in now.criticism.arbitrary:
                return "critic", f"proposal {entry.proposal} was flagged as arbitrary"
            if entry.proposal in now.returned:
                return "image", f"proposal {entry.proposal} was sent back"
            if len(self._pairs) >= self.settings.target:
                return "protocol", "the target is reached"
        elif (fault := self._change_fault(entry)) is not None:
            return "protocol", fault
        if entry.new_standard is not None and not entry.standards:
            fault = _text_faults(entry.new_standard, {}, dict.fromkeys(_STANDARD_FIELDS, 240))
            return ("hygiene", fault) if fault else ("standard", "waits for a standard")
        stored = _stored(entry, self._id_of(entry), now, self.caller)
        if faults := self.contract.faults(entry.domain, stored):
            return "bank", "; ".join(faults)
        if entry.status != "retired":
            index = self._index
            if entry.status == "revised":
                index = PairIndex(p for p in self._pairs.values() if p.id != entry.entry)
            if (fault := index.fault(_as_known_pair(entry, ""))) is not None:
                return "duplicate", fault
        return "", ""

    def _change_fault(self, entry: Entry) -> str | None:
        pair = self._pairs.get(entry.entry)
        if pair is None:
            return "entry: no such entry in the bank"
        if pair.domain != entry.domain:
            return "domain: an entry stays in its own"
        return text_fault(entry.erratum, QUOTED)

    def _id_of(self, entry: Entry) -> str:
        return _slug(entry, self._taken) if entry.status == "new" else entry.entry

    def _add(self, entry: Entry, now: Round) -> None:
        entry_id = self._id_of(entry)
        self._taken.add(entry_id)
        written = Written(entry.domain, _stored(entry, entry_id, now, self.caller))
        self._remember(_as_known_pair(entry, entry_id), written, now)

    def _change(self, entry: Entry, now: Round) -> None:
        """Revises or retires an entry: one of the base gets an erratum, one of this run doesn't."""
        old = self._pairs.pop(entry.entry)
        self._index.discard(old)
        stored = _stored(entry, old.id, now, self.caller)
        if old.id not in self._base:
            stored.pop("status", None)
            stored.pop("erratum", None)
        if entry.status == "revised":
            self._remember(_as_known_pair(entry, old.id), Written(entry.domain, stored), now)
        elif old.id in self._base:
            now.accepted.append(Written(entry.domain, stored))
            self._result.entries[old.id] = now.accepted[-1]
        else:
            del self._result.entries[old.id]

    def _remember(self, pair: KnownPair, written: Written, now: Round) -> None:
        self._pairs[pair.id] = pair
        self._index.add(pair)
        now.accepted.append(written)
        self._result.entries[pair.id] = written


_STANDARD_FIELDS = ("title", "edition", "publisher", "fixes")


def _text_faults(
    item: Proposal | Entry | Any, prompt_fields: Mapping[str, int], told_fields: Mapping[str, int]
) -> str | None:
    for name, limit in {**prompt_fields, **told_fields}.items():
        latin = name in prompt_fields
        if (fault := text_fault(getattr(item, name), limit, latin=latin)) is not None:
            return f"{name}: {fault}"
    return None


def _reference_fault(entry: Entry) -> str | None:
    """Returns the fault in the form of ids, whose values error messages quote."""
    if not all(map(_is_id, entry.standards)):
        return "standards: ids of the registry only"
    return _layout_fault(entry)


def _layout_fault(item: Proposal | Entry) -> str | None:
    if item.fact and not _is_id(item.fact):
        return "fact: the id of a fact table, or empty"
    return None if _is_id(item.family) else "family: lower-case words joined by -"


def _is_id(text: str) -> bool:
    return re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,80}", text) is not None


def _name(item: Proposal | Entry) -> str:
    return " | ".join(one_line(getattr(item, name), 80) for name in ("left", "right", "context"))


def _as_known_pair(entry: Entry, entry_id: str) -> KnownPair:
    return KnownPair(
        id=entry_id,
        domain=entry.domain,
        left=entry.left,
        right=entry.right,
        context=entry.context,
        frame=entry.frame,
    )


def _slug(entry: Entry, taken: Collection[str]) -> str:
    """An id from the domain and the two things, numbered if it is taken."""
    words = f"{skeleton(entry.left)} {skeleton(entry.right)}"
    tail = (
        re.sub(r"[^a-z0-9]+", "-", words.encode("ascii", "ignore").decode())
        .strip("-")[:60]
        .strip("-")
        or "pair"
    )
    stem = f"{entry.domain.replace('_', '-')}-{tail}"
    number = 1
    while (candidate := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return candidate


def _stored(entry: Entry, entry_id: str, now: Round, caller: Caller) -> dict[str, Any]:
    """The entry as the bank stores it."""
    stored: dict[str, Any] = {"id": entry_id}
    stored |= {name: getattr(entry, name) for name in STORED_FIELDS}
    if entry.status != "new":
        stored |= {"status": entry.status, "erratum": entry.erratum}
    return stored | {"author": caller.author, "calls": list(now.calls)}
