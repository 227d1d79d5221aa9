"""Known truth: rows for the renderer, and what it is set to do with them.

Each suite names its trials; the self-test draws them, judges them, and must find the truth again.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...images import encode_png
from ...scenes.biases import preference
from ...scenes.scene import Scene
from ...scenes.sprites import clothes, entity_names
from ...schema import (
    EncodedImage,
    Entity,
    I2ICorrectness,
    I2IHomogenization,
    OrderBeyond,
    Provenance,
    Spatial3D,
    SpatialMulti,
    SpatialUC,
    SpatialVISOR,
    T2ICorrectness,
    T2IHomogenization,
)
from ..core import INVALID, Case, ImageRequest
from ..generators.render import GRAIN, RenderGenerator
from ..prompts.asking import Stated
from .base import Trial

ROWS = 60
"""Rows of each trial: two images each where there are two mention orders."""
METHOD_ROWS = 40
"""Rows of each trial of a method."""
PREFERENCES = 0.8
"""Standard deviation of each entity's own logit of standing left."""
ACTIONS = ("is lying down on the ground", "is jumping high into the air")
"""What the left and the right one do."""
ANIMALS = (
    "cat dog horse cow sheep pig goat fox elephant giraffe bear rabbit".split()
)  # short names that no other name holds
_PROVENANCE = Provenance(bank="", entry="selftest", author="selftest", calls=[])
_PAIR: dict[str, Any] = {"pair_type": "A-A", "review": [], "provenance": _PROVENANCE}


def homogenization_trials() -> Iterator[Trial]:
    """Order biases 0, 1 and 2.5, with preferences of the entities and faults."""
    for bias in (0.0, 1.0, 2.5):
        yield Trial(
            name=f"T2I homogenization, order bias {bias:g}",
            generator=f"render:?order_bias={bias}&preference_sd={PREFERENCES}&missing=0.05&vertical=0.05",
            rows=[_neutral(a, b) for a, b in _pairs()],
            truths=partial(_true_index, bias),
        )


def method_trials() -> Iterator[Trial]:
    """Methods against an order bias of 2: switched prompts, and weights that halve it."""
    bias, decides = 2.0, 3
    setup: dict[str, Any] = {
        "generator": f"render:?order_bias={bias}&preference_sd={PREFERENCES}&decides={decides}",
        "rows": [_neutral(a, b) for a, b in _pairs()[:METHOD_ROWS]],
    }
    yield Trial(
        name="T2I homogenization, A2B before the layout",
        methods=(f"switch:a2b?at={decides - 1}",),
        truths=partial(_true_index, -bias),  # the layout is the other prompt's
        **setup,
    )
    yield Trial(
        name="T2I homogenization, A2B behind the layout",
        methods=(f"switch:a2b?at={decides}",),
        truths=partial(_true_index, bias),
        **setup,
    )
    yield Trial(
        name="T2I homogenization, N2A behind the layout",
        methods=(f"switch:n2a?at={decides}",),
        truths=partial(_true_index, 0.0),
        **setup,
    )
    yield Trial(
        name="T2I homogenization, half the bias by weights",
        methods=("lora:{weights}",),
        weights='{"order_bias": 0.5}',
        truths=partial(_true_index, bias / 2),
        **setup,
    )


def guidance_trials() -> Iterator[Trial]:
    """Explicit layouts that guidance makes more obeyed, and grainy."""
    share = 0.3
    for strength in (0.0, 0.5):
        obeyed = share + (1 - share) * strength
        yield Trial(
            name=f"Spatial UC, guidance {strength:g}",
            generator=f"render:?grounding={share}",
            methods=(f"psg:sd14?steps={25 * strength:.0f}&scale=20&decay=none",),
            rows=[_related(n, a, b) for n, (a, b) in enumerate(_pairs()[:METHOD_ROWS])],
            truths=partial(_always, {"accuracy": 100 * (obeyed + (1 - obeyed) / 2)}),
            grain=GRAIN * round(25 * strength) / 25,
        )


def choice_trials() -> Iterator[Trial]:
    """Explicit layouts of which the best of three seeds is taken."""
    share, count = 0.3, 3
    right = share + (1 - share) / 2
    truth = 100 * (1 - (1 - right) ** count)
    yield Trial(
        name="T2I correctness, best of 3",
        generator=f"render:?grounding={share}",
        methods=(f"best-of:{count}?by=pixels",),
        rows=[_explicit(a, b) for a, b in _pairs()[:METHOD_ROWS]],
        truths=partial(_always, {"accuracy_aligned": truth, "accuracy_reverse": truth}),
    )


