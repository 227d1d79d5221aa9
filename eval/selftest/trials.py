"""Known truth: what the renderer is set to do with rows that are made for it.

The self-test draws the trials of each suite in `TRIALS`, judges them, and must recover the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...scenes.biases import preference
from ...scenes.scene import Scene
from ...schema import I2IHomogenization, Row
from ..core import Case, Generator, ImageRequest
from ..generators.render import GRAIN, RenderGenerator
from ..suites.correctness import ACTIONS
from . import rows

METHOD_ROWS = 40
"""Rows of each trial of a method."""
PREFERENCES = 0.8
"""Standard deviation of each entity's own logit of standing left."""


@dataclass(frozen=True)
class Trial:
    """A generator whose truth is known, on rows made for it: what the self-test runs."""

    name: str
    generator: str
    """Spec of the renderer with its biases set."""
    rows: Sequence[Row]
    truths: Callable[[Sequence[Case]], Mapping[str, float]]
    """True value of each score that is checked, percent."""
    judge: str = "pixels"
    """Spec of a judge that can answer the suite's questions from the pixels."""
    methods: tuple[str, ...] = ()
    """Specs of methods around the generator; `{weights}` stands for a folder of its weights."""
    weights: str = ""
    """Weights of a tuned renderer, as JSON; empty for no tuning."""
    grain: float | None = None
    """Standard deviation of every image's noise, levels of 255; None if it is not checked."""
    over_time: tuple[str, ...] = ()
    """Scores over time of clips: labels of whole clips can't correct them, so they are checked only
    with the judge without faults."""


def homogenization_trials() -> Iterator[Trial]:
    """Order biases 0, 1 and 2.5, with preferences of the entities and faults."""
    for bias in (0.0, 1.0, 2.5):
        yield Trial(
            name=f"T2I homogenization, order bias {bias:g}",
            generator=f"render:?order_bias={bias}&preference_sd={PREFERENCES}&missing=0.05&vertical=0.05",
            rows=[rows.neutral(a, b) for a, b in rows.pairs()],
            truths=partial(_true_index, bias),
        )


def clip_trials() -> Iterator[Trial]:
    """Clips, some of which change sides before the second of three judged frames."""
    bias, share, swaps_at = 1.5, 0.3, 0.25
    first = _sigmoid(bias)
    last = first * (1 - share) + (1 - first) * share  # so are two of three frames
    yield Trial(
        name=f"T2I homogenization, {share:.0%} of clips change sides",
        generator=f"render:?order_bias={bias}&video=3&swaps_at={swaps_at}&swaps={share}",
        rows=[rows.neutral(a, b) for a, b in rows.few_pairs()],
        truths=lambda cases: {
            "signed_index": 100 * (2 * last - 1),
            "order_first_frame": 100 * first,
            "order_last_frame": 100 * last,
            "order_changed": 100 * share,
        },
        over_time=("order_first_frame", "order_last_frame", "order_changed"),
    )


def clip_scenes(generator: Generator, case: Case, frames: Iterable[int]) -> list[Scene]:
    """Returns the scenes of some frames of a case's clip; its file holds only pixels."""
    assert isinstance(generator, RenderGenerator)
    scenes = generator.scenes(ImageRequest(case.prompt, case.seed, fields=case.fields))
    return [scenes[number] for number in frames]


def method_trials() -> Iterator[Trial]:
    """Methods against an order bias of 2: switched prompts, and weights that halve it."""
    bias, decides = 2.0, 3
    setup: dict[str, Any] = {
        "generator": f"render:?order_bias={bias}&preference_sd={PREFERENCES}&decides={decides}",
        "rows": [rows.neutral(a, b) for a, b in rows.pairs()[:METHOD_ROWS]],
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
            rows=[rows.related(n, a, b) for n, (a, b) in enumerate(rows.pairs()[:METHOD_ROWS])],
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
        rows=[rows.explicit(a, b) for a, b in rows.pairs()[:METHOD_ROWS]],
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
        rows=[rows.explicit(a, b) for a, b in rows.pairs()],
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
                **rows.seed(a, b), action="lying down", instruction=f"One animal {ACTIONS[0]}."
            )
            for a, b in rows.pairs(rows.ANIMALS)
        ],
        truths=lambda cases: {"signed_index": 100 * (2 * _sigmoid(1.5) - 1)},
    )


def binding_trials() -> Iterator[Trial]:
    """Edits in which the first-mentioned action goes to the left one now and then."""
    yield Trial(
        name="I2I correctness, binding bias 0.4",
        generator="render:?binding_bias=0.4",
        rows=[rows.bound(a, b) for a, b in rows.pairs(rows.ANIMALS)],
        truths=lambda cases: {"accuracy_aligned": 100.0, "accuracy_reverse": 60.0},
    )


SPATIAL = 0.6
"""Share of stated relations that the renderer obeys; of the rest, half come out right."""
STATED = 100 * (SPATIAL + (1 - SPATIAL) / 2)
RULE = "pse:pixels?rule.depth=ground"
"""A judge by rule that sees the pixels alone, in depth as well."""


def stated_trials() -> Iterator[Trial]:
    """One stated relation in the plane, of which a share is obeyed; all four relations in turn."""
    yield _obeyed("Spatial", rows.stated, rows.few_pairs(), "accuracy")


def depth_trials() -> Iterator[Trial]:
    """One stated relation in depth, of which a share is obeyed."""
    yield _obeyed("Spatial 3D", rows.deep, rows.few_pairs(), "accuracy")


def chain_trials() -> Iterator[Trial]:
    """Chains of relations, of which a share of the images obeys the whole."""
    yield _obeyed("Spatial multi", rows.chain, rows.triples(), "relations_right")


def _obeyed(
    name: str,
    row: Callable[[int, Sequence[str]], Row],
    things: Sequence[Sequence[str]],
    score: str,
) -> Trial:
    return Trial(
        name=f"{name}, grounding {SPATIAL}",
        generator=f"render:?grounding={SPATIAL}",
        rows=[row(number, entities) for number, entities in enumerate(things)],
        truths=lambda cases: {score: STATED},
        judge=RULE,
    )


def beyond_trials() -> Iterator[Trial]:
    """Three entities in a row under an order bias: neighbors follow it, and so does tau."""
    bias = 1.0
    index = (4 * _sigmoid(bias) - 2 + 2 * _sigmoid(2 * bias) - 1) / 3
    yield Trial(
        name="Order beyond, order bias 1",
        generator=f"render:?order_bias={bias}",
        rows=[rows.listed(entities) for entities in rows.triples()],
        truths=lambda cases: {"order_index": 100 * index},
        judge=RULE,
    )


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


TRIALS: Mapping[str, Sequence[Callable[[], Iterator[Trial]]]] = {
    "t2i_homogenization": (homogenization_trials, clip_trials, method_trials),
    "t2i_correctness": (grounding_trials, choice_trials),
    "i2i_homogenization": (acting_trials,),
    "i2i_correctness": (binding_trials,),
    "spatial_uc": (guidance_trials,),
    "spatial_visor": (stated_trials,),
    "spatial_multi": (chain_trials,),
    "spatial_3d": (depth_trials,),
    "order_beyond": (beyond_trials,),
}
"""Suite -> its trials, in the order in which they run; a suite without an entry has none."""


def trials_of(suite: str) -> Iterator[Trial]:
    """The trials of a suite."""
    for trials in TRIALS.get(suite, ()):
        yield from trials()
