"""Languages of prompts: how each names the entities, counts one of them, and joins two.

A prompt is stored in reading order, so its first character is the first that is read, also where
people read from the right.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from ..schema import Struct
from .bank import DEFAULT_BANK, BankError, by_name, read_entries
from .taxonomy import GENDERS, Taxonomy

ENGLISH = "en"
"""The language that the others are compared with; its names are the taxonomy's."""


class EntityName(Struct):
    """An entity in one language."""

    name: str
    """Its English name in the taxonomy."""
    text: str
    """The noun phrase, without numeral and article."""
    form: str
    """Gender, article or measure word: a key of the language's `one`."""
    back: str
    """English back-translation by a second reader who saw the words alone."""


class Synonyms(Struct):
    """Other English names of an entity, or of an occupation."""

    name: str
    """Its name in the taxonomy, without a gender."""
    also: list[str]
    """Its other names."""


class Grammar(Struct):
    """How a language makes a prompt of two names."""

    language: str
    """BCP 47 code."""
    direction: Literal["ltr", "rtl"]
    """Where people who read it start: from the left or the right."""
    scripts: list[str]
    """Beginnings of the Unicode names of its letters, e.g. `HEBREW`."""
    one: dict[str, str]
    """Form -> one of a thing, with `{}` for the name."""
    pair: str
    """The sentence that names two, with `{first}` and `{second}`."""
    triple: str
    """The sentence that names three, with `{third}` as well."""
    two: dict[str, str]
    """English word for two things of some kinds -> the sentence that speaks of two of them."""
    male: str = "{}"
    """A man's name with a word for his sex, where the masculine alone may stand for either."""
    left: str = ""
    """The sentence that puts the first to the left of the second; empty where there is none yet."""
    right: str = ""
    """The sentence that puts the first to the right of the second; empty with `left`."""


@dataclass(frozen=True)
class Language:
    """A language with its names, both checked."""

    grammar: Grammar
    names: Mapping[str, EntityName]
    """English name -> entity in this language."""

    def one(self, name: str) -> str:
        """One of an entity: `one male chef`."""
        entity = self.names[name]
        text = self.grammar.male.format(entity.text) if name.startswith("male ") else entity.text
        return self.grammar.one[entity.form].format(text)

    def prompt(self, *entities: str) -> str:
        """The sentence that names two or three entities in this order."""
        sentence = self.grammar.pair if len(entities) == 2 else self.grammar.triple
        phrases = map(self.one, entities)
        text = sentence.format(**dict(zip(("first", "second", "third"), phrases, strict=False)))
        return text[0].upper() + text[1:]

    def confusing(self, first: str, second: str) -> bool:
        """Whether a reader could find one of two names within the other."""
        a, b = (self._words(name) for name in (first, second))
        return a in b or b in a

    def _words(self, name: str) -> str:
        """The name, between spaces where its language has them, so that only whole words match."""
        text = self.names[name].text.casefold()
        return text if "CJK" in self.grammar.scripts else f" {text} "

    def text_faults(self, text: str) -> Iterator[str]:
        """Yields the faults in the characters of a text, regardless of its meaning."""
        if text != unicodedata.normalize("NFC", text):
            yield "is not in Unicode's composed form (NFC)"
        if text != " ".join(text.split()) or not text:
            yield "is not one line of words"
        scripts = tuple(self.grammar.scripts)
        yield from filter(
            None, (_character_fault(character, scripts) for character in dict.fromkeys(text))
        )


@cache
def _character_fault(character: str, scripts: tuple[str, ...]) -> str:
    """Returns why a character can't be in a text of these scripts; empty if it can."""
    category, name = unicodedata.category(character), unicodedata.name(character, "?")
    if category[0] in "LM" and not name.startswith(scripts):
        return f"contains {name}, which is not a letter of {' or '.join(scripts)}"
    if category[0] == "N":
        return f"holds the digit {character!r}"
    if category[0] == "C":
        return f"holds an invisible character, {name} ({ord(character):#x})"
    return ""


def read_languages(bank: Path, taxonomy: Taxonomy) -> dict[str, Language]:
    """Every language by its code, in the order of the bank.

    Raises BankError for a name that is missing, unknown or used twice, a form that the language
    lacks, letters of another script, and a back-translation that is no name of the entity.
    """
    file = bank / "languages.yaml"
    grammars = by_name(read_entries(file, Grammar), "language", str(file))
    synonyms = by_name(
        read_entries(bank / "synonyms.yaml", Synonyms), "name", str(bank / "synonyms.yaml")
    )
    english = [EntityName(name=n, text=n, form="one", back=n) for n in taxonomy.entities]
    languages = {}
    for code, grammar in grammars.items():
        where = bank / "languages" / f"{code}.yaml"
        entries = english if code == ENGLISH else read_entries(where, EntityName)
        language = Language(grammar, by_name(entries, "name", str(where)))
        _check(language, taxonomy, synonyms, where)
        languages[code] = language
    if ENGLISH not in languages:
        raise BankError(
            f"{file}: lacks {ENGLISH!r}, with which the others are compared", code="missing-field"
        )
    return languages


@cache
def shipped_language(code: str) -> Language:
    """A language of the shipped bank other than English, whose own checks have seen it.

    Raises KeyError for one that it lacks.
    """
    grammars = read_entries(DEFAULT_BANK / "languages.yaml", Grammar)
    names = read_entries(DEFAULT_BANK / "languages" / f"{code}.yaml", EntityName)
    return Language(
        {grammar.language: grammar for grammar in grammars}[code],
        {entity.name: entity for entity in names},
    )


def _check(
    language: Language, taxonomy: Taxonomy, synonyms: Mapping[str, Synonyms], file: Path
) -> None:
    # An addition needs no name: rows in languages are drawn from the others.
    named, entities = set(language.names), set(taxonomy.entities)
    if wrong := sorted((named - entities) | (entities - taxonomy.added - named)):
        raise BankError(
            f"{file}: {wrong[0]!r} must be in both the taxonomy and the names", code="bad-entry"
        )
    phrases: dict[str, str] = {}
    for name, entity in language.names.items():
        where = f"{file}: {name}"
        if entity.form not in language.grammar.one:
            raise BankError(
                f"{where}: no form {entity.form!r}: choose from {', '.join(language.grammar.one)}",
                code="unknown-name",
            )
        phrase = language.one(name)
        if fault := next(language.text_faults(phrase), ""):
            raise BankError(f"{where}: {phrase!r} {fault}", code="bad-entry")
        if phrase in phrases:
            raise BankError(f"{where}: {phrase!r} is also {phrases[phrase]!r}", code="duplicate-id")
        phrases[phrase] = name
        if entity.back not in meanings(name, synonyms):
            raise BankError(
                f"{where}: {entity.text!r} is read back as {entity.back!r}: mend the name, or add "
                f"the reading to synonyms.yaml",
                code="bad-entry",
            )


def meanings(name: str, synonyms: Mapping[str, Synonyms]) -> set[str]:
    """Returns the English names of an entity, with its gender if it has one."""
    gender, _, occupation = name.partition(" ")
    if gender not in GENDERS:
        return {name, *(synonyms[name].also if name in synonyms else ())}
    also = synonyms[occupation].also if occupation in synonyms else []
    return {f"{gender} {word}" for word in (occupation, *also)}