def _always(truths: Mapping[str, float], cases: Sequence[Case]) -> Mapping[str, float]:
    return truths


def grounding_trials() -> Iterator[Trial]:
    """Explicit layouts of which a share is obeyed."""
    share, prior = 0.6, _sigmoid(1.5)
    yield Trial(
        name="T2I correctness, grounding 0.6",
        generator="render:?order_bias=1.5&grounding=0.6",
        rows=[_explicit(a, b) for a, b in _pairs()],
        truths=lambda cases: {
            "accuracy_aligned": 100 * (share + (1 - share) * prior),
            "accuracy_reverse": 100 * (share + (1 - share) * (1 - prior)),
        },
    )


def acting_trials() -> Iterator[Trial]:
    """Under-specified edits in which mostly the left one acts."""
    yield Trial(
        name="I2I homogenization, left bias 1.5",
        generator="render:?order_bias=1.5",
        rows=[
            I2IHomogenization(
                **_seed(a, b), action="lying down", instruction=f"One animal {ACTIONS[0]}."
            )
            for a, b in _pairs(ANIMALS)
        ],
        truths=lambda cases: {"signed_index": 100 * (2 * _sigmoid(1.5) - 1)},
    )


def binding_trials() -> Iterator[Trial]:
    """Edits in which the first-mentioned action goes to the left one now and then."""
    yield Trial(
        name="I2I correctness, binding bias 0.4",
        generator="render:?binding_bias=0.4",
        rows=[_bound(a, b) for a, b in _pairs(ANIMALS)],
        truths=lambda cases: {"accuracy_aligned": 100.0, "accuracy_reverse": 60.0},
    )


SPATIAL = 0.6
"""Share of stated relations that the renderer obeys; of the rest, half come out right."""
STATED = 100 * (SPATIAL + (1 - SPATIAL) / 2)
FEW = 20
"""Rows of these trials: a detector takes its time."""
STOUT = [name for name in ANIMALS if name not in ("elephant", "giraffe")]
"""Animals that are found when they are drawn small, too."""
RULE = "pse:pixels?rule.depth=ground"
"""A judge by rule that sees the pixels alone, in depth as well."""


def stated_trials() -> Iterator[Trial]:
    """One stated relation in the plane, of which a share is obeyed; all four relations in turn."""
    yield Trial(
        name="Spatial, grounding 0.6",
        generator=f"render:?grounding={SPATIAL}",
        rows=[_stated(number, *pair) for number, pair in enumerate(_few_pairs())],
        truths=lambda cases: {"accuracy": STATED},
        judge=RULE,
    )


def depth_trials() -> Iterator[Trial]:
    """One stated relation in depth, of which a share is obeyed."""
    yield Trial(
        name="Spatial 3D, grounding 0.6",
        generator=f"render:?grounding={SPATIAL}",
        rows=[_deep(number, *pair) for number, pair in enumerate(_few_pairs())],
        truths=lambda cases: {"accuracy": STATED},
        judge=RULE,
    )


def chain_trials() -> Iterator[Trial]:
    """Chains of relations, of which a share of the images obeys the whole."""
    yield Trial(
        name="Spatial multi, grounding 0.6",
        generator=f"render:?grounding={SPATIAL}",
        rows=[_chain(number, names) for number, names in enumerate(_triples())],
        truths=lambda cases: {"relations_right": STATED},
        judge=RULE,
    )


def beyond_trials() -> Iterator[Trial]:
    """Three entities in a row under an order bias: neighbors follow it, and so does tau."""
    bias = 1.0
    index = (4 * _sigmoid(bias) - 2 + 2 * _sigmoid(2 * bias) - 1) / 3
    yield Trial(
        name="Order beyond, order bias 1",
        generator=f"render:?order_bias={bias}",
        rows=[_listed(names) for names in _triples()],
        truths=lambda cases: {"order_index": 100 * index},
        judge=RULE,
    )


def scene_label(scene: Scene, claim: Stated) -> str:
    """What a rendered scene is for a claim: `holds`, `opposite`, or `invalid` where a thing is
    missing or doubled."""
    places = []
    for name in claim.order:
        there = [f for f in scene.figures if f.entity.lower() == name.lower()]
        if len(there) != 1:
            return INVALID
        places.append(there[0])
    first, second = places
    if claim.axis == "horizontal":
        before = first.x < second.x
    elif claim.axis == "vertical":
        before = first.base < second.base
    else:  # on one ground, whoever stands lower is nearer; what is hidden is behind
        before = (first.base > second.base) == (claim.axis == "depth")
    return "holds" if before else "opposite"


