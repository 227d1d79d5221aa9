"""`t2i_correctness`: pairs whose layout a standard fixes (OTS-Bench, 400 rows)."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator

from ...schema import Provenance, T2ICorrectness
from ..checks import duplicate_faults, equal_fault, side_faults, text_faults
from ..constrained import ConstrainedPair, pair_prompt
from ..layouts import verify_check
from ..manifest import Composition
from ..suite import Banks, Fault, SuiteRecipe

ROWS = 400
DIFFICULTIES = ("obvious", "subtle", "tricky")


def build(banks: Banks, rng: random.Random) -> list[T2ICorrectness]:
    released = select(banks.pairs, ROWS)
    return [
        _row(domain, pair, banks) for domain, pairs in sorted(released.items()) for pair in pairs
    ]


def select(
    domains: dict[str, list[ConstrainedPair]], count: int
) -> dict[str, list[ConstrainedPair]]:
    """`count` entries balanced over domains, then difficulties; all of them while there are fewer.

    Domains take turns, each giving an entry of the difficulty it has given least; so the surplus
    that stays unreleased is spread as well. Entries queue by the hash of their id: where one is
    retired, the next of its kind comes in and the rest stay.
    """
    left = {
        domain: sorted((p for p in pairs if p.status != "retired"), key=_place)
        for domain, pairs in sorted(domains.items())
    }
    taken: dict[str, list[ConstrainedPair]] = {domain: [] for domain in left}
    while sum(map(len, taken.values())) < count and any(left.values()):
        for domain in left:
            if left[domain] and sum(map(len, taken.values())) < count:
                taken[domain].append(_next(left[domain], taken[domain]))
    return {domain: sorted(pairs, key=lambda p: p.id) for domain, pairs in taken.items()}


def _place(pair: ConstrainedPair) -> str:
    return hashlib.sha256(pair.id.encode()).hexdigest()


def _next(left: list[ConstrainedPair], taken: list[ConstrainedPair]) -> ConstrainedPair:
    given = {d: sum(p.difficulty == d for p in taken) for d in DIFFICULTIES}
    pair = min(left, key=lambda p: given[p.difficulty])
    left.remove(pair)
    return pair


def _row(domain: str, pair: ConstrainedPair, banks: Banks) -> T2ICorrectness:
    return T2ICorrectness(
        domain=domain,
        difficulty=pair.difficulty,
        kind=pair.kind,
        left=pair.left,
        right=pair.right,
        context=pair.context,
        frame=pair.frame,
        aligned_prompt=pair.aligned_prompt,
        reverse_prompt=pair.reverse_prompt,
        standards=[banks.standards[s].citation for s in pair.standards],
        rationale=pair.rationale,
        tell_left=pair.tell_left,
        tell_right=pair.tell_right,
        mirror_safe=pair.mirror_safe,
        scope=pair.scope,
        code_check=pair.code_check,
        status=pair.status,
        review=["code", *pair.review],
        provenance=Provenance(
            bank=f"constrained/{domain}.yaml",
            entry=pair.id,
            author=pair.author,
            calls=list(pair.calls),
        ),
    )


def faults(rows: list[T2ICorrectness], banks: Banks) -> Iterator[Fault]:
    bank = {pair.id: (domain, pair) for domain, pairs in banks.pairs.items() for pair in pairs}
    for row in rows:
        yield from text_faults(row, "aligned_prompt", "reverse_prompt")
        yield from side_faults(row, "aligned_prompt", "reverse_prompt")
        yield from equal_fault(row, "aligned_prompt", pair_prompt(row.left, row.right, row.context))
        yield from equal_fault(row, "reverse_prompt", pair_prompt(row.right, row.left, row.context))
        if not row.standards:
            yield Fault(row.id, "standards", "cites no standard")
        if row.code_check:
            try:
                verify_check(json.loads(row.code_check))
            except ValueError as error:  # no JSON, or a LayoutError
                yield Fault(row.id, "code_check", str(error))
        # A release made from another bank holds entries that this one doesn't know.
        if row.provenance.entry in bank:
            domain, pair = bank[row.provenance.entry]
            for field in ("left", "right", "context", "difficulty", "code_check"):
                yield from equal_fault(row, field, getattr(pair, field))
            yield from equal_fault(row, "domain", domain)
    yield from duplicate_faults(
        rows, "aligned_prompt", lambda row: frozenset((row.aligned_prompt, row.reverse_prompt))
    )


SUITE = SuiteRecipe(
    name="t2i_correctness",
    rows=ROWS,
    source="OTS-Bench, T2I correctness",
    summary="Pairs whose left and right a standard fixes, mentioned in both orders: does the "
    "image follow the world or the sentence?",
    build=build,
    faults=faults,
    group=lambda row: ("pair", row.provenance.entry),
    breakdown=("domain", "difficulty"),
    composition=Composition(by="domain", counts=("difficulty", "kind"), filled=("code_check",)),
)
