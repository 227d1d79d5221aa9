"""From curated laws to symbolic rules with six variants each (CF-World 5.1)."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...progress import Progress
from ..caller import Answer, Call, Caller
from ..hygiene import one_line, text_fault
from ..roles import Role
from .answers import RuleDraft, RuleVerdict
from .writer import SceneRejected

WRITER = Role("rules/writer", RuleDraft, 3_000)
REVIEWER = Role("rules/reviewer", RuleVerdict, 1_000)

CRITERIA = ("unambiguous", "symbolic", "distinct", "valid")
TEXT = 400
"""Longest prompt, in characters."""
VALUE = 120
"""Longest value of a slot, in characters."""


@dataclass(frozen=True)
class RuleSheet:
    """A curated law to turn into a rule."""

    id: str
    """Its slug."""
    law: str
    """The law, one sentence."""


@dataclass(frozen=True)
class RuleContract:
    """Access of the writer to the bank."""

    laws: tuple[RuleSheet, ...]
    """Laws to write for."""
    faults: Callable[[Mapping[str, Any]], list[str]]
    """Returns the faults of a rule."""


@dataclass
class WrittenRules:
    """Results of a run."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Rules by law, as the bank stores them."""
    rejected: list[SceneRejected] = field(default_factory=list)
    """Everything else."""


def write_rules(
    author: Caller, reviewer: Caller, contract: RuleContract, progress: Progress
) -> WrittenRules:
    """Writes a rule for each law and has it checked and reviewed."""
    result = WrittenRules()
    laws = sorted(contract.laws, key=lambda law: law.id)
    calls = [
        Call(f"rule/{law.id}/writer", WRITER.request(f"<data>\nLaw: {law.law}\n</data>"), _read)
        for law in laws
    ]
    written = []
    for law, answer in zip(laws, author.call_many(calls, "rules", progress), strict=True):
        entry = _entry(law, answer, author) if answer.value else {}
        if not entry:
            _drop(result, law, WRITER.short, f"{answer.status}: {answer.problem}")
        elif faults := contract.faults(entry):
            _drop(result, law, "bank", "; ".join(faults))
        else:
            written.append((law, entry))
    reviews = [
        Call(f"rule/{law.id}/reviewer", REVIEWER.request(_sheet(law, entry)), REVIEWER.read)
        for law, entry in written
    ]
    answers = reviewer.call_many(reviews, "review", progress)
    for (law, entry), review in zip(written, answers, strict=True):
        if review.value is None:
            _drop(result, law, REVIEWER.short, f"{review.status}: {review.problem}")
        elif failed := [name for name in CRITERIA if not getattr(review.value, name)]:
            _drop(result, law, REVIEWER.short, f"not {', '.join(failed)}: {review.value.reason}")
        else:
            # A model's review of its own work does not count.
            second = {"review": ["reviewer-model"]} if reviewer.author != author.author else {}
            calls_made = [*entry["calls"], *review.calls]
            result.entries[law.id] = entry | second | {"calls": calls_made}
    return result


def _read(text: str) -> RuleDraft:
    """The draft, with its form checked, so that a second attempt can correct it."""
    draft = WRITER.read(text)
    for name in draft.slots:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name):
            raise ValueError(f"slots: {one_line(name, 40)!r} is no name")
    for field_, template in (("prompt", draft.prompt), ("shows", draft.shows)):
        if fault := text_fault(template, TEXT):
            raise ValueError(f"{field_}: {fault}")
    if _slots(draft.prompt) | _slots(draft.shows) != set(draft.slots):
        raise ValueError("slots: must be exactly those that prompt and shows hold as {slot}")
    for variant in draft.variants:
        if len(variant.values) != len(draft.slots):
            raise ValueError(f"variants: {len(draft.slots)} values each, in the order of slots")
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", variant.id):
            raise ValueError("variants: every id is a slug")
        for value in variant.values:
            if fault := text_fault(value, VALUE):
                raise ValueError(f"variants: {fault}")
    if len({tuple(v.values) for v in draft.variants}) < len(draft.variants):
        raise ValueError("variants: two are the same")
    return draft


def _slots(template: str) -> set[str]:
    """Names of the slots.

    Raises ValueError for a wrong template and for braces that hold more than a name: formatting
    must never reach into an object.
    """
    slot_names = set()
    for _, name, spec, conversion in string.Formatter().parse(template):
        if name is None:
            continue
        if spec or conversion or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise ValueError("write slots as {slot}, with nothing else in braces")
        slot_names.add(name)
    return slot_names


def _entry(law: RuleSheet, answer: Answer[RuleDraft], author: Caller) -> dict[str, Any]:
    draft = answer.value
    if draft is None:
        return {}
    variants = [
        {"id": v.id, "factual": v.factual, "slots": dict(zip(draft.slots, v.values, strict=True))}
        for v in draft.variants
    ]
    return {
        "id": law.id,
        "law": law.law,
        "prompt": draft.prompt,
        "shows": draft.shows,
        "variants": variants,
        "author": author.author,
        "calls": list(answer.calls),
    }


def _sheet(law: RuleSheet, entry: Mapping[str, Any]) -> str:
    lines = [
        f"- factual: {str(v['factual']).lower()}. {entry['prompt'].format(**v['slots'])} "
        f"Must show: {entry['shows'].format(**v['slots'])}"
        for v in entry["variants"]
    ]
    return "\n".join(["<data>", f"Law: {law.law}", *lines, "</data>"])


def _drop(result: WrittenRules, law: RuleSheet, by: str, why: str) -> None:
    result.rejected.append(SceneRejected(law.id, law.id, by, one_line(why, 300)))