def _true_index(bias: float, cases: Sequence[Case]) -> Mapping[str, float]:
    signs = []
    for case in cases:
        # The prompt says which of the pair comes first.
        first, second = sorted(case.clusters[1:], key=case.prompt.lower().index)
        tilt = preference(first, PREFERENCES) - preference(second, PREFERENCES)
        signs.append(2 * _sigmoid(bias + tilt) - 1)
    return {"signed_index": 100 * sum(signs) / len(signs)}


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def _pairs(names: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Different pairs in random order of mention; things and animals where none are named."""
    names = names or [name for name in entity_names() if clothes(name) is None]
    return random.Random(1).sample(list(itertools.permutations(names, 2)), ROWS)


def _entity(name: str) -> Entity:
    return Entity(name=name, kind="animal", category="selftest", look=name)


def _neutral(first: str, second: str) -> T2IHomogenization:
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


def _explicit(left: str, right: str) -> T2ICorrectness:
    return T2ICorrectness(
        domain="selftest",
        family=f"{left}-{right}",
        left=left,
        right=right,
        context="side by side",
        frame="upright",
        basis="stated",
        fact="",
        aligned_prompt=f"A {left} on the left and a {right} on the right.",
        reverse_prompt=f"A {right} on the right and a {left} on the left.",
        standards=[],
        rationale="",
        tell_left=left,
        tell_right=right,
        mirror_safe=True,
        text_bound=False,
        scope="universal",
        review=[],
        provenance=_PROVENANCE.model_copy(update={"entry": f"{left}-{right}"}),
    )


def _related(number: int, first: str, second: str) -> SpatialUC:
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


def _stated(number: int, a: str, b: str) -> SpatialVISOR:
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


def _deep(number: int, a: str, b: str) -> Spatial3D:
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


def _chain(number: int, names: Sequence[str]) -> SpatialMulti:
    phrases = {"left_of": "to the left of", "above": "above", "right_of": "to the right of"}
    relations = [list(phrases)[number % 3], list(phrases)[(number + 1) % 3]]
    a, b, c = names
    first, second = (phrases[relation] for relation in relations)
    return SpatialMulti(
        objects=list(names),
        subjects=[a, b],
        relations=relations,
        references=[b, c],
        prompt=f"{_article(a)} {first} {_article(b)} and the {b} {second} {_article(c)}.",
        review=[],
        provenance=_PROVENANCE,
    )


def _listed(names: Sequence[str]) -> OrderBeyond:
    def prompt(named: Sequence[str]) -> str:
        return "One {}, one {}, and one {}.".format(*named)

    return OrderBeyond(
        setting="three_homogenization",
        axis="horizontal",
        entities=list(names),
        looks=list(names),
        prompt=prompt(names),
        swapped_prompt=prompt(names[::-1]),
        expected=[],
        standards=[],
        review=[],
        provenance=_PROVENANCE,
    )


def _few_pairs() -> list[tuple[str, ...]]:
    return random.Random(2).sample(list(itertools.permutations(STOUT, 2)), FEW)


def _triples() -> list[tuple[str, ...]]:
    return random.Random(2).sample(list(itertools.permutations(STOUT, 3)), FEW)


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _seed(left: str, right: str) -> dict[str, Any]:
    prompt = f"A {left} on the left and a {right} on the right."
    image = encode_png(RenderGenerator().generate(ImageRequest(prompt, 0)))
    return {
        **_PAIR,
        "left": _entity(left),
        "right": _entity(right),
        "seed_prompt": prompt,
        "seed_image": EncodedImage(bytes=image, path="seed.png"),
        "image_sha256": hashlib.sha256(image).hexdigest(),
    }


def _bound(left: str, right: str) -> I2ICorrectness:
    does = {left: ACTIONS[0], right: ACTIONS[1]}
    return I2ICorrectness(
        **_seed(left, right),
        relation="independent",
        agent="both",
        left_expected=does[left],
        right_expected=does[right],
        aligned_instruction=f"The {left} {does[left]} and the {right} {does[right]}.",
        reverse_instruction=f"The {right} {does[right]} and the {left} {does[left]}.",
    )
