"""`t2i_correctness`: pairs whose layout a standard fixes (OTS-Bench, 400 rows)."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest

from ...schema import Provenance, T2ICorrectness
from ..build_result import Composition
from ..checks import duplicate_faults, equal_fault, side_faults, text_faults
from ..constrained import (
    ConstrainedPair,
    layout_faults,
    located,
    pair_prompt,
    unordered_faults,
)
from ..facts import FactError
from ..frozen import ALL, Frozen
from ..suite import Banks, Fault, SuiteRecipe

ROWS = 400
"""Rows of the paper, which stand first."""
BEYOND = "country_conventions"
"""Domain whose entries are released in addition to these."""
FAMILY_ROWS = 3
"""Released rows of one family at most: more would say the same again."""
DOMAIN_FAMILIES = 16
"""Families of one domain in the release at most."""


def build(banks: Banks, rng: random.Random) -> list[T2ICorrectness]:
    released = select_released(banks.pairs, banks.frozen)
    rows = [
        _row(domain, pair, banks)
        for entries in (released, additions(banks.pairs, banks.frozen))
        for domain, pairs in entries.items()
        for pair in pairs
    ]
    ids = {row.provenance.entry: row.id for row in rows}
    named = {
        pair.id: pair.twin
        for pairs in banks.pairs.values()
        for pair in pairs
        if pair.id in ids and pair.twin in ids
    }
    twins = named | {twin: entry for entry, twin in named.items()}
    return [
        row.model_copy(update={"twin": ids[twins[row.provenance.entry]]})
        if row.provenance.entry in twins
        else row
        for row in rows
    ]


def select_released(
    domains: dict[str, list[ConstrainedPair]], frozen: Frozen = ALL
) -> dict[str, list[ConstrainedPair]]:
    """The entries of the frozen draw in the order of release: `ROWS` by domain, then what is beyond
    them."""
    domains = {
        domain: [pair for pair in pairs if frozen.holds("pairs", pair.id)]
        for domain, pairs in domains.items()
    }
    others = {domain: pairs for domain, pairs in domains.items() if domain != BEYOND}
    beyond = domains.get(BEYOND, [])
    return {
        **dict(sorted(select(others, ROWS).items())),
        **(select({BEYOND: beyond}, len(beyond)) if beyond else {}),
    }


def additions(
    domains: dict[str, list[ConstrainedPair]], frozen: Frozen
) -> dict[str, list[ConstrainedPair]]:
    """The entries that were added to the frozen draw, which are all released, after it."""
    added = {
        domain: sorted(
            (p for p in pairs if p.status != "retired" and not frozen.holds("pairs", p.id)),
            key=lambda pair: pair.id,
        )
        for domain, pairs in sorted(domains.items())
    }
    return {domain: pairs for domain, pairs in added.items() if pairs}


def is_beyond(row: T2ICorrectness) -> bool:
    """Whether a row is of the domain that is released beside the paper's `ROWS`."""
    return row.domain == BEYOND


def is_added(row: T2ICorrectness, banks: Banks) -> bool:
    """Whether the pair is an addition to the bank."""
    return not banks.frozen.holds("pairs", row.provenance.entry)


def select(
    domains: dict[str, list[ConstrainedPair]], count: int
) -> dict[str, list[ConstrainedPair]]:
    """`count` entries within the limits on families, or all that fit while there are fewer.

    The domain that has given least is next, with an entry of the family it has given least of; so
    what does not fit is spread, and families come before repetition. Twins come in together, before
    all others. Families and entries that are recognized by what they look like come next, others
    queue by the hash of their id: where one is retired, the next of its kind comes in and the rest
    stay.
    """
    queues = {domain: _queue(pairs) for domain, pairs in sorted(domains.items())}
    taken: dict[str, list[ConstrainedPair]] = {domain: [] for domain in queues}
    size = 0
    while any(queues.values()):
        fewest = min(len(taken[domain]) for domain, queue in queues.items() if queue)
        for domain, queue in queues.items():
            if queue and len(taken[domain]) == fewest:
                together = queue.pop(0)
                if size + len(together) <= count:
                    taken[domain] += together
                    size += len(together)
    return {domain: sorted(pairs, key=lambda p: p.id) for domain, pairs in taken.items()}


Together = tuple[ConstrainedPair, ...]
"""An entry, or twins."""


def _queue(pairs: list[ConstrainedPair]) -> list[Together]:
    """Returns the entries of a domain that may be released, in the order of release."""
    families: defaultdict[str, list[Together]] = defaultdict(list)
    for group in sorted(_together(pairs), key=lambda g: (_rank(g), _place(g[0].id))):
        family = families[group[0].family]
        if sum(map(len, family)) + len(group) <= FAMILY_ROWS:
            family.append(group)
    ranked = sorted(
        families,
        key=lambda name: (_rank(families[name][0]), -len(families[name]), _place(name)),
    )
    turns = zip_longest(*(families[name] for name in ranked[:DOMAIN_FAMILIES]))
    return [group for turn in turns for group in turn if group is not None]


