"""Rows that the renderer is tried on: pairs and triples of animals and things in random order."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ...images import encode_png
from ...scenes.sprites import clothes, entity_names
from ...schema import (
    AlteredWorld,
    Counterfactual,
    CounterfactualDenominalized,
    EncodedImage,
    Entity,
    EvaluationQuestion,
    I2ICorrectness,
    KeyedQuestion,
    OrderBeyond,
    Provenance,
    Spatial3D,
    SpatialClauses,
    SpatialDistance,
    SpatialMulti,
    SpatialUC,
    SpatialVISOR,
    T2ICorrectness,
    T2IHomogenization,
)
from ..core import ImageRequest
from ..generators import draw
from ..generators.drawings import DRAWN
from ..generators.render import RenderGenerator
from ..suites.altered import KEYED
from ..suites.correctness import ACTIONS
from ..suites.worlds import QUESTIONS

PAIRS = 60
"""How many pairs: two images each where there are two mention orders."""
FEW = 20
"""How many where a detector looks, which takes its time."""
ANIMALS = (
    "cat dog horse cow sheep pig goat fox elephant giraffe bear rabbit".split()
)  # short names that no other name holds
STOUT = [name for name in ANIMALS if name not in ("elephant", "giraffe")]
"""Animals that are detected even if they are drawn small."""
_PROVENANCE = Provenance(bank="", entry="selftest", author="selftest", calls=[])
WORLDS, DESCRIBED, CONSTRAINED = 20, 14, 24
"""How many worlds, worlds with a described outcome, and pairs of the bank are drawn: each image
takes 45 ms."""
DOMAINS = ("keyboards", "clocks_and_dials")
"""Of these pairs."""
_WEIGHTS = {"visual_integrity": 2, "assessment": 14, "logic_consistency": 8}
_WORLD: dict[str, Any] = {
    "discipline": "selftest",
    "altered_law": "",
    "assessment_point": "",
    "review": [],
    "status": "new",
    "provenance": _PROVENANCE,
    **{name: EvaluationQuestion(weight=w, text=name) for name, w in _WEIGHTS.items()},
}
_PAIR: dict[str, Any] = {"pair_type": "A-A", "review": [], "provenance": _PROVENANCE}


def pairs(entities: Sequence[str] = (), seed: int = 1) -> list[tuple[str, str]]:
    """Returns different pairs in random order of mention; by default of things and animals."""
    entities = entities or [name for name in entity_names() if clothes(name) is None]
    return random.Random(seed).sample(list(itertools.permutations(entities, 2)), PAIRS)


def _entity(name: str) -> Entity:
    return Entity(name=name, kind="animal", category="selftest", look=name)


def neutral(first: str, second: str) -> T2IHomogenization:
    """Row of a pair that is named without a layout, in both orders."""
    return T2IHomogenization(
        **_PAIR,
        first=_entity(first),
        second=_entity(second),
        first_action="",
        second_action="",
        prompt=f"One {first} and one {second}.",
        swapped_prompt=f"One {second} and one {first}.",
        neutral_prompt="Two animals.",
    )


def explicit(left: str, right: str) -> T2ICorrectness:
    """Row of a pair whose layout the prompt states."""
    return T2ICorrectness(
        domain="selftest",
        family=f"{left}-{right}",
        cluster=f"{left}-{right}",
        left=left,
        right=right,
        context="side by side",
        frame="upright",
        basis="stated",
        fact="",
        aligned_prompt=f"A {left} on the left and a {right} on the right.",
        reverse_prompt=f"A {right} on the right and a {left} on the left.",
        standards=[],
        sources="stated",
        rationale="",
        tell_left=left,
        tell_right=right,
        mirror_safe=True,
        text_bound=False,
        scope="universal",
        review=[],
        provenance=_PROVENANCE.model_copy(update={"entry": f"{left}-{right}"}),
    )


def related(number: int, first: str, second: str) -> SpatialUC:
    """Row of a pair whose first thing is stated to stand left."""
    return SpatialUC(
        prompt_id=f"selftest_{number}",
        pair_id=f"selftest_{number}",
        relation="left_of",
        object_a=first,
        object_b=second,
        prompt=f"A photo of a {first} to the left of a {second}.",
        counterfactual_id="",
        review=[],
        provenance=_PROVENANCE,
    )


def stated(number: int, entities: Sequence[str]) -> SpatialVISOR:
    """Row of a pair with one of four stated relations in the plane, in turn."""
    a, b = entities
    phrases = ("to the left of", "to the right of", "above", "below")
    relations: tuple[Any, ...] = ("left_of", "right_of", "above", "below")
    return SpatialVISOR(
        visor_id=number,
        relation=relations[number % 4],
        object_a=a,
        object_b=b,
        prompt=f"{_article(a)} {phrases[number % 4]} {_article(b)}",
        review=[],
        provenance=_PROVENANCE,
    )


def deep(number: int, entities: Sequence[str]) -> Spatial3D:
    """Row of a pair with one of three stated relations in depth, in turn."""
    a, b = entities
    phrases = ("in front of", "behind", "partly hidden by")
    relations: tuple[Any, ...] = ("in_front_of", "behind", "hidden_by")
    return Spatial3D(
        relation=relations[number % 3],
        object_a=a,
        object_b=b,
        prompt=f"{_article(a)} {phrases[number % 3]} {_article(b)}",
        pair_id=f"{a}/{b}",
        review=[],
        provenance=_PROVENANCE,
    )


def apart(number: int, entities: Sequence[str]) -> SpatialDistance:
    """Row of a pair that is stated to be near each other or far apart, in turn."""
    a, b = entities
    relations: tuple[Any, ...] = ("near", "far")
    phrase = ("near", "far from")[number % 2]
    return SpatialDistance(
        relation=relations[number % 2],
        object_a=a,
        object_b=b,
        prompt=f"{_article(a)} {phrase} {_article(b)}",
        pair_id=f"{a}/{b}",
        review=[],
        provenance=_PROVENANCE,
    )


def clauses(number: int, entities: Sequence[str]) -> SpatialClauses:
    """Row of three things, the first of which has a relation to both others."""
    phrases = {"left_of": "on the left of", "above": "on the top of", "right_of": "on the right of"}
    relations = [list(phrases)[number % 3], list(phrases)[(number + 1) % 3]]
    a, b, c = entities
    first, second = (phrases[relation] for relation in relations)
    return SpatialClauses(
        objects=list(entities),
        subjects=[a, a],
        relations=relations,
        references=[b, c],
        prompt=f"{_article(a)} {first} {_article(b)} and {second} {_article(c)}.",
        review=[],
        provenance=_PROVENANCE,
    )


def chain(number: int, entities: Sequence[str]) -> SpatialMulti:
    """Row of three things in a chain of two relations."""
    phrases = {"left_of": "to the left of", "above": "above", "right_of": "to the right of"}
    relations = [list(phrases)[number % 3], list(phrases)[(number + 1) % 3]]
    a, b, c = entities
    first, second = (phrases[relation] for relation in relations)
    return SpatialMulti(
        objects=list(entities),
        subjects=[a, b],
        relations=relations,
        references=[b, c],
        prompt=f"{_article(a)} {first} {_article(b)} and the {b} {second} {_article(c)}.",
        review=[],
        provenance=_PROVENANCE,
    )


def listed(entities: Sequence[str]) -> OrderBeyond:
    """Row of three things that are named one after the other."""

    def prompt(named: Sequence[str]) -> str:
        return "One {}, one {}, and one {}.".format(*named)

    return OrderBeyond(
        setting="three_homogenization",
        axis="horizontal",
        entities=list(entities),
        looks=list(entities),
        prompt=prompt(entities),
        swapped_prompt=prompt(entities[::-1]),
        expected=[],
        standards=[],
        review=[],
        provenance=_PROVENANCE,
    )


def worlds() -> list[str]:
    """Returns groups of altered worlds that the bank draws."""
    groups: list[str] = import_module(DRAWN).drawn_worlds("optics")
    return groups[:WORLDS]


def world_levels(group: str) -> list[Counterfactual]:
    """Rows of a group's three levels; the questions are the judge's by name, whatever they say."""
    levels: tuple[Any, ...] = ("L1", "L2", "L3")
    return [
        Counterfactual(
            group=group,
            level=level,
            branch="selftest",
            prompt=f"{level} of {group}.",
            law="",
            **_WORLD | {"altered_law": group},
        )
        for level in levels
    ]


def described(group: str) -> CounterfactualDenominalized:
    """Row of a group whose outcome is named, and described."""
    plain: dict[str, Any] = {f"plain_{name}": _WORLD[name] for name in QUESTIONS}
    about = {name: value for name, value in _WORLD.items() if name != "discipline"}
    return CounterfactualDenominalized(
        group=group,
        replaced=[],
        prompt=f"The described outcome of {group}.",
        original_prompt=f"The named outcome of {group}.",
        plain_prompt=f"The scene of {group}.",
        **about | plain | {"altered_law": group},
    )


def altered_levels(group: str) -> list[AlteredWorld]:
    """Rows of a group's four levels."""
    levels: tuple[Any, ...] = ("L0", "L1", "L2", "L3")
    keyed: dict[str, Any] = {
        name: KeyedQuestion(text=name, world="real" if name.endswith("_factual") else "altered")
        for name in KEYED
    }
    return [
        AlteredWorld(
            group=group,
            level=level,
            law=group,
            discipline="selftest",
            prompt=f"{level} of {group}.",
            phrasing="template",
            control="",
            depth=1,
            naive_outcome=False,
            timed=False,
            logic_kind="consequence",
            presence="presence",
            review=[],
            status="new",
            provenance=_PROVENANCE.model_copy(update={"entry": group}),
            **keyed,
        )
        for level in levels
    ]


