"""The taxonomy bank: 138 entities and 172 actions or states (OTS-Bench, section 3 and appendix)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from ..scenes.looks import look
from ..schema import Entity, Struct
from .bank import BankError, by_name, read_entries
from .frozen import ALL, Frozen
from .lemmas import lemma
from .phrases import article

EntityKind = Literal["human", "animal", "object"]
GENDERS = ("male", "female")


class Occupation(Struct):
    """One of 32 occupations; each gives a male and a female entity."""

    occupation: str
    """Name, singular."""
    plural: str
    """Name, plural."""
    category: str
    """One of eight categories of four occupations."""
    look: str
    """Clothing and gear by which a judge recognizes it in an image."""
    soc_2018: str | None
    """SOC 2018 code, or None."""
    soc_level: Literal["detailed", "broad", "minor"] | None
    """Level of the code."""
    confusable: list[str]
    """Occupations that a careful viewer could mistake it for."""


class Grounding(Struct):
    """Ids of the concept in other data sets; None if it has none."""

    coco: int | None
    """COCO category id, 1-90."""
    imagenet: str | None
    """WordNet id of an ImageNet synset."""
    openimages: str | None
    """Display name of an Open Images boxable class."""


class Thing(Struct):
    """An animal or an object."""

    name: str
    """Name, singular."""
    plural: str
    """Name, plural."""
    article: Literal["a", "an"]
    """Indefinite article."""
    category: str
    """One of five (animals) or seven (objects) categories."""
    look: str
    """How a judge recognizes it."""
    size: Literal["small", "medium", "large"]
    """Typical real size."""
    grounding: Grounding
    """Its ids in other data sets."""
    confusable: list[str]
    """Things that a careful viewer could mistake it for."""


class Suits(Struct):
    """Entities of its kind that an action suits; all of them if both lists are empty."""

    categories: list[str]
    """Whole categories."""
    entities: list[str]
    """Single entities, beside the categories."""


class Directed(Struct):
    """Clauses of an action that one entity does to another."""

    active: str
    """Follows the agent; holds ``{patient}``."""
    passive: str
    """Follows the patient; holds ``{agent}``."""


class Phrases(Struct):
    """The two forms of an action in a sentence."""

    participle: str
    """Follows a noun phrase: one nurse *kneeling on one knee*."""
    clause: str
    """Follows a subject: the nurse *is kneeling on one knee*."""


class Action(Struct):
    """One of 172 actions and states."""

    id: str
    """Slug; never changes."""
    kind: EntityKind
    """Kind of entity that it is for."""
    group: str
    """The paper's group."""
    name: str
    """As in the paper, if it is listed there."""
    source: Literal["paper", "ours"]
    """Where it was first listed."""
    participle: str | None
    """Follows a noun phrase; None for pairs and for some directed actions."""
    clause: str | None
    """Follows a subject; None likewise."""
    suits: Suits
    """Entities that can do or have it."""
    visible: bool
    """Whether a still image can show it; only then is it used in items."""
    ordinary: bool = False
    """Whether an ordinary image shows it anyway, so that it is no edit of one of two entities."""
    shown: tuple[str, ...] = ()
    """What a description of an image says if it shows it already, in any form and order of its
    words: `mouth open` also in "wide open mouth"."""
    contrast: list[str]
    """Ids of actions that clearly differ from it in an image."""
    directed: Directed | None
    """Set if one entity does it to another."""
    pair: tuple[Phrases, Phrases] | None
    """Group `parallel`: what each of two people does."""


GROUP_SIZES: dict[EntityKind, dict[str, int]] = {
    "human": {"upper_limbs": 6, "torso_lower_limbs": 9, "interactive": 10, "parallel": 10},
    "animal": {
        "static_posture": 4,
        "head_tail": 10,
        "limb_body": 10,
        "body_type_specific": 25,
        "species_interaction": 6,
    },
    "object": {
        "motion": 9,
        "visual": 7,
        "morphological": 8,
        "condition": 18,
        "category_specific": 20,
        "object_specific": 20,
    },
}
"""Number of actions in each group; 35 + 55 + 82 = 172."""

SOCIAL = ("interactive", "species_interaction")
"""Groups of actions between two entities."""

