"""The ontology bank: nouns that name something visible, in seven categories.

`corpus_analysis/bank/*.yaml` holds one category per file, and `not_visual.yaml` names that only
look like entities. The prefilter and the parser's rules read the same surface forms, so they can't
disagree about what an entity is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...parsing import read_yaml
from ...schema import Struct

FOLDER = Path(__file__).parents[1] / "bank"
"""The bank that ships with the package."""

CATEGORIES = (
    "people",
    "animals",
    "vehicles",
    "furniture",
    "food_kitchen",
    "devices_leisure",
    "everyday",
)
"""The seven categories, each a file."""

ANIMATE = frozenset(("people", "animals"))
"""Categories of what lives."""

SOMEBODY = "person"
"""CC3M's substitutes for names: beside a role, each is another person."""

NOT_VISUAL = "not_visual"
"""The file of names that end like an entity but are none."""

OTHER_KINDS = "other_kinds.txt"
"""More of them, by WordNet: compounds that are no kind of their last word ("prairie dog")."""


SPELLINGS = "spellings.txt"
"""How captions also write a form: misspelled, in two words, in one."""


class OntologyError(DataError):
    """A bank file that can't be used; the message names file and entry."""


class Noun(Struct):
    """An entry of a bank file."""

    name: str
    """Canonical name, singular, lower case."""
    also: tuple[str, ...] = ()
    """Synonyms, singular."""
    plural: tuple[str, ...] = ()
    """Plurals of the name if the regular one is wrong."""
    is_: str = ""
    """The broader kind; empty for the root of its file."""
    gendered: bool = False
    """Whether `male X` and `female X` are entities too."""
    mass: bool = False
    """Whether it is uncountable: "milk", not "a milk"."""
    root: bool = True
    """Whether the other entries of its file are kinds of it, if it is the first."""

    def forms(self) -> Iterator[str]:
        """Every surface form, singular and plural."""
        yield self.name
        yield from self.plural or (plural(self.name),)
        for synonym in self.also:
            yield synonym
            yield plural(synonym)


@dataclass(frozen=True)
class CaptionEntity:
    """Something that a caption can name and an image can show."""

    name: str
    """Canonical name."""
    category: str
    """One of `CATEGORIES`."""
    kinds: frozenset[str]
    """Names of everything that it is a kind of, without itself."""
    countable: bool = True
    """Whether there can be two of it."""

    @property
    def animate(self) -> bool:
        """Whether it is a person or an animal."""
        return self.category in ANIMATE


@dataclass(frozen=True)
class SurfaceForm:
    """One way to write a name, keyed by its last word."""

    before: tuple[str, ...]
    """Words before the last one, nearest first."""
    entity: CaptionEntity | None
    """The entity that it names; None if that is not visual."""


class Ontology:
    """Entities by name, and their surface forms by last word, longest first."""

    def __init__(
        self, entities: dict[str, CaptionEntity], forms: dict[str, CaptionEntity | None]
    ) -> None:
        self.entities = entities
        """Canonical name -> entity."""
        self.surface = forms
        """Surface form, lower case, words separated by one space -> entity or None."""
        by_last: dict[str, list[SurfaceForm]] = {}
        for surface, entity in forms.items():
            *before, last = surface.split(" ")
            by_last.setdefault(last, []).append(SurfaceForm(tuple(reversed(before)), entity))
        self.by_last = {
            word: tuple(sorted(group, key=lambda f: (-len(f.before), f.before)))
            for word, group in sorted(by_last.items())
        }
        """Last word -> its forms, longest first: "hot dog" before "dog"."""

    @classmethod
    @cache
    def read(cls, folder: Path = FOLDER) -> Ontology:
        """Reads a bank folder. Raises OntologyError for an invalid file, name, form or `is`."""
        entities: dict[str, CaptionEntity] = {}
        forms: dict[str, CaptionEntity | None] = {}
        for category in CATEGORIES:
            nouns = _read(folder / f"{category}.yaml")
            kinds = _kinds(nouns, folder / f"{category}.yaml")
            for noun in nouns:
                for name, surfaces in _entities(noun, category, kinds[noun.name]):
                    if name.name in entities:
                        raise OntologyError(
                            f"{folder}: {name.name!r} is defined twice", code="duplicate-id"
                        )
                    entities[name.name] = name
                    _add(forms, surfaces, name, f"{folder / category}.yaml")
        for noun in _read(folder / f"{NOT_VISUAL}.yaml"):
            _add(forms, noun.forms(), None, f"{folder / NOT_VISUAL}.yaml")
        for compound in _lines(folder / OTHER_KINDS):
            for form in (compound, plural(compound)):
                forms.setdefault(form, None)
        for written, meant in _spellings(folder / SPELLINGS):
            if meant not in forms or written in forms:
                raise OntologyError(
                    f"{folder / SPELLINGS}: {written!r} is known, or {meant!r} is not",
                    code="bad-entry",
                )
            for form in (written, plural(written)):
                forms.setdefault(form, forms[meant])
        return cls(entities, forms)

    @cached_property
    def digest(self) -> str:
        """12 hex digits over every form and what it names; part of a run's identity."""
        lines = sorted(
            f"{surface}={entity.name if entity else ''}:{entity.category if entity else ''}"
            f":{','.join(sorted(entity.kinds)) if entity else ''}"
            for surface, entity in self.surface.items()
        )
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def distinct(first: CaptionEntity, second: CaptionEntity) -> bool:
    """Whether the two are different things: neither the same nor a kind of the other."""
    return (
        first.name != second.name
        and first.name not in second.kinds
        and second.name not in first.kinds
    )