def _together(pairs: list[ConstrainedPair]) -> list[Together]:
    active = {pair.id: pair for pair in pairs if pair.status != "retired"}
    twins = [(active[pair.twin], pair) for pair in active.values() if pair.twin]
    inside = {pair.id for group in twins for pair in group}
    return [*twins, *((pair,) for pair in active.values() if pair.id not in inside)]


def _rank(group: Together) -> tuple[bool, bool]:
    return len(group) == 1, group[0].text_bound


def _place(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _row(domain: str, pair: ConstrainedPair, banks: Banks) -> T2ICorrectness:
    basis = pair.basis(banks.facts)
    cited = [banks.standards[name] for name in pair.standards]
    return T2ICorrectness(
        domain=domain,
        family=pair.family,
        cluster=banks.clusters[pair.family],
        left=pair.left,
        right=pair.right,
        context=pair.context,
        frame=pair.frame,
        basis=basis,
        fact=pair.fact,
        aligned_prompt=pair.aligned_prompt,
        reverse_prompt=pair.reverse_prompt,
        unordered_prompt=pair.unordered_prompt,
        standards=[standard.citation for standard in cited],
        sources=located(cited),
        rationale=pair.rationale,
        tell_left=pair.tell_left,
        tell_right=pair.tell_right,
        text_bound=pair.text_bound,
        mirror_safe=pair.mirror_safe,
        scope=pair.scope,
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
        for fault in unordered_faults(row, banks.facts):
            yield Fault(row.id, "unordered_prompt", fault)
        if not row.standards:
            yield Fault(row.id, "standards", "cites no standard")
        for fault in layout_faults(row, banks.facts):
            field, _, reason = fault.partition(": ")
            yield Fault(row.id, field, reason)
        # A release made from another bank has entries that this one lacks.
        if row.provenance.entry in bank:
            domain, pair = bank[row.provenance.entry]
            for name in (
                *("left", "right", "context", "frame", "fact", "family", "text_bound"),
                "unordered_prompt",
            ):
                yield from equal_fault(row, name, getattr(pair, name))
            yield from equal_fault(row, "basis", pair.basis(banks.facts))
            yield from equal_fault(row, "domain", domain)
            yield from equal_fault(row, "cluster", banks.clusters.get(pair.family, ""))
            cited = (banks.standards[name] for name in pair.standards)
            yield from equal_fault(row, "sources", located(cited))
    yield from duplicate_faults(
        rows, "aligned_prompt", lambda row: frozenset((row.aligned_prompt, row.reverse_prompt))
    )
    yield from _crowding(rows, banks)
    yield from _twin_faults(rows, banks)


def _twin_faults(rows: list[T2ICorrectness], banks: Banks) -> Iterator[Fault]:
    """Yields rows that do not match their twin."""
    by_id = {row.id: row for row in rows}
    for row in rows:
        if not row.twin:
            continue
        twin = by_id.get(row.twin)
        if twin is None or twin.twin != row.id:
            yield Fault(row.id, "twin", f"{row.twin} does not name this row as its twin")
        elif (row.fact, row.family) != (
            twin.fact,
            twin.family,
        ) or row.fact not in banks.facts.facts:
            yield Fault(row.id, "twin", f"{row.twin} rests on another fact or family")
        elif _parts(row, banks) != _parts(twin, banks)[::-1]:
            yield Fault(
                row.id, "twin", f"{row.twin} does not show the same two things turned round"
            )


def _parts(row: T2ICorrectness, banks: Banks) -> list[str]:
    """The parts of its fact that are left and right; the phrases where a part can't be found."""
    try:
        return [banks.facts.part(row.fact, phrase) for phrase in (row.left, row.right)]
    except FactError:
        return [row.left, row.right]


def _crowding(rows: list[T2ICorrectness], banks: Banks) -> Iterator[Fault]:
    """Families with too many rows, and domains with too many families, additions aside."""
    rows_of: defaultdict[str, int] = defaultdict(int)
    families_of: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        rows_of[row.family] += 1
        if banks.frozen.holds("pairs", row.provenance.entry):
            families_of[row.domain].add(row.family)
    for family, count in sorted(rows_of.items()):
        if count > FAMILY_ROWS:
            yield Fault("", "family", f"{family} has {count} rows, at most {FAMILY_ROWS}")
    for domain, families in sorted(families_of.items()):
        if len(families) > DOMAIN_FAMILIES:
            reason = f"{domain} has {len(families)} families, at most {DOMAIN_FAMILIES}"
            yield Fault("", "domain", reason)


SUITE = SuiteRecipe(
    name="t2i_correctness",
    rows=ROWS,
    source="OTS-Bench, T2I correctness",
    summary="Pairs whose left and right a standard fixes, mentioned in both orders: does the "
    "image follow the world or the sentence?",
    build=build,
    faults=faults,
    beyond=is_beyond,
    added=is_added,
    group=lambda row: ("family", row.family),  # twins name each other
    breakdown=("domain", "basis"),
    composition=Composition(
        by="domain",
        counts=("basis", "sources"),
        distinct=("family", "cluster"),
        filled=("text_bound",),
    ),
)
