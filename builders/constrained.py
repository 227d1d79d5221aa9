"""The bank of constrained pairs, and the standards that fix their layout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from ..schema import Basis, Frame, Sources, Struct, T2ICorrectness
from .bank import BankFaults, by_name, read_folder
from .facts import FactError, FactTables, read_facts
from .frames import FRAMES, frame_fault, mentions
from .phrases import sentence, side_word


class Standard(Struct):
    """An authority that fixes a layout."""

    id: str
    """Slug."""
    title: str
    """Full title."""
    edition: str
    """Year or edition; `n/a` for a plain fact or a mathematical convention."""
    publisher: str
    """Publisher."""
    fixes: str
    """Layout that it fixes, one sentence."""
    at: str = ""
    """Section, page, article or entry that fixes it; empty if the whole does."""
    url: str = ""
    """Address to read it at, a DOI if it has one; empty if no stable one is known."""

    @property
    def located(self) -> bool:
        """Whether it says where to look: a part of it, or an address."""
        return bool(self.at or self.url)

    @property
    def citation(self) -> str:
        """Title, section, publisher, edition and address in one line."""
        edition = "" if self.edition == "n/a" else self.edition
        return ", ".join(filter(None, (self.title, self.at, self.publisher, edition, self.url)))


class ConstrainedPair(Struct):
    """One pair of things whose left and right a standard fixes."""

    id: str
    """Slug that starts with the domain; never changes."""
    left: str
    """Noun phrase of what the viewer sees on the left."""
    right: str
    """Noun phrase of what the viewer sees on the right."""
    context: str
    """Where they are, with words that say the frame; follows the two in the prompt."""
    frame: Frame
    """Viewpoint from which left and right hold (`frames`)."""
    fact: str
    """Fact table that holds both things (`facts`); empty if the layout is only stated."""
    family: str
    """Slug of the layout fact that the pair rests on; a model that knows one pair of a family is
    likely to know the others."""
    text_bound: bool
    """Whether the two are told apart only by reading digits or letters."""
    standards: list[str]
    """Ids in the standards registry, at least one."""
    rationale: str
    """Why left is left."""
    tell_left: str
    """How a judge recognizes the left thing, wherever it is drawn."""
    tell_right: str
    """How a judge recognizes the right thing."""
    mirror_safe: bool
    """Whether the two can be told apart in a mirrored image as well: nothing needs to be read, and
    a swapped gold image was recognized where there is one."""
    scope: str
    """Where it holds."""
    status: Literal["new", "revised", "retired"] = "new"
    """Since the last release."""
    unordered_prompt: str = ""
    """Asks for the same scene and names neither thing; empty if that would not ask for both."""
    undrawn: Literal["", "figures", "font"] = ""
    """Why code draws no gold image of it: it needs posed people or animals that plain shapes would
    not show truly, or letters that the font lacks. Empty where it is drawn, or nobody has tried."""
    twin: str = ""
    """Id of a pair of the same fact and family that shows the same two things the other way round,
    by its frame, or by its scope where another country has them so; only one of the two names the
    other."""
    erratum: str = ""
    """Why it was revised or retired, one sentence; empty while it is new."""
    review: tuple[str, ...] = ()
    """Reviewers besides the author: `reviewer-model`, `human`."""
    author: str = "curated"
    """Author: `curated`, or the model, e.g. `openai:MODEL`."""
    calls: tuple[str, ...] = ()
    """Ledger ids of the model calls it was written with."""

    @property
    def aligned_prompt(self) -> str:
        return pair_prompt(self.left, self.right, self.context)

    @property
    def reverse_prompt(self) -> str:
        return pair_prompt(self.right, self.left, self.context)

    def basis(self, facts: FactTables) -> Basis:
        """Returns `code-derived` if a fact table gives the left thing, else `stated`."""
        if not self.fact or facts.restates(self.fact, self.frame, self.scope):
            return "stated"
        return "code-derived"


def pair_prompt(first: str, second: str, context: str) -> str:
    """The prompt that mentions `first` first.

    >>> pair_prompt("digit 9", "digit 3", "on a standard clock face")
    'Digit 9 and digit 3 on a standard clock face.'
    """
    return sentence(f"{first} and {second} {context}")


def located(cited: Iterable[Standard]) -> Sources:
    """Returns `located` if every source says where in it to look, else `stated`."""
    return "located" if all(standard.located for standard in cited) else "stated"


def clusters(
    pairs: Iterable[ConstrainedPair], frozen: Iterable[ConstrainedPair] = ()
) -> dict[str, str]:
    """Family -> the cluster that it belongs to, named by its first family.

    Families that share a fact table are one cluster, and so are those that a third one links.
    frozen: pairs whose clusters keep their names, whatever is added to them.
    """
    kept = clusters(frozen) if frozen else {}
    families_by_fact: dict[str, set[str]] = {}
    for pair in pairs:
        # What is only stated shares a table with its own family alone.
        families_by_fact.setdefault(pair.fact or f"/{pair.family}", set()).add(pair.family)
    members: dict[str, set[str]] = {}
    for families in families_by_fact.values():
        joined = families.union(*(members.get(family, set()) for family in families))
        members.update(dict.fromkeys(joined, joined))
    names = {
        family: min({kept[other] for other in joined & kept.keys()} or joined)
        for family, joined in members.items()
    }
    return names | kept


def read_standards(bank: Path) -> dict[str, Standard]:
    """The standards registry by id. Raises BankError for a repeated id."""
    files = read_folder(bank / "standards", Standard)
    return by_name(
        (s for standards in files.values() for s in standards), "id", str(bank / "standards")
    )


def read_pairs(bank: Path) -> dict[str, list[ConstrainedPair]]:
    """Constrained pairs by domain, every one checked. Raises BankError naming file and entry."""
    standards = read_standards(bank)
    facts = read_facts(bank)
    faults = BankFaults()
    for fact in facts.facts.values():
        for unknown in (s for s in fact.standards if s not in standards):
            faults.add(
                f"fact {fact.id}: standards: {unknown!r} is not in the registry",
                "unknown-reference",
            )
    domains = read_folder(bank / "constrained", ConstrainedPair, faults)
    folder = bank / "constrained"
    with faults.caught():
        by_name((p for pairs in domains.values() for p in pairs), "id", str(folder), domains)
    ids_by_content: dict[tuple[str, ...], str] = {}
    for domain, pairs in domains.items():
        for pair in pairs:
            where = f"{folder / domain}.yaml, {pair.id}"
            for reason in pair_faults(pair, domain, standards, facts):
                faults.add(f"{where}: {reason}")
            if pair.status == "retired":
                continue
            if fault := twin_fault(pair, pairs, facts):
                faults.add(f"{where}: twin: {fault}")
            key = (*sorted([pair.left.lower(), pair.right.lower()]), pair.context.lower())
            if key in ids_by_content:
                faults.add(f"{where}: the same pair as {ids_by_content[key]}", "duplicate-id")
            ids_by_content[key] = pair.id
    faults.raise_any()
    return domains


def pair_faults(
    pair: ConstrainedPair, domain: str, standards: dict[str, Standard], facts: FactTables
) -> list[str]:
    """Returns the faults of an entry; empty if it has none.

    A retired entry is checked for its id and erratum alone.
    """
    faults = []
    prefix = domain.replace("_", "-") + "-"
    if not _slug(pair.id) or not pair.id.startswith(prefix):
        faults.append(f"id: must be a slug that starts with {prefix}")
    if (pair.status == "new") != (pair.erratum == ""):
        faults.append("erratum: given exactly where the status is revised or retired")
    if pair.status == "retired":
        return faults
    if not _slug(pair.family):
        faults.append("family: must be a slug")
    if not pair.standards:
        faults.append("standards: cite at least one of the registry")
    for unknown in (s for s in pair.standards if s not in standards):
        faults.append(f"standards: {unknown!r} is not in the registry")
    for field in ("left", "right", "context"):
        text = getattr(pair, field)
        if text != text.strip() or not text or text.endswith(".") or "\n" in text:
            faults.append(f"{field}: one phrase without a period")
        if (word := side_word(text)) is not None:
            faults.append(f"{field}: gives the answer away with {word!r}")
    faults += [f"unordered_prompt: {fault}" for fault in unordered_faults(pair, facts)]
    if pair.mirror_safe and pair.text_bound:
        faults.append("mirror_safe: what must be read can't be told apart in a mirror image")
    return [*faults, *_tell_faults(pair), *layout_faults(pair, facts)]


ORDER_WORDS = ("first", "then", "next", "beside", "followed", "between", "order")
"""Words by which a prompt could say an order of two things."""

_SMALL = frozenset(
    "a an and as at before by for from in into is it its of off on or that the their they to two "
    "under with without who whose".split()
)


def unordered_faults(pair: ConstrainedPair | T2ICorrectness, facts: FactTables) -> list[str]:
    """Returns the faults of a prompt without order that names a thing, side, order or frame."""
    prompt = pair.unordered_prompt
    if not prompt:
        return []
    faults = []
    if not prompt.endswith(".") or prompt != sentence(prompt.removesuffix(".")):
        faults.append("one sentence with a period")
    words = _words(prompt)
    left, right = _words(pair.left), _words(pair.right)
    for word in sorted((left ^ right) & words - _SMALL):
        faults.append(f"names one of the two things with {word!r}")
    if (side := side_word(prompt)) is not None:
        faults.append(f"gives the answer away with {side!r}")
    faults += [f"says an order with {word!r}" for word in ORDER_WORDS if word in words]
    fact = facts.facts.get(pair.fact)
    if fact and (fault := frame_fault(prompt, pair.frame, fact.frames)):
        faults.append(fault)
    return faults


def _words(text: str) -> set[str]:
    return set(re.findall(r"[\w'°]+", text.lower()))


def twin_fault(pair: ConstrainedPair, pairs: Sequence[ConstrainedPair], facts: FactTables) -> str:
    """Returns why a pair can't be the twin of the pair that it names; empty if it can."""
    if not pair.twin:
        return ""
    active = {twin.id: twin for twin in pairs if twin.status != "retired"}
    if (twin := active.get(pair.twin)) is None:
        return f"{pair.twin!r} is not a pair of this file"
    if twin.twin or sum(member.twin == twin.id for member in active.values()) > 1:
        return f"{twin.id} has a twin already"
    if not pair.fact or (pair.fact, pair.family) != (twin.fact, twin.family):
        return f"{twin.id} rests on another fact or family"
    signs = {facts.sign(member.fact, member.frame, member.scope) for member in (pair, twin)}
    if len(signs) == 1:
        return f"{twin.id} is seen the same way round"
    named_parts = [
        [facts.part(member.fact, phrase) for phrase in phrases]
        for member, phrases in ((pair, (pair.left, pair.right)), (twin, (twin.right, twin.left)))
    ]
    return (
        ""
        if named_parts[0] == named_parts[1]
        else f"{twin.id} does not show the same two things turned round"
    )