def plural(name: str) -> str:
    """The regular plural of a name's last word.

    >>> plural("teddy bear"), plural("pantry"), plural("church"), plural("fireman")
    ('teddy bears', 'pantries', 'churches', 'firemen')
    """
    if name.endswith("man") and not name.endswith("human"):
        return f"{name[:-2]}en"
    if name.endswith("y") and name[-2] not in "aeiou":
        return f"{name[:-1]}ies"
    if name.endswith(("s", "x", "z", "ch", "sh")):
        return f"{name}es"
    return f"{name}s"


def _read(path: Path) -> list[Noun]:
    try:
        items: Any = read_yaml(path)
    except (OSError, DataError) as error:
        raise OntologyError(f"not a readable bank file: {error}", code="unreadable-file") from None
    if not isinstance(items, list) or not items:
        raise OntologyError(f"{path}: not a list of entries", code="wrong-type")
    nouns = []
    for number, item in enumerate(items, 1):
        try:
            fields = dict(item)
            fields["is_"] = fields.pop("is", "")
            nouns.append(Noun.model_validate(fields))
        except (TypeError, ValueError) as error:
            raise OntologyError(
                f"{path}, entry {number} ({item}): {error}", code="bad-entry"
            ) from None
    return nouns


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")[:-1]
    except (OSError, UnicodeDecodeError) as error:
        raise OntologyError(
            f"{path}: not a readable list of names ({error})", code="unreadable-file"
        ) from None


def _spellings(path: Path) -> Iterator[tuple[str, str]]:
    """Spelling and meaning, from lines like "skii = ski"."""
    for number, line in enumerate(_lines(path), 1):
        written, equal, meant = line.partition(" = ")
        if not equal or not _is_form(written):
            raise OntologyError(
                f"{path}, line {number}: {line!r} is not 'written = meant'", code="bad-entry"
            )
        yield written, meant


def _kinds(nouns: list[Noun], path: Path) -> dict[str, frozenset[str]]:
    """Name -> everything above it in its file, up to the root, which may be the first entry."""
    root = nouns[0].name if nouns[0].root else ""
    above = {n.name: n.is_ or (root if n.name != root else "") for n in nouns}
    kinds = {}
    for name in above:
        chain: list[str] = []
        at = above[name]
        while at:
            if at not in above or at in chain:
                raise OntologyError(
                    f"{path}, {name}: is {at!r}, which is missing or forms a cycle",
                    code="unknown-reference",
                )
            chain.append(at)
            at = above[at]
        kinds[name] = frozenset(chain)
    return kinds


def _entities(
    noun: Noun, category: str, kinds: frozenset[str]
) -> Iterator[tuple[CaptionEntity, Iterable[str]]]:
    yield CaptionEntity(noun.name, category, kinds, not noun.mass), noun.forms()
    if noun.gendered:
        for gender in ("male", "female"):
            entity = CaptionEntity(f"{gender} {noun.name}", category, kinds | {noun.name})
            yield entity, [f"{gender} {form}" for form in noun.forms()]


def _is_form(surface: str) -> bool:
    """Whether it consists of lower-case ASCII letters and single spaces between them."""
    words = surface.split(" ")
    return all(word.isascii() and word.isalpha() and word.islower() for word in words)


def _add(
    forms: dict[str, CaptionEntity | None],
    surfaces: Iterable[str],
    entity: CaptionEntity | None,
    where: str,
) -> None:
    for surface in surfaces:
        if not _is_form(surface):
            raise OntologyError(
                f"{where}: {surface!r} must consist of lower-case letters and single spaces",
                code="bad-entry",
            )
        if forms.setdefault(surface, entity) is not entity:
            named = forms[surface]
            raise OntologyError(
                f"{where}: {surface!r} already names {named.name if named else 'nothing visual'!r}",
                code="duplicate-id",
            )
