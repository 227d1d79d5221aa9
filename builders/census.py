"""Census of a bank: constrained pairs, how far they fill a release, and drawn worlds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..progress import Progress, silent
from .constrained import ConstrainedPair, Standard
from .gold import STYLES_EACH
from .suite import Banks
from .suites.altered_worlds_gold import drawn_rows
from .suites.counterfactual import groups
from .suites.t2i_correctness import (
    BEYOND,
    DOMAIN_FAMILIES,
    FAMILY_ROWS,
    ROWS,
    additions,
    select_released,
)
from .world_looks import ALL, Discrimination, discriminations


@dataclass(frozen=True)
class Census:
    """Counts over some pairs, retired ones left out."""

    pairs: int
    """Entries."""
    families: int
    """Layout facts that they rest on."""
    derived: int
    """Entries whose left thing code derives."""
    turned: int
    """Those among them whose frame turns their fact's own order round."""
    text_bound: int
    """Entries told apart only by reading digits or letters."""
    mirror_safe: int
    """Entries whose two things can be told apart in a mirrored image as well."""
    twins: int
    """Entries that are linked to another one whose frame shows the same two things turned round."""
    unordered: int
    """Entries with a prompt that names neither thing."""
    drawn: int
    """Entries with gold images."""


@dataclass(frozen=True)
class Citations:
    """How exactly standards can be looked up."""

    standards: int
    """Standards."""
    sections: int
    """Those with a section, page, article or entry."""
    addresses: int
    """Those with a URL or DOI."""
    titles: int
    """Those with neither: title, publisher and edition only."""


@dataclass(frozen=True)
class BankCensus:
    """The constrained pairs of a bank, and those that a release takes."""

    bank: dict[str, Census]
    """Domain, or `all` -> counts."""
    release: dict[str, Census]
    """The same for the pairs of a release."""
    retired: int
    """Retired entries, which neither counts."""
    facts: int
    """Fact tables."""
    undrawn: dict[str, int]
    """Why code draws no gold image -> pairs of a release."""
    registry: Citations
    """The registry of standards."""
    cited: Citations
    """The standards that the pairs of a release cite."""
    planned: int = ROWS
    """Rows of a complete release."""
    family_rows: int = FAMILY_ROWS
    """Rows of one family in it at most."""
    domain_families: int = DOMAIN_FAMILIES
    """Families of one domain in it at most."""

    @property
    def missing(self) -> int:
        """Rows that a complete release lacks."""
        return self.planned - self.release["all"].pairs


@dataclass(frozen=True)
class WorldsCensus:
    """The groups of altered worlds that have gold images, and what readers of these saw."""

    drawn: dict[str, int]
    """Discipline, or `all` -> released groups with gold images."""
    unreleased: list[str]
    """Groups with a drawing that a release has no room for."""
    looked_at: dict[str, list[Discrimination]]
    """Discipline, or `all` -> how well each question tells the worlds apart."""


def worlds_census(banks: Banks, progress: Progress = silent) -> WorldsCensus:
    """Counts of drawn groups; draws those that somebody looked at. Raises BankError."""
    if not banks.world_drawings:
        return WorldsCensus({ALL: 0}, [], {})
    released = {s.id: law.discipline for _, law, s in groups(banks) if s.id in banks.world_drawings}
    drawn = Counter(released.values())
    looked = {look.group for look in banks.world_looks.values()} & banks.world_drawings.keys()
    rows = []
    for row in drawn_rows(banks, looked):
        rows.append(row)
        progress("gold images", len(rows), 2 * STYLES_EACH * len(looked))
    return WorldsCensus(
        {**dict(sorted(drawn.items())), ALL: drawn.total()},
        sorted(banks.world_drawings.keys() - released),
        discriminations(rows, banks.world_looks),
    )


def bank_census(banks: Banks) -> BankCensus:
    """Counts of a bank, every entry of which is checked. Raises BankError for the first bad one."""
    active = {
        domain: [pair for pair in pairs if pair.status != "retired"]
        for domain, pairs in banks.pairs.items()
    }
    released = select_released(active, banks.frozen)
    added = additions(active, banks.frozen)
    beyond = len(released.get(BEYOND, ())) + sum(map(len, added.values()))
    released |= {domain: [*released.get(domain, ()), *pairs] for domain, pairs in added.items()}
    rows = [pair for pairs in released.values() for pair in pairs]
    cited = {name for pair in rows for name in pair.standards}
    return BankCensus(
        bank=_by_domain(active, banks),
        release=_by_domain(released, banks),
        retired=sum(map(len, banks.pairs.values())) - sum(map(len, active.values())),
        facts=len(banks.facts.facts),
        undrawn=dict(sorted(Counter(pair.undrawn for pair in rows if pair.undrawn).items())),
        registry=_citations(banks.standards.values()),
        cited=_citations(banks.standards[name] for name in cited),
        planned=ROWS + beyond,
    )


def _citations(standards: Iterable[Standard]) -> Citations:
    listed = list(standards)
    return Citations(
        standards=len(listed),
        sections=sum(bool(s.at) for s in listed),
        addresses=sum(bool(s.url) for s in listed),
        titles=sum(not s.located for s in listed),
    )


def _by_domain(domains: dict[str, list[ConstrainedPair]], banks: Banks) -> dict[str, Census]:
    counted = {domain: _count(pairs, banks) for domain, pairs in sorted(domains.items())}
    return {**counted, "all": _count((p for pairs in domains.values() for p in pairs), banks)}


def _count(pairs: Iterable[ConstrainedPair], banks: Banks) -> Census:
    listed = list(pairs)
    derived = [p for p in listed if p.basis(banks.facts) == "code-derived"]
    ids = {p.id for p in listed}
    signs = Counter(banks.facts.sign(p.fact, p.frame, p.scope) for p in derived)
    return Census(
        pairs=len(listed),
        families=len({p.family for p in listed}),
        derived=len(derived),
        turned=signs[-1],
        text_bound=sum(p.text_bound for p in listed),
        mirror_safe=sum(p.mirror_safe for p in listed),
        twins=len({name for p in listed if p.twin in ids for name in (p.id, p.twin)}),
        unordered=sum(bool(p.unordered_prompt) for p in listed),
        drawn=sum(p.id in banks.drawables for p in listed),
    )
