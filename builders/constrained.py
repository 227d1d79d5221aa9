"""The bank of constrained pairs, and the standards that fix their layout."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from ..schema import Struct
from .bank import BankError, by_name, read_folder
from .layouts import LayoutError, verify_check
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
    """Who publishes it."""
    fixes: str
    """What it fixes, one sentence."""

    @property
    def citation(self) -> str:
        """Title, publisher and edition in one line."""
        parts = [self.title, self.publisher, *([] if self.edition == "n/a" else [self.edition])]
        return ", ".join(parts)


class ConstrainedPair(Struct):
    """One pair of things whose left and right a standard fixes."""

    id: str
    """Slug that starts with the domain; never changes."""
    left: str
    """Noun phrase of what the viewer sees on the left."""
    right: str
    """Noun phrase of what the viewer sees on the right."""
    context: str
    """Where they are, and the viewpoint; follows the two in the prompt."""
    frame: str
    """Observer and frame of reference."""
    kind: Literal["functional", "temporal", "conventional"]
    """Why the layout is fixed."""
    difficulty: Literal["obvious", "subtle", "tricky"]
    """How easily a person gets it right."""
    standards: list[str]
    """Ids in the standards registry, at least one."""
    rationale: str
    """Why left is left."""
    tell_left: str
    """How a judge recognizes the left thing."""
    tell_right: str
    """How a judge recognizes the right thing."""
    mirror_safe: bool
    """Whether a mirrored image is a possible image with the two exchanged."""
    scope: str
    """Where it holds."""
    check: dict[str, Any] | None
    """Layout and keys from which code recomputes left and right (`layouts`)."""
    status: Literal["new", "revised", "retired"] = "new"
    """Since the last release."""
    erratum: str = ""
    """Why it was revised or retired, one sentence; empty while it is new."""
    review: tuple[str, ...] = ()
    """Who else checked it: `reviewer-model`, `human`."""
    author: str = "curated"
    """Who wrote it: `curated`, or the model, e.g. `openai:MODEL`."""
    calls: tuple[str, ...] = ()
    """Ledger ids of the model calls it was written with."""

    @property
    def aligned_prompt(self) -> str:
        return pair_prompt(self.left, self.right, self.context)

    @property
    def reverse_prompt(self) -> str:
        return pair_prompt(self.right, self.left, self.context)

    @property
    def code_check(self) -> str:
        """The check as JSON, for the released row; empty where there is none."""
        return json.dumps(self.check, ensure_ascii=False, sort_keys=True) if self.check else ""


def pair_prompt(first: str, second: str, context: str) -> str:
    """The prompt that mentions `first` first.

    >>> pair_prompt("digit 9", "digit 3", "on a standard clock face")
    'Digit 9 and digit 3 on a standard clock face.'
    """
    return sentence(f"{first} and {second} {context}")


def read_standards(bank: Path) -> dict[str, Standard]:
    """The standards registry by id. Raises BankError for a repeated id."""
    files = read_folder(bank / "standards", Standard)
    return by_name(
        (s for standards in files.values() for s in standards), "id", str(bank / "standards")
    )


def read_pairs(bank: Path) -> dict[str, list[ConstrainedPair]]:
    """Constrained pairs by domain, every one checked. Raises BankError naming file and entry."""
    standards = read_standards(bank)
    domains = read_folder(bank / "constrained", ConstrainedPair)
    folder = bank / "constrained"
    by_name((p for pairs in domains.values() for p in pairs), "id", str(folder))
    seen: dict[tuple[str, ...], str] = {}
    for domain, pairs in domains.items():
        for pair in pairs:
            where = f"{folder / domain}.yaml, {pair.id}"
            for reason in pair_faults(pair, domain, standards):
                raise BankError(f"{where}: {reason}")
            key = (*sorted([pair.left.lower(), pair.right.lower()]), pair.context.lower())
            if key in seen:
                raise BankError(f"{where}: the same pair as {seen[key]}")
            seen[key] = pair.id
    return domains


def pair_faults(pair: ConstrainedPair, domain: str, standards: dict[str, Standard]) -> list[str]:
    """What is wrong with an entry; empty where nothing is."""
    faults = []
    prefix = domain.replace("_", "-") + "-"
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", pair.id) or not pair.id.startswith(prefix):
        faults.append(f"id: must be a slug that starts with {prefix}")
    if (pair.status == "new") != (pair.erratum == ""):
        faults.append("erratum: given exactly where the status is revised or retired")
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
    if pair.check is not None:
        try:
            verify_check(pair.check)
        except LayoutError as error:
            faults.append(f"check: {error}")
    return faults
