"""A suite: its name and size, how its rows are made, and what they must satisfy."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from ..scenes.vector import VectorImage
from ..schema import Consistency, Row, Struct
from .attributes import AttributePair, Counted, read_attributes, read_counts
from .bank import DEFAULT_BANK, BankFaults, read_entries
from .build_result import Composition
from .consistency import read_consistency
from .constrained import ConstrainedPair, Standard, clusters, read_pairs, read_standards
from .counterfactual import Law, read_laws
from .depictions import DEPICTIONS, Drawable, drawable_pairs, read_looks
from .facts import FactTables, read_facts
from .frozen import Frozen, read_frozen
from .languages import Language, read_languages
from .real import ImageReadings, Reader, read_readers, read_real
from .rules import Rule, read_rules
from .sequences import Sequence, read_sequences
from .taxonomy import Taxonomy
from .votes import RowVotes, read_votes
from .world_drawings import WORLD_DRAWINGS, DrawnGroup, drawn_groups
from .world_looks import WorldLook, read_world_looks
from .worlds import WorldEntry, read_worlds

R = TypeVar("R", bound=Row)


class CocoClass(Struct):
    """One of the 80 COCO detection classes."""

    id: int
    """COCO category id, 1-90."""
    label: str
    """Official label."""
    countable: bool
    """False where the label is a plural (`skis`, `scissors`) and takes no article."""


class Published(Struct):
    """An object of a published list, in its order."""

    label: str
    """COCO label."""


@dataclass(frozen=True)
class Banks:
    """The bank folder; each part is read once, when it is first needed.

    Every property raises BankError for a missing or wrong file.
    """

    root: Path

    @staticmethod
    def at(root: Path | None) -> Banks:
        """The banks of a folder, None for the shipped ones, which a process reads once."""
        return SHIPPED if root in (None, DEFAULT_BANK) else Banks(root)

    def __reduce__(self) -> tuple[Callable[[Path], Banks], tuple[Path]]:
        """Another process opens the folder anew, and reads the parts that it needs."""
        return _received, (self.root,)

    @cached_property
    def frozen(self) -> Frozen:
        return read_frozen(self.root)

    @cached_property
    def taxonomy(self) -> Taxonomy:
        return Taxonomy.read(self.root, self.frozen)

    @cached_property
    def languages(self) -> dict[str, Language]:
        return read_languages(self.root, self.taxonomy)

    @cached_property
    def facts(self) -> FactTables:
        return read_facts(self.root)

    @cached_property
    def standards(self) -> dict[str, Standard]:
        return read_standards(self.root)

    @cached_property
    def pairs(self) -> dict[str, list[ConstrainedPair]]:
        return read_pairs(self.root)

    @cached_property
    def clusters(self) -> dict[str, str]:
        """Cluster of each family with a pair that is not retired."""
        pairs = [p for domain in self.pairs.values() for p in domain if p.status != "retired"]
        return clusters(pairs, [pair for pair in pairs if self.frozen.holds("pairs", pair.id)])

    @cached_property
    def drawables(self) -> dict[str, Drawable]:
        pairs_by_id = {pair.id: pair for pairs in self.pairs.values() for pair in pairs}
        drawables, faults = dict[str, Drawable](), BankFaults()
        depictions = DEPICTIONS.read(self.root, faults)
        with faults.caught():
            drawables = drawable_pairs(depictions, pairs_by_id, self.facts)
        faults.raise_any()
        return drawables

    @cached_property
    def gold_looks(self) -> dict[str, str]:
        return read_looks(self.root)

    @cached_property
    def votes(self) -> dict[str, RowVotes]:
        return read_votes(self.root)

    @cached_property
    def sequences(self) -> list[Sequence]:
        return read_sequences(self.root, self.standards, self.facts)

    @cached_property
    def laws(self) -> dict[str, list[Law]]:
        return read_laws(self.root)

    @cached_property
    def worlds(self) -> dict[str, WorldEntry]:
        return read_worlds(self.root)

    @cached_property
    def world_drawings(self) -> dict[str, DrawnGroup]:
        groups, faults = dict[str, DrawnGroup](), BankFaults()
        files = WORLD_DRAWINGS.read(self.root, faults)
        with faults.caught():
            groups = drawn_groups(files, self.laws, self.worlds) if files else {}
        faults.raise_any()
        return groups

    @cached_property
    def world_looks(self) -> dict[str, WorldLook]:
        return read_world_looks(self.root)

    @cached_property
    def rules(self) -> list[Rule]:
        return read_rules(self.root)

    @cached_property
    def attributes(self) -> list[AttributePair]:
        return read_attributes(self.root)

    @cached_property
    def counted(self) -> Counted:
        return read_counts(self.root)

    @cached_property
    def consistency(self) -> list[Consistency]:
        return read_consistency(self.root)

    @cached_property
    def real(self) -> list[ImageReadings]:
        return read_real(self.root)

    @cached_property
    def readers(self) -> dict[str, Reader]:
        return read_readers(self.root)

    @cached_property
    def coco(self) -> list[CocoClass]:
        return read_entries(self.root / "coco.yaml", CocoClass)

    @cached_property
    def spatial_uc_objects(self) -> list[str]:
        return [o.label for o in read_entries(self.root / "spatial_uc.yaml", Published)]


@lru_cache(maxsize=2)
def _received(root: Path) -> Banks:
    """Cached, because a process is sent the same banks with each of its tasks."""
    return Banks.at(root)


SHIPPED = Banks(DEFAULT_BANK)
"""The curated bank that ships with the package."""


class Fault(NamedTuple):
    """Fault of one row."""

    row: str
    """Id of the row; empty for the whole table."""
    field: str
    """Column; may be empty."""
    message: str
    """Description of the fault."""


Group = tuple[str, ...]
"""Key that rows which belong together share: its kind, then its values."""


def entities_group(*entities: str) -> Group:
    """The group of rows about the same things, in any config and order of mention."""
    return ("entities", *sorted(entities))


@dataclass(frozen=True)
class SuiteRecipe(Generic[R]):
    """One config of the release, and how it is made."""

    name: str
    """Name of the config, a key of `schema.ROWS`."""
    rows: int | None
    """Rows of the complete config; with fewer, it is a preview.

    None if their number depends on the bank or on another config.
    """
    source: str
    """Paper and section that defines it."""
    summary: str
    """One sentence for the card."""
    build: Callable[[Banks, random.Random], list[R]]
    """Rows in release order; the generator is seeded for this suite alone."""
    faults: Callable[[list[R], Banks], Iterator[Fault]]
    """Yields the faults of rows that their type does not check."""
    group: Callable[[R], Group] | None
    """Returns the key of rows that a hold-out must not separate, even across configs; None if the
    rows are published elsewhere, so that nothing can be held out."""
    images: Callable[[Banks, random.Random], Iterator[VectorImage]] | None = None
    """The images that `build` draws with the same generator, so that drawing can begin before."""
    breakdown: tuple[str, ...] = ()
    """Columns by whose values the card counts the rows."""
    composition: Composition | None = None
    """How the datasheet tabulates the rows; None if the card says enough."""
    license: str | None = "CC-BY-4.0"
    """SPDX expression of the rows' license; None if each row has its own."""
    seeded_as: str = ""
    """Config whose rows it is made from, drawn with the same seed; empty: none."""
    beyond: Callable[[R], bool] = lambda row: False
    """Whether a row of the first version is in addition to the `rows` of the complete config."""
    added: Callable[[R, Banks], bool] = lambda row, banks: False
    """Whether a row is of an addition to the bank, see `frozen`: these stand last."""
    optional: bool = False
    """Whether a bank may hold nothing for it; the release then lacks the config."""