FILES: dict[EntityKind, str] = {
    "human": "occupations.yaml",
    "animal": "animals.yaml",
    "object": "objects.yaml",
}
"""Bank file of each kind of entity."""
ACTIONS = "actions.yaml"
"""Bank file of the actions."""

CATEGORY_SIZES: dict[EntityKind, tuple[int, int]] = {
    "human": (8, 8),
    "animal": (5, 5),
    "object": (7, 7),
}
"""Categories of each kind, and entities in each: 64 + 25 + 49 = 138."""


@dataclass(frozen=True)
class TaxonomyEntity:
    """An entity, with what builders need beyond its row."""

    row: Entity
    """The entity as rows hold it."""
    plural: str
    """Name, plural."""
    confusable: frozenset[str]
    """Names of entities that it may be mistaken for."""
    size: Literal["small", "medium", "large"]
    """Typical real size; people are large."""

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def kind(self) -> EntityKind:
        return self.row.kind


@dataclass(frozen=True)
class Taxonomy:
    """Entities by name and actions by id, in the order of the bank."""

    entities: dict[str, TaxonomyEntity]
    actions: dict[str, Action]
    added: frozenset[str] = frozenset()
    """Names of the entities that are additions: no draw of a fixed size takes them."""
    added_actions: frozenset[str] = frozenset()
    """Ids of the actions that are additions."""

    @classmethod
    def read(cls, bank: Path, frozen: Frozen = ALL) -> Taxonomy:
        """Reads and checks the bank. Raises BankError for a wrong count, name or reference."""
        occupations = read_entries(bank / "occupations.yaml", Occupation)
        animals = read_entries(bank / "animals.yaml", Thing)
        objects = read_entries(bank / "objects.yaml", Thing)
        entities = [e for o in occupations for e in _humans(o)]
        added = {
            *(
                e.name
                for o in occupations
                if not frozen.holds("occupations", o.occupation)
                for e in _humans(o)
            ),
            *(a.name for a in animals if not frozen.holds("animals", a.name)),
            *(o.name for o in objects if not frozen.holds("objects", o.name)),
        }
        entities += [_thing("animal", a, bank) for a in animals]
        entities += [_thing("object", o, bank) for o in objects]
        table: dict[str, TaxonomyEntity] = {}
        for entity in entities:
            if entity.name in table:
                raise BankError(
                    f"{bank / FILES[entity.kind]}: {entity.name!r} is used twice",
                    code="duplicate-id",
                )
            table[entity.name] = entity
        actions = read_entries(bank / ACTIONS, Action)
        taxonomy = cls(
            table,
            by_name(actions, "id", str(bank / ACTIONS)),
            frozenset(added),
            frozenset(a.id for a in actions if not frozen.holds("actions", a.id)),
        )
        taxonomy._check(bank)
        return taxonomy

    @cached_property
    def drawn(self) -> Taxonomy:
        """The taxonomy without additions, from which draws of a fixed size are made."""
        if not self.added and not self.added_actions:
            return self
        entities = {name: e for name, e in self.entities.items() if name not in self.added}
        return Taxonomy(entities, self._drawn_actions)

    def drawn_and(self, *names: str) -> Taxonomy:
        """The taxonomy without additions, but for these entities: what rows on them are made of, so
        that a later addition does not change them."""
        added = {name: self.entities[name] for name in names if name in self.added}
        return replace(self.drawn, entities=self.drawn.entities | added) if added else self.drawn

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the entities, singular and plural."""
        return frozenset(
            name for entity in self.entities.values() for name in (entity.name, entity.plural)
        )

    @property
    def _drawn_actions(self) -> dict[str, Action]:
        return {name: a for name, a in self.actions.items() if name not in self.added_actions}

    def of_kind(self, kind: EntityKind) -> list[TaxonomyEntity]:
        """Entities of one kind, in the order of the bank."""
        return [e for e in self.entities.values() if e.kind == kind]

    @cached_property
    def _single(self) -> dict[str, list[Action]]:
        """For each entity, the visible actions that it can do alone.

        Of the social groups, these are the actions with contrasts; nobody shakes hands alone.
        """
        single = [
            a
            for a in self.actions.values()
            if a.visible and a.participle and a.clause and (a.group not in SOCIAL or a.contrast)
        ]
        return {
            name: [a for a in single if suits(a, entity)] for name, entity in self.entities.items()
        }

    def single_actions(self, entity: TaxonomyEntity) -> list[Action]:
        """Visible actions or states that the entity can do or have by itself."""
        return self._single[entity.name]

    @cached_property
    def _edits(self) -> dict[str, list[Action]]:
        return {
            name: [
                a for a in actions if not a.ordinary and not shown_by(self.entities[name].row, a)
            ]
            for name, actions in self._single.items()
        }

    def edits(self, entity: TaxonomyEntity) -> list[Action]:
        """Its single actions that no image of it shows, so that an edit can ask for them."""
        return self._edits[entity.name]

    @cached_property
    def _parallel(self) -> dict[str, list[Action]]:
        """For each entity, the visible pairs of things of which no image of it shows one."""
        pairs = [a for a in self.actions.values() if a.visible and a.pair and not a.ordinary]
        return {
            name: [a for a in pairs if suits(a, entity) and not shown_by(entity.row, a)]
            for name, entity in self.entities.items()
        }

    def parallel_edits(self, first: TaxonomyEntity, second: TaxonomyEntity) -> list[Action]:
        """Visible pairs of things that the two can do at once, and that no image of them shows."""
        others = {action.id for action in self._parallel[second.name]}
        return [action for action in self._parallel[first.name] if action.id in others]

    def directed_actions(self, kind: EntityKind) -> list[Action]:
        """Visible actions that one entity of the kind does to another."""
        return [a for a in self.actions.values() if a.kind == kind and a.visible and a.directed]

    def _check(self, bank: Path) -> None:
        for kind, (categories, size) in CATEGORY_SIZES.items():
            counts = _counts(e.row.category for e in self.drawn.of_kind(kind))
            if len(counts) != categories or set(counts.values()) != {size}:
                raise BankError(
                    f"{bank}: {kind} needs {categories} categories of {size}, has {counts}",
                    code="unbalanced-bank",
                )
            for name in sorted(self.added):
                row = self.entities[name].row
                if row.kind == kind and row.category not in counts:
                    raise BankError(
                        f"{bank}/{FILES[kind]}, {name}: category: no category {row.category!r}: "
                        f"choose from {', '.join(counts)}",
                        code="unknown-name",
                    )
        file = bank / ACTIONS
        for kind, groups in GROUP_SIZES.items():
            counts = _counts(a.group for a in self._drawn_actions.values() if a.kind == kind)
            if counts != groups:
                raise BankError(
                    f"{file}: {kind} actions must be {groups}, are {counts}", code="unbalanced-bank"
                )
        for entity in self.entities.values():
            for confusable in entity.confusable:
                other = self.entities.get(confusable)
                # An entry need not be edited for an addition to be like it.
                if other is None or not (
                    entity.name in other.confusable or entity.name in self.added
                ):
                    raise BankError(
                        f"{bank}: {entity.name}: confusable {confusable!r} is not mutual",
                        code="bad-entry",
                    )
        for action in self.actions.values():
            _check_action(action, self, file)
        for action_id in sorted(self.added_actions):
            _check_added(self.actions[action_id], self.drawn, file)


def shows(said: str, action: Action) -> str:
    """Returns what a look, `said`, says of an action that an image shows already; empty if nothing.

    An edit that asks for it would be no edit of that entity. Each part of the look between commas
    is read alone, so that "tail curled, head up" shows no raised tail.

    >>> mouth = Action.model_construct(clause="is opening its mouth wide", shown=["mouth open"])
    >>> shows("green frog sitting upright, wide open mouth", mouth)
    'mouth open'
    """
    parts = [_lemmas(part) for part in said.split(",")]
    for words in (*action.shown, (action.clause or "").removeprefix("is ")):
        if words and any(part.issuperset(_lemmas(words)) for part in parts):
            return words
    return ""


def looks(entity: Entity) -> tuple[str, ...]:
    """How images may show an entity: as the bank says and, last, as the renderer draws it."""
    try:
        return entity.look, look(entity.name)
    except KeyError:  # of another bank, which another generator draws
        return (entity.look,)


def shown_by(entity: Entity, action: Action) -> str:
    """Returns what any look of an entity says of an action; empty if it shows it in no image."""
    return next(filter(None, (shows(text, action) for text in looks(entity))), "")


@cache
def _lemmas(text: str) -> frozenset[str]:
    return frozenset(map(lemma, re.findall(r"[^\W\d_]+", text.lower())))


def suits(action: Action, entity: TaxonomyEntity) -> bool:
    """Whether the entity can do or have it."""
    if action.kind != entity.kind:
        return False
    named = action.suits
    return (
        not (named.categories or named.entities)
        or entity.row.category in named.categories
        or entity.name in named.entities
        or any(entity.name == f"{g} {o}" for g in GENDERS for o in named.entities)
    )


def _check_action(action: Action, taxonomy: Taxonomy, file: Path) -> None:
    where = f"{file}, {action.id}"
    kind_entities = taxonomy.of_kind(action.kind)
    categories = {e.row.category for e in kind_entities}
    entity_names = {e.name for e in kind_entities} | {
        e.name.split(" ", 1)[-1] for e in kind_entities
    }
    if unknown := set(action.suits.categories) - categories:
        raise BankError(
            f"{where}: suits.categories: unknown {sorted(unknown)}", code="unknown-reference"
        )
    if unknown := set(action.suits.entities) - entity_names:
        raise BankError(
            f"{where}: suits.entities: unknown {sorted(unknown)}", code="unknown-reference"
        )
    for contrasted in action.contrast:
        partner = taxonomy.actions.get(contrasted)
        # The partner need not be edited for an addition.
        mutual = action.id in taxonomy.added_actions or (
            partner is not None and action.id in partner.contrast
        )
        if partner is None or not mutual or partner.kind != action.kind:
            raise BankError(
                f"{where}: contrast {contrasted!r} is not a mutual action of its kind",
                code="bad-entry",
            )
    if (action.pair is not None) != (action.group == "parallel"):
        raise BankError(f"{where}: exactly the group `parallel` has a pair", code="bad-entry")
    if action.directed and (
        "{patient}" not in action.directed.active or "{agent}" not in action.directed.passive
    ):
        raise BankError(
            f"{where}: directed: active names {{patient}}, passive names {{agent}}",
            code="bad-entry",
        )


def _check_added(action: Action, drawn: Taxonomy, file: Path) -> None:
    """Raises BankError for an added action of which no row can be made."""
    where = f"{file}, {action.id}"
    groups = [group for group in GROUP_SIZES[action.kind] if group not in (*SOCIAL, "parallel")]
    if action.group not in groups:
        raise BankError(
            f"{where}: group: an added {action.kind} action is of one of {', '.join(groups)}, not "
            f"{action.group!r}",
            code="unknown-name",
        )
    if not (action.visible and action.participle and action.clause):
        raise BankError(
            f"{where}: an added action needs participle, clause and `visible: true`: else no row "
            f"can name it",
            code="bad-entry",
        )
    if not any(suits(action, entity) for entity in drawn.of_kind(action.kind)):
        raise BankError(
            f"{where}: suits: names only additions, and its rows are of frozen entities: add a "
            f"category or entity of the frozen ones",
            code="bad-entry",
        )


def _humans(occupation: Occupation) -> Iterable[TaxonomyEntity]:
    for gender in GENDERS:
        row = Entity(
            name=f"{gender} {occupation.occupation}",
            kind="human",
            category=occupation.category,
            look=f"{'man' if gender == 'male' else 'woman'}: {occupation.look}",
        )
        # A man and a woman of look-alike occupations are still told apart.
        confusable = frozenset(
            f"{gender} {occupation_name}" for occupation_name in occupation.confusable
        )
        yield TaxonomyEntity(row, f"{gender} {occupation.plural}", confusable, "large")


def _thing(kind: EntityKind, thing: Thing, bank: Path) -> TaxonomyEntity:
    if thing.article != article(thing.name):
        raise BankError(
            f"{bank}: {thing.name}: article {thing.article!r} does not fit", code="bad-entry"
        )
    row = Entity(name=thing.name, kind=kind, category=thing.category, look=thing.look)
    return TaxonomyEntity(row, thing.plural, frozenset(thing.confusable), thing.size)


def _counts(values: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return counts
