"""The rows that one entry of a bank makes, as a release has them, without the others' images.

What a release takes depends on all entries, so all are read; only what this one shows is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple, cast

from ..errors import UsageError
from ..schema import EncodedImage, Entity, Row, SeededRow, image_columns, to_record
from .bank import BankError
from .build import BuildError, BuildSettings, sampled, suite_faults
from .seeds import draw_seeds
from .suite import Banks
from .taxonomy import GENDERS
from .votes import voted

WORLDS = (
    *("counterfactual", "counterfactual_denominalized", "altered_worlds", "altered_worlds_gold"),
)
ENTITIES = ("t2i_homogenization", "i2i_homogenization", "i2i_correctness")


class Entries(NamedTuple):
    """Entries of one kind."""

    configs: tuple[str, ...]
    """Configs with rows of them."""
    parts: Mapping[str, frozenset[str]]
    """Id -> names under which the rows mention it."""
    drawings: str = ""
    """Part of the bank with their drawings; empty for none."""


@dataclass(frozen=True)
class OnlyRows:
    """The rows of one entry."""

    rows: dict[str, list[Row]]
    """Config -> rows in release order."""
    undrawn: str = ""
    """Why the rows have no seed image; empty if they have, or need none."""

    def records(self) -> dict[str, list[dict[str, Any]]]:
        """The rows with all fields as plain values, each image as its file name."""
        return {name: [_record(row) for row in rows] for name, rows in self.rows.items()}

    def images(self) -> Iterator[EncodedImage]:
        """Every image of the rows."""
        for row in (row for rows in self.rows.values() for row in rows):
            yield from (value for _, value in row if isinstance(value, EncodedImage))


def _record(row: Row) -> dict[str, Any]:
    record = to_record(row)
    images = (name for name in image_columns(row.suite) if record[name])
    return record | {name: record[name]["path"] for name in images}


def only_rows(entry: str, settings: BuildSettings) -> OnlyRows:
    """The rows that an entry makes: a pair, a law or one of its scenes, a rule, attributes, an
    occupation or another thing, or an action.

    Raises UsageError for an unknown entry, BankError for a bank that can't be read, and BuildError
    where a release takes no row of it, or a row fails its checks.
    """
    banks = Banks.at(settings.bank)
    kind = _kind_of(entry, banks)
    names = kind.parts[entry]
    if kind.drawings:
        banks = _with_drawings_of(names, banks, kind.drawings)
    rows, others = dict[str, list[Row]](), dict[str, list[Row]]()
    for name in settings.configs or kind.configs:
        if name not in kind.configs:
            raise UsageError(
                f"{entry} makes no row of {name}: choose from {', '.join(kind.configs)}",
                code="nothing-to-do",
            )
        listed = sampled(name, banks, settings.seed)
        if mine := [row for row in listed if names & _mentioned(row)]:
            rows[name] = mine
            others[name] = [row for row in listed if not names & _mentioned(row)]
    if not rows:
        raise BuildError(
            f"{entry}: a release takes no row of it; it has room for so many entries of a kind, "
            "and of a family",
            code="nothing-to-do",
        )
    rows, undrawn = _with_seeds(rows, settings)
    rows = {name: [voted(row, banks.votes) for row in rows[name]] for name in rows}
    problems = [
        f"{name}: {fault.row}: {fault.field}: {fault.message}"
        for name in rows
        for fault in suite_faults(name, [*rows[name], *others[name]], banks, complete=False)
        if fault.row in {row.id for row in rows[name]}
    ]
    if problems:
        raise BuildError("rows fail their checks:\n" + "\n".join(problems), code="failed-checks")
    return OnlyRows(rows, undrawn)


def _kinds(banks: Banks) -> Iterator[Callable[[], Entries]]:
    """The kinds of entries, each read when it is called."""
    yield lambda: Entries(
        ("t2i_correctness", "t2i_correctness_gold"),
        {pair.id: frozenset({pair.id}) for pairs in banks.pairs.values() for pair in pairs},
        "drawables",
    )
    yield lambda: Entries(WORLDS, _scenes(banks), "world_drawings")
    yield lambda: Entries(
        ("rule_decoupling",), {rule.id: frozenset({rule.id}) for rule in banks.rules}
    )
    yield lambda: Entries(
        ("attribute_decoupling",), {pair.id: frozenset({pair.id}) for pair in banks.attributes}
    )
    yield lambda: Entries(ENTITIES, _entities(banks))
    yield lambda: Entries(ENTITIES, {name: frozenset({name}) for name in banks.taxonomy.actions})


def _scenes(banks: Banks) -> dict[str, frozenset[str]]:
    laws = [law for laws in banks.laws.values() for law in laws]
    by_scene = {scene.id: frozenset({scene.id}) for law in laws for scene in law.scenes}
    return {law.id: frozenset(scene.id for scene in law.scenes) for law in laws} | by_scene


def _entities(banks: Banks) -> dict[str, frozenset[str]]:
    single = {name: frozenset({name}) for name in banks.taxonomy.entities}
    of_occupation = {
        name.partition(" ")[2]: frozenset(
            f"{gender} {name.partition(' ')[2]}" for gender in GENDERS
        )
        for name, entity in banks.taxonomy.entities.items()
        if entity.kind == "human"
    }
    return single | of_occupation


def _kind_of(entry: str, banks: Banks) -> Entries:
    known: list[str] = []
    for read in _kinds(banks):
        try:
            kind = read()
        except BankError as error:
            if error.code != "no-such-file":
                raise
            continue  # a bank may hold what some configs need
        if entry in kind.parts:
            return kind
        known += kind.parts
    near = get_close_matches(entry, known, n=3, cutoff=0.3)
    hint = f"did you mean {' or '.join(near)}?" if near else "ids are in the files of the bank"
    raise UsageError(f"no entry {entry!r} in {banks.root}: {hint}", code="unknown-name")


def _with_drawings_of(names: frozenset[str], banks: Banks, part: str) -> Banks:
    """The same banks, of whose drawings only those of some entries are there."""
    drawings = getattr(banks, part)
    narrowed = Banks(banks.root)
    vars(narrowed).update(vars(banks) | {part: {n: d for n, d in drawings.items() if n in names}})
    return narrowed


def _mentioned(row: Row) -> set[str]:
    """The entries and things that a row is made of."""
    things = {value.name for _, value in row if isinstance(value, Entity)}
    return things | set(row.provenance.entry.split(", "))


def _with_seeds(
    rows: dict[str, list[Row]], settings: BuildSettings
) -> tuple[dict[str, list[Row]], str]:
    """The rows with their seed images, or why they have none."""
    drawn = dict(rows)
    try:
        for name, listed in rows.items():
            if isinstance(listed[0], SeededRow):
                seeded = cast(list[SeededRow], listed)
                drawn[name] = list[Row](draw_seeds(seeded, "render:", lambda count: None))
    except UsageError as error:
        return rows, str(error)
    return drawn, ""
