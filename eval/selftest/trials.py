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
from ..core import ORIGINAL, Case, Generator, ImageRequest, Outcome, Verdict
from ..engine.data import row_fields
from ..generators import open_generator
from ..generators.render import GRAIN, RenderGenerator
from ..suites import open_suite
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
    """True value of each score that is checked, in its unit."""
    judge: str = "pixels"
    """Spec of a judge that can answer the suite's questions from the pixels."""
    methods: tuple[str, ...] = ()
    """Specs of methods around the generator; `{weights}` stands for a folder of its weights."""
    weights: str = ""
    """Weights of a tuned renderer, as JSON; empty for no tuning."""
    grain: float | None = None
    """Standard deviation of every image's noise, levels of 255; None if it is not checked."""
    uncorrected: tuple[str, ...] = ()
    """Scores that labels can't correct, over time of clips and of worlds: they are checked only
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
        uncorrected=("order_first_frame", "order_last_frame", "order_changed"),
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
        # A typical sample: with seed 1, 58 % are drawn right, where 67.8 % of 1,000 pairs are.
        rows=[rows.explicit(a, b) for a, b in rows.pairs(seed=5)],
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


def distance_trials() -> Iterator[Trial]:
    """Pairs near each other or far apart, of which a share is obeyed."""
    yield _obeyed("Spatial distance", rows.apart, rows.few_pairs(), "accuracy")


def clause_trials() -> Iterator[Trial]:
    """One thing with a relation to two others, of which a share of the images obeys both."""
    yield _obeyed("Spatial clauses", rows.clauses, rows.triples(), "relations_right")


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


LOCK_IN, LITERAL, PARTIAL, OVER_APPLICATION, ABSENT = 0.3, 0.25, 0.2, 0.25, 0.1
WORLDS = (
    f"render:?lock_in={LOCK_IN}&literal={LITERAL}&partial={PARTIAL}"
    f"&over_application={OVER_APPLICATION}&missing={ABSENT}"
)
"""A generator that is often locked in, more so where the outcome is not told."""
LOCKED = {"L2": LOCK_IN, "L3": 1 - (1 - LOCK_IN) * (1 - LITERAL)}
"""Level -> share of its scenes that show the world as we know it, of those that show any."""


def world_trials() -> Iterator[Trial]:
    """Three levels of drawn worlds: gated scores and their ratios."""
    names = ("score_L1", "score_L2", "score_L3", "prr", "rrr", "gate_passed")
    yield Trial(
        name="Counterfactual, lock-in 0.3",
        generator=WORLDS,
        rows=[row for group in rows.worlds() for row in rows.world_levels(group)],
        truths=true_world_scores,
        judge="scene",
        uncorrected=names,
    )


def described_trials() -> Iterator[Trial]:
    """Drawn worlds whose outcome is named or described, which changes nothing here."""
    yield Trial(
        name="Denominalized, lock-in 0.3",
        generator=WORLDS,
        rows=[rows.described(group) for group in rows.worlds()[: rows.DESCRIBED]],
        truths=true_described_scores,
        judge="scene",
        uncorrected=("score_plain", "score_named", "score_described", "denominalization_gain"),
    )


def altered_trials() -> Iterator[Trial]:
    """Four levels of drawn worlds, asked for both."""
    yield Trial(
        name="Altered worlds, lock-in 0.3",
        generator=WORLDS,
        rows=[row for group in rows.worlds() for row in rows.altered_levels(group)],
        truths=partial(_always, true_worlds()),
        judge="scene",
        uncorrected=tuple(true_worlds()),
    )


def drawn_pair_trials() -> Iterator[Trial]:
    """Constrained pairs of the bank, whose layout by fact is obeyed now and then."""
    share, prior = 0.6, _sigmoid(1.5)
    yield Trial(
        name="T2I correctness, drawn pairs",
        generator=f"render:?order_bias=1.5&grounding={share}&missing=0.1",
        rows=rows.constrained(),
        truths=lambda cases: {
            "accuracy_aligned": 100 * (share + (1 - share) * prior),
            "accuracy_reverse": 100 * (share + (1 - share) * (1 - prior)),
        },
        judge="scene",
    )


def true_worlds() -> dict[str, float]:
    """Scores of `altered_worlds` by the settings of `WORLDS`."""
    follows = {level: (1 - locked) * (1 - PARTIAL) for level, locked in LOCKED.items()}
    both = sum((1 - locked) * PARTIAL for locked in LOCKED.values()) / len(LOCKED)
    return {
        "presence": 1 - ABSENT,
        "knows_real": 1.0,
        "lock_in": sum(LOCKED.values()) / len(LOCKED),
        "compliance": sum(follows.values()) / len(follows),
        "compliance_L2": follows["L2"],
        "compliance_L2_unconditional": follows["L2"] * (1 - ABSENT),
        "confusion": both,
        "over_application": OVER_APPLICATION,
    }


def true_world_scores(cases: Sequence[Case]) -> dict[str, float]:
    """Scores of `counterfactual` by the settings of `WORLDS` and the weights of the questions."""
    plain = 1 - ABSENT
    l2, l3 = (plain * _true_altered(cases, level, LOCKED[level]) for level in ("L2", "L3"))
    ratios = {"prr": l2 / math.sqrt(plain), "rrr": l3 / math.sqrt(l2)}
    return {"score_L1": plain, "score_L2": l2, "score_L3": l3, **ratios, "gate_passed": plain}


def true_described_scores(cases: Sequence[Case]) -> dict[str, float]:
    """Scores of `counterfactual_denominalized` by the settings of `WORLDS`."""
    plain = 1 - ABSENT
    named, described = (
        plain * _true_altered(cases, variant, LOCK_IN) for variant in ("named", "described")
    )
    gain = {"denominalization_gain": described - named}
    return {"score_plain": plain, "score_named": named, "score_described": described, **gain}


def _true_altered(cases: Sequence[Case], variant: str, locked: float) -> float:
    """Mean S of altered scenes of a variant whose plain scene passes the gate."""
    scores = []
    for case in cases:
        if case.variant == variant:
            sound, point, logic = case.weights.values()
            total = sound + point + logic
            follows = PARTIAL * (sound + point) / total + 1 - PARTIAL
            scores.append((1 - ABSENT) * (locked * sound / total + (1 - locked) * follows))
    return sum(scores) / len(scores)


def true_outcomes(suite_name: str, trial: Trial, shift: int = 0) -> list[Outcome]:
    """Outcomes of a trial of the renderer by its scenes alone: no pixel is drawn.

    shift: added to every seed, for another sample of the same rows. What a judge without faults
    would say, in milliseconds an image.
    """
    generator, suite = open_generator(trial.generator), open_suite(suite_name)
    assert isinstance(generator, RenderGenerator)
    outcomes = []
    for row in trial.rows:
        fields = row_fields(row)
        for case in suite.cases(row, 1):
            request = ImageRequest(case.prompt, case.seed + shift, fields=fields)
            labels = suite.truth(row, case, generator.scene(request)).items()
            verdicts = {(question, ORIGINAL): Verdict(label) for question, label in labels}
            outcomes.append(Outcome(case, verdicts))
    return outcomes


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
    "t2i_correctness": (grounding_trials, choice_trials, drawn_pair_trials),
    "i2i_homogenization": (acting_trials,),
    "i2i_correctness": (binding_trials,),
    "spatial_uc": (guidance_trials,),
    "spatial_visor": (stated_trials,),
    "spatial_multi": (chain_trials,),
    "spatial_3d": (depth_trials,),
    "spatial_distance": (distance_trials,),
    "spatial_clauses": (clause_trials,),
    "order_beyond": (beyond_trials,),
    "counterfactual": (world_trials,),
    "counterfactual_denominalized": (described_trials,),
    "altered_worlds": (altered_trials,),
}
"""Suite -> its trials, in the order in which they run; a suite without an entry has none."""


def trials_of(suite: str) -> Iterator[Trial]:
    """The trials of a suite."""
    for trials in TRIALS.get(suite, ()):
        yield from trials()