def constrained() -> list[T2ICorrectness]:
    """Rows of constrained pairs that the bank draws."""
    drawn = [
        (domain, pair) for domain in DOMAINS for pair in import_module(DRAWN).drawn_pairs(domain)
    ]
    return [
        explicit(pair.left, pair.right).model_copy(
            update={
                "domain": domain,
                "context": pair.context,
                "aligned_prompt": f"{pair.left} and {pair.right} {pair.context}.",
                "reverse_prompt": f"{pair.right} and {pair.left} {pair.context}.",
            }
        )
        for domain, pair in drawn[:CONSTRAINED]
    ]


def few_pairs() -> list[tuple[str, ...]]:
    """Returns a few different pairs of animals in random order."""
    return random.Random(2).sample(list(itertools.permutations(STOUT, 2)), FEW)


def triples() -> list[tuple[str, ...]]:
    """Returns a few different triples of animals in random order."""
    return random.Random(2).sample(list(itertools.permutations(STOUT, 3)), FEW)


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def seed(left: str, right: str) -> dict[str, Any]:
    """Returns the fields of a row with a drawn seed image."""
    prompt = f"A {left} on the left and a {right} on the right."
    image = encode_png(draw(RenderGenerator(), ImageRequest(prompt, 0)))
    return {
        **_PAIR,
        "left": _entity(left),
        "right": _entity(right),
        "seed_prompt": prompt,
        "seed_image": EncodedImage(bytes=image, path="seed.png"),
        "image_sha256": hashlib.sha256(image).hexdigest(),
    }


def bound(left: str, right: str) -> I2ICorrectness:
    """Row of an edit in which the two of a pair do different things."""
    does = {left: ACTIONS[0], right: ACTIONS[1]}
    return I2ICorrectness(
        **seed(left, right),
        relation="independent",
        agent="both",
        left_expected=does[left],
        right_expected=does[right],
        aligned_instruction=f"The {left} {does[left]} and the {right} {does[right]}.",
        reverse_instruction=f"The {right} {does[right]} and the {left} {does[left]}.",
    )
