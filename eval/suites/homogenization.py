"""`t2i_homogenization`, `i2i_homogenization`: how strong is the prior, and whose is it? (OTS-Bench)

A sign is +1 where the image follows the prior (first-mentioned left; left one acts), -1 where it
does the opposite, NaN where it can't be told.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from ...parsing import parse, read_rows
from ...scenes.scene import Scene
from ...schema import I2IHomogenization, T2IHomogenization
from ..checkpoints.shipped import organism_prompts
from ..core import INVALID, ORIGINAL, PROBES, Case, Cluster, Outcome, Question, Score
from ..questions.asking import Alternative, Subject, ask_which
from ..stats.bootstrap import Array, first_places, numbered
from ..stats.comparison import sign_flip
from ..stats.intervals import NOTHING, folded
from ..stats.spread import mean_product, spread
from .base import Headline, Item, Items, Measure, PaperSuite, R, about_pair, case_items, each_once
from .columns import Outcomes, cluster_numbers, pair_numbers, row_numbers, variants_of
from .scoring import (
    in_groups,
    magnitude,
    mean_score,
    mean_worth,
    order_log_odds,
    statistics,
    valid_score,
    variant_scores,
)
from .worths import Worth, values_of

FIRST = Worth({"first_left": 1.0, "first_right": -1.0}, prior="first_left", unscored=(INVALID,))
ACTS = Worth({"left_acts": 1.0, "right_acts": -1.0}, prior="left_acts", unscored=(INVALID,))
PLACES = ("in a park", "on a beach", "in a garden", "on a lawn", "in a courtyard", "on a square")
"""Scenes that any two entities may be in and that say nothing of who stands where."""
AVERAGED = {
    "mirror": (ORIGINAL, "mirror"),
    "swap": (ORIGINAL, "swap"),
    "probes": PROBES,
}
"""Ending of a score -> probes that it averages over: the original and a control, or all four."""


def order_and_entity_effect(means: Array) -> Array:
    """Shape (..., 2) of mean signs for A-B and B-A prompts -> order and entity effect, same shape.

    With x the mean sign of the entity mentioned first: order = (x_AB + x_BA) / 2 is what mention
    order does whatever is mentioned; entity = (x_AB - x_BA) / 2 is what A does wherever it stands.
    Both in [-1, 1].
    """
    ab, ba = means[..., 0], means[..., 1]
    return np.stack([(ab + ba) / 2, (ab - ba) / 2], axis=-1)


def disattenuated(columns: Array, outcomes: Sequence[Outcome], group: str) -> Score:
    """The signed index without the pull of a judge's independent errors toward 0.

    columns: shape (n, 4), the signs of the four probes; NaN where one is missing. An answer is
    a + b t on average, with t the true sign; a is the judge's preference, which cancels over the
    probes. So their average is b times the truth, and the mean product of two answers, less what
    the preferences give, is b^2 (Spearman's correction, with covariances in place of correlations).
    """
    k = columns.shape[1]
    pairs = k * (k - 1) / 2
    total, squares = columns.sum(axis=1), (columns**2).sum(axis=1)
    products = (total**2 - squares) / (2 * pairs)
    gap = np.where(np.isnan(total), np.nan, 0.0)

    def reach(means: Array) -> tuple[Array, Array]:
        signs = means[..., :k]
        index = signs.mean(axis=-1)
        preferences = (signs.sum(axis=-1) ** 2 - (signs**2).sum(axis=-1)) / (2 * pairs)
        return index, means[..., k] - preferences + index**2

    def statistic(means: Array) -> Array:
        index, squared = reach(means)
        # No index exceeds 1, so what comes through is at least the index that is seen.
        through = np.sqrt(np.maximum(squared, np.maximum(index**2, 1e-12)))
        return np.asarray((index / through)[..., None])

    values = np.column_stack([columns + gap[:, None], products])
    n = int((~np.isnan(total)).sum())
    (score,) = statistics(
        ("signed_index_disattenuated",),
        values,
        cluster_numbers(outcomes),
        ends=(-1, 1),
        statistic=statistic,
        counts=[n],
        group=group,
        excluded={"not_judged_in_all_probes": len(columns) - n},
    )
    if n and reach(np.nanmean(values, axis=0))[1] > 0:
        return score
    return replace(score, value=math.nan, interval=NOTHING)


def order_effect(means: Array) -> Array:
    """Shape (..., 2) of mean signs in either order of mention -> (..., 1), their mean."""
    return order_and_entity_effect(means)[..., :1]


def order_items(
    sign: Callable[[Outcome], float], variants: Sequence[str]
) -> Callable[[Sequence[Outcome]], Items]:
    """Items of a headline about mention order: the signs of a row and seed in both orders."""

    def items(outcomes: Sequence[Outcome]) -> Items:
        signs: dict[tuple[str, int], list[float]] = {}
        clusters: dict[tuple[str, int], Cluster] = {}
        for outcome in outcomes:
            key = outcome.case.row, outcome.case.number
            clusters[key] = outcome.case.cluster
            of_orders = signs.setdefault(key, [math.nan] * len(variants))
            of_orders[variants.index(outcome.case.variant)] = sign(outcome)
        return {key: Item(tuple(of_orders), clusters[key]) for key, of_orders in signs.items()}

    return items


@dataclass(frozen=True)
class PromptSigns:
    """Signs of the images of each prompt; arrays of shape (rows, variants)."""

    totals: Array
    """Sum of the signs."""
    counts: Array
    """Number of the images with a sign."""
    clusters: NDArray[Any]
    """Cluster of each row: shape (rows,) or (rows, 2)."""
    planned: int
    """Largest number of images of a prompt, with a sign or not."""

    @property
    def means(self) -> Array:
        """Mean sign; NaN without an image."""
        return np.where(self.counts > 0, self.totals / np.maximum(self.counts, 1), np.nan)

    @property
    def products(self) -> Array:
        """Mean product of the signs of two images, an unbiased square of their mean; NaN for fewer
        than two images."""
        return mean_product(self.totals, self.counts, self.counts)


def prompt_signs(outcomes: Sequence[Outcome], signs: Array, variants: Sequence[str]) -> PromptSigns:
    """Sums the signs of some outcomes, shape (n,), by row and variant."""
    row = numbered(row_numbers(outcomes))
    first = first_places(row)
    place = variants_of(outcomes).values(variants.index).astype(int)
    cell = row * len(variants) + place
    valid, shape = ~np.isnan(signs), (len(first), len(variants))
    size = len(first) * len(variants)
    return PromptSigns(
        totals=np.bincount(cell[valid], signs[valid], size).reshape(shape).astype(float),
        counts=np.bincount(cell[valid], minlength=size).reshape(shape).astype(float),
        clusters=cluster_numbers(outcomes)[first] if len(first) else np.zeros(0, dtype=int),
        planned=int(np.bincount(cell, minlength=1).max()),
    )


def _few_seeds(usable: NDArray[np.bool_]) -> dict[str, int]:
    """Count of what lacks two valid seeds, if any does."""
    lacking = int((~usable).sum())
    return {"fewer_than_two_valid_seeds": lacking} if lacking else {}


class Homogenization(PaperSuite[R]):
    """One question whose labels are worth +1 with the prior and -1 against it."""

    meanings = {
        "hom": "How far the prior decides, 0 to 100: 100 |N_L - N_R| / (N_L + N_R) (OTS-Bench, "
        "Eq. 2). An absolute value, so chance alone gives more than 0. p: share of sign "
        "patterns over pairs that give as much (sign-flip test).",
        "signed_index": "Hom with its sign: +100 where every image follows the prior, -100 where "
        "every image does the opposite.",
        "valid": "Share of judged images that show the two subjects as asked.",
        "seed_agreement": "Share of two seeds of one prompt that give the same layout; 100 for a "
        "layout that the prompt fixes. By chance it is what Hom alone gives.",
        "signed_index_spread": "Standard deviation of the signed index between rows, without what "
        "few seeds add to it: 0 if all rows are alike, up to 100.",
        "signed_index_mirror_averaged": "Signed index averaged over each image and its mirror "
        "image: the judge's preference for a side cancels.",
        "signed_index_swap_averaged": "Signed index averaged over both orders of naming the "
        "subjects: the judge's preference for a name cancels.",
        "signed_index_probes_averaged": "Signed index averaged over the full 2 x 2 of mirrored "
        "image and exchanged names. The judge's errors still pull it toward 0.",
        "signed_index_disattenuated": "That average divided by the share of the truth that comes "
        "through the judge's errors, which the agreement of the four answers shows. It needs no "
        "labels, but errors on an image's four answers that are independent; else it is too small.",
    }

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        for question in self.worths:
            yield self.measure("signed_index", outcomes, question)

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, self.bias_scores)

    def bias_scores(self, outcomes: Sequence[Outcome], group: str) -> list[Score]:
        """Hom, the signed index behind it, and how many images were valid."""
        ((question, worth),) = self.worths.items()
        index = mean_worth("signed_index", outcomes, question, worth, group=group)
        signs, pairs = values_of(outcomes, question, worth), pair_numbers(outcomes)
        test = sign_flip(signs, pairs)
        hom = replace(
            index,
            name="hom",
            value=abs(index.value),
            interval=folded(index.interval),
            null=100 * test.null,
            these_items=folded(index.these_items),
            bounds=folded(index.bounds),
            p_value=test.p_value,
        )
        return [
            hom,
            index,
            valid_score("valid", outcomes, question, worth, group),
            *self.between_seeds(prompt_signs(outcomes, signs, self.variants), index.value, group),
            *self._probed(outcomes, group),
        ]

    def between_seeds(self, prompts: PromptSigns, index: float, group: str) -> Iterator[Score]:
        """How alike the seeds of a prompt are, and how much pairs differ; empty for one seed.

        index: the signed index, -100 to 100.
        """
        if prompts.planned < 2:
            return
        clusters = np.repeat(prompts.clusters, prompts.totals.shape[1], axis=0)
        alike = (1 + prompts.products.ravel()) / 2
        several = ~np.isnan(alike)
        (agreement,) = statistics(
            ("seed_agreement",),
            alike[:, None],
            clusters,
            ends=(0, 1),
            counts=[int(several.sum())],
            group=group,
            excluded=_few_seeds(several),
        )
        yield replace(agreement, null=50 * (1 + (index / 100) ** 2))
        for name, means, squares in self.effects(prompts):
            usable = ~np.isnan(squares)
            estimate = spread(squares[usable], means[usable], prompts.clusters[usable])
            yield Score.of(
                estimate.scaled(100), name=name, unit="%", group=group, excluded=_few_seeds(usable)
            )

    def effects(self, prompts: PromptSigns) -> Iterator[tuple[str, Array, Array]]:
        """Name of a spread, and estimates of each row's effect and of its square."""
        yield "signed_index_spread", prompts.means[:, 0], prompts.products[:, 0]

    def _probed(self, outcomes: Sequence[Outcome], group: str) -> Iterator[Score]:
        """The signed index averaged over probes: a judge's own bias cancels."""
        ((question, worth),) = self.worths.items()
        asked = Outcomes.of(outcomes).texts(
            ("probes", question),
            lambda o: " ".join(probe for name, probe in o.verdicts if name == question),
        )
        judged = {probe for probes in asked.counts() for probe in probes.split()}
        for name, probes in AVERAGED.items():
            if not judged.issuperset(probes):
                continue
            columns = np.stack([values_of(outcomes, question, worth, p) for p in probes], axis=1)
            complete = ~np.isnan(columns).any(axis=1)
            signs = np.where(complete, columns.mean(axis=1), np.nan)
            yield mean_score(
                f"signed_index_{name}_averaged",
                signs,
                outcomes,
                ends=worth.ends,
                group=group,
                excluded={"not_judged_in_all_probes": int((~complete).sum())},
            )
            if len(probes) == len(PROBES):
                yield disattenuated(columns, outcomes, group)


class T2IHomogenizationSuite(Homogenization[T2IHomogenization]):
    """Does the first-mentioned entity stand on the left?

    Both mention orders of every prompt, so that order and entities come apart.
    """

    name = "t2i_homogenization"
    population = "entities"
    variants = ("plain", "swapped")
    prompts = ("order",)
    worths = {"order": FIRST}
    headline = Headline(
        score="order_bias",
        better="lower",
        meaning="How far mention order decides which entity stands on the left; 0 without a prior. "
        "The tick is what chance alone gives.",
        items=order_items(lambda outcome: FIRST.of(outcome.verdict("order")), ("plain", "swapped")),
        ends=FIRST.ends,
        statistic=order_effect,
        is_size=True,
        broken_down=("signed_index",),
        checks=("hom", "order_effect", "entity_effect", "valid"),
    )
    meanings = {
        **{k: v for k, v in Homogenization.meanings.items() if k != "signed_index_spread"},
        "order_bias": "Size of the order effect, 0 to 100: generators rank by it. Both orders "
        "weigh the same. Hom weighs images, so that it also contains what the entities do if one "
        "order has more valid images. Chance level and p: as for Hom.",
        "order_effect": "What mention order does, whatever is mentioned: the mean signed index of "
        "a pair's two orders.",
        "entity_effect": "What the entities do, in whatever order they are mentioned: half the "
        "difference of a pair's two orders.",
        "order_log_odds": "The same in log odds within each pair: b where the first-mentioned is "
        "on the left with odds of exp(b) by mention order alone, however strong the entities' "
        "preferences are. n: pairs with images that follow mention order in both orders, or in "
        "neither.",
        "order_effect_spread": "Standard deviation of the order effect between pairs, without what "
        "few seeds add to it. As large as 100 where each pair has a side of its own.",
        "entity_effect_spread": "The same of the entity effect: how strong preferences are.",
    }

    @classmethod
    def read_file(cls, text: str) -> list[T2IHomogenization] | None:
        """Rows of a JSON Lines file, such as `organism train` writes, or of a shipped one."""
        path = organism_prompts(text) or Path(text)
        if path.suffix != ".jsonl" or not path.is_file():
            return None
        rows = ((line, parse(T2IHomogenization, row, path, line)) for line, row in read_rows(path))
        return each_once(rows, path)

    @classmethod
    def at_place(cls, row: T2IHomogenization) -> T2IHomogenization:
        """The row with one of `PLACES` at the end of its prompts; the neutral one keeps it:
        "Two people in a park." (OTS-Bench's prompts that are switched). A row with actions stays as
        it is: they are its scene, and no place suits all of them."""
        if row.first_action or row.second_action:
            return row
        pair = "/".join(sorted((row.first.name, row.second.name)))
        place = PLACES[hashlib.sha256(pair.encode()).digest()[0] % len(PLACES)]
        prompt, swapped, neutral = (
            f"{text.removesuffix('.')} {place}."
            for text in (row.prompt, row.swapped_prompt, row.neutral_prompt)
        )
        return T2IHomogenization(
            pair_type=row.pair_type,
            first=row.first,
            second=row.second,
            first_action="",
            second_action="",
            prompt=prompt,
            swapped_prompt=swapped,
            neutral_prompt=neutral,
            review=row.review,
            provenance=row.provenance,
            license=row.license,
        )

    def cases(self, row: T2IHomogenization, seeds: int) -> Iterator[Case]:
        prompts = {"plain": row.prompt, "swapped": row.swapped_prompt}
        return self.seeded(row, seeds, prompts, *about_pair(row.pair_type, row.first, row.second))

    def questions(
        self, row: T2IHomogenization, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        # Labels speak of the order of mention, which the variant decides.
        labels = ("first_left", "first_right")
        alternative = Alternative(
            "order",
            Subject(row.first.name, row.first.look, row.first_action),
            Subject(row.second.name, row.second.look, row.second_action),
            labels if case.variant == "plain" else labels[::-1],
            prior="first_left",
            by_paper=self.by_paper,
        )
        if self.by_paper and case.variant != "plain":  # there, A is the first-mentioned
            first, second = alternative.second, alternative.first
            alternative = replace(alternative, first=first, second=second, labels=labels)
        return [ask_which(alternative, case, probe, images)]

    def bias_scores(self, outcomes: Sequence[Outcome], group: str) -> list[Score]:
        """Scores of the base class, the effect of mention order and the effect of the entities."""
        effect_names = ("order_effect", "entity_effect")
        effects = variant_scores(
            effect_names,
            outcomes,
            question="order",
            worth=FIRST,
            variants=self.variants,
            statistic=order_and_entity_effect,
            group=group,
        )
        log_odds = order_log_odds(
            values_of(outcomes, "order", FIRST),
            variants_of(outcomes).are("swapped"),
            row_numbers(outcomes),
            outcomes,
            group,
        )
        bias = magnitude("order_bias", effects[0], values_of(outcomes, "order", FIRST), outcomes)
        return [bias, *super().bias_scores(outcomes, group), *effects, log_odds]

    def effects(self, prompts: PromptSigns) -> Iterator[tuple[str, Array, Array]]:
        (ab, ba), (ab_squared, ba_squared) = prompts.means.T, prompts.products.T
        for name, sign in (("order_effect_spread", 1), ("entity_effect_spread", -1)):
            # Images of the two orders are different images: their product needs no correction.
            yield name, (ab + sign * ba) / 2, (ab_squared + ba_squared + 2 * sign * ab * ba) / 4

    def truth(self, row: T2IHomogenization, case: Case, scene: Scene) -> Mapping[str, str]:
        entities = (row.first.name, row.second.name)
        first, second = entities if case.variant == "plain" else entities[::-1]
        if scene.faults:
            return {"order": INVALID}
        order = scene.left_to_right()
        ahead = order.index(first) < order.index(second)
        return {"order": "first_left" if ahead else "first_right"}


class I2IHomogenizationSuite(Homogenization[I2IHomogenization]):
    """Is it always the left one that acts? One under-specified edit of every seed image."""

    name = "i2i_homogenization"
    population = "entities"
    variants = ("edit",)
    prompts = ("actor",)
    worths = {"actor": ACTS}
    headline = Headline(
        score="hom",
        better="lower",
        meaning="How far it is always the same side that acts; 0 without a prior. The tick is what "
        "chance alone gives.",
        items=case_items("actor", ACTS),
        ends=ACTS.ends,
        is_size=True,
        broken_down=("signed_index",),
        checks=("valid", "seed_agreement"),
    )

    def cases(self, row: I2IHomogenization, seeds: int) -> Iterator[Case]:
        pair = about_pair(row.pair_type, row.left, row.right)
        return self.seeded(row, seeds, {"edit": row.instruction}, *pair)

    def questions(
        self, row: I2IHomogenization, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        alternative = Alternative(
            "actor",
            Subject(row.left.name, row.left.look, row.instruction),
            Subject(row.right.name, row.right.look, row.instruction),
            ("left_acts", "right_acts"),
            prior="left_acts",
            statement="{a} does, {b} does not",
            values={"instruction": row.instruction},
            by_paper=self.by_paper,
        )
        return [ask_which(alternative, case, probe, images)]

    def truth(self, row: I2IHomogenization, case: Case, scene: Scene) -> Mapping[str, str]:
        return {"actor": "left_acts" if scene.pose_of(row.left.name) else "right_acts"}