def layout_faults(pair: ConstrainedPair | T2ICorrectness, facts: FactTables) -> list[str]:
    """Returns where an entry or a row contradicts its fact, or its prompt its frame."""
    fact = facts.facts.get(pair.fact)
    if pair.fact and fact is None:
        near = get_close_matches(pair.fact, facts.facts, n=3)
        hint = f": did you mean {' or '.join(near)}?" if near else ": facts are in facts/*.yaml"
        return [f"fact: {pair.fact!r} is unknown{hint}"]
    axis = FRAMES[pair.frame].axis
    frames = fact.frames if fact else {f: () for f, view in FRAMES.items() if view.axis == axis}
    prompt = f"{pair.left} and {pair.right} {pair.context}"
    fault = frame_fault(prompt, pair.frame, frames)
    faults = [f"frame: {fault}"] if fault else []
    if fact:
        try:
            first, _ = facts.order(pair.fact, pair.frame, pair.scope, (pair.left, pair.right))
            if first != pair.left:
                faults.append(f"left: {pair.fact} seen {pair.frame} has {first!r} on the left")
        except FactError as error:
            faults.append(f"fact: {error}")
    return faults


PLACE_WORDS = ("left", "right", "o'clock", "before", "after", "at the start", "at the end")
"""Words of a tell that say where the thing is, and so give the judge the answer."""

LABEL_WORDS = ("label", "number", "mark", "letter")
"""Stems of words by which a prompt asks for labels."""


def _tell_faults(pair: ConstrainedPair) -> list[str]:
    faults = []
    prompt = f"{pair.left} {pair.right} {pair.context}".lower()
    for field in ("tell_left", "tell_right"):
        tell = getattr(pair, field)
        for word in (w for w in PLACE_WORDS if mentions(tell, w)):
            faults.append(f"{field}: says where the thing is with {word!r}")
        if "label" in tell.lower() and not any(stem in prompt for stem in LABEL_WORDS):
            faults.append(f"{field}: relies on a label that the prompt does not ask for")
    return faults


def _slug(text: str) -> bool:
    return re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", text) is not None
