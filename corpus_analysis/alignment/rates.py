"""Rates at which the first-mentioned thing is on the left, with intervals, controls, funnel."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self
from urllib.parse import urlsplit

import numpy as np

from ...eval.core import FAILURES, PROBES
from ...eval.stats.bootstrap import Array
from ...eval.stats.clusters import cluster_interval
from ...eval.stats.intervals import NOTHING, Interval, wilson
from ..captions.ontology import Ontology, distinct
from .layout_judge import ALIGNED, ASPECTS, GATE_PROBES, REVERSED, Answers

SIDES = frozenset(("left", "right"))
"""Words by which a caption states the order itself; such pairs are also reported separately."""

PUBLISHED = {"LAION-2B-en-aesthetic": (0.892, 23_020), "DataComp-Large": (0.872, 10_150)}
"""The paper's rates and numbers of pairs (OTS-Bench, Table 5)."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Share of pairs whose first-mentioned thing is on the left, with its sampling uncertainty."""

    aligned: int
    """Pairs whose first-mentioned thing is on the left."""
    n: int
    """Pairs whose order is known."""
    rate: float
    """`aligned / n`; NaN if n is 0."""
    wilson: Interval
    """95 % Wilson interval, as if pairs were independent."""
    by_pair: Interval
    """95 % interval over entity pairs; NaN below two."""
    by_host: Interval
    """95 % interval over image hosts, an image without an address for its own; NaN below two."""
    by_image: Interval
    """95 % interval over images, as an image may have several pairs; NaN below two."""

    @classmethod
    def of(
        cls,
        sides: Array,
        interval: Callable[[Array, Sequence[str]], Interval],
        *,
        entities: Sequence[str],
        images: Sequence[str],
        hosts: Sequence[str] = (),
        counts: Mapping[str, int] | None = None,
    ) -> Self:
        """Computes the rate of pairs with these sides, 1 for aligned and 0 for reversed.

        interval: of the mean of values in clusters. hosts: empty for images without addresses.
        counts: other fields of a subclass.
        """
        aligned, n = int(sides.sum()), len(sides)
        by_image = interval(sides, images)
        return cls(
            aligned=aligned,
            n=n,
            rate=aligned / n if n else math.nan,
            wilson=wilson(aligned, n),
            by_pair=interval(sides, entities),
            by_host=interval(sides, hosts) if hosts else by_image,
            by_image=by_image,
            **(counts or {}),
        )


@dataclass(frozen=True)
class JudgedPair:
    """A valid pair with its answers."""

    pair: dict[str, Any]
    answers: Answers

    @property
    def side(self) -> float:
        """Answer to the paper's single probe: 1 aligned, 0 reversed, NaN otherwise."""
        return _side(self.answers.order.get("original", ""))

    @property
    def probed(self) -> float:
        """Mean over the four probes; NaN unless all give a side."""
        sides = [_side(self.answers.order.get(probe, "")) for probe in PROBES]
        return math.nan if any(map(math.isnan, sides)) else sum(sides) / len(sides)

    @property
    def consistent(self) -> bool:
        """Whether all four probes give the same side."""
        return self.probed in (0.0, 1.0)

    @property
    def host(self) -> str:
        """Host of the image's address; the image itself if it has no address."""
        return str(urlsplit(self.pair["url"]).netloc) if self.pair["url"] else self.image

    @property
    def image(self) -> str:
        """Place of the image, else its address."""
        return str(self.pair["image"] or self.pair["url"])

    @property
    def entities(self) -> str:
        """Names of both things, independent of mention order."""
        return " / ".join(sorted((self.pair["first"]["name"], self.pair["second"]["name"])))


@dataclass(frozen=True)
class Alignment:
    """The result of a run."""

    judge: dict[str, str]
    """Identity of the judge, with the versions of the prompts."""
    funnel: dict[str, Any]
    """Counts at every stage."""
    single_probe: Rate
    """The paper's measure: one question in which A is the first-mentioned."""
    four_probes: dict[str, Any]
    """Mean over the probes and its interval; biases of the judge pull it toward one half."""
    consistent: Rate
    """Rate among pairs whose four probes agree."""
    controls: dict[str, Any]
    """Mirrored rate, side bias, name bias, and agreement of gate and order under mirroring."""
    groups: dict[str, dict[str, Rate]]
    """Single-probe rates by pattern, relation, categories, length, layout words, people and whether
    one name is a kind of the other."""
    both_orders: dict[str, Any]
    """Rate over entity pairs mentioned in both orders: separates order from preference."""
    examples: list[dict[str, Any]]
    """Some valid pairs, for reading."""
    published: dict[str, Any]
    """The paper's rates, for comparison."""

    def to_json(self) -> dict[str, Any]:
        """Plain Python; NaN becomes None."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def align(judge: dict[str, str], funnel: dict[str, Any], judged: Sequence[JudgedPair]) -> Alignment:
    """Computes the result over all judged pairs."""
    valid = [j for j in judged if j.answers.valid]
    neutral = [j for j in valid if not SIDES & set(j.pair["spatial_words"])]
    means = np.array([j.probed for j in valid], dtype=float)
    return Alignment(
        judge=judge,
        funnel=funnel | _verdict_counts(judged, valid),
        single_probe=rate(valid),
        four_probes={
            "n": int(np.sum(~np.isnan(means))),
            "rate": float(np.nanmean(means)) if np.any(~np.isnan(means)) else math.nan,
            "by_pair": _clustered(means, [j.entities for j in valid]),
        },
        consistent=rate([j for j in valid if j.consistent]),
        controls=_controls(valid),
        groups={
            "all": {"all": rate(valid), "no left or right in the caption": rate(neutral)},
            "pattern": _grouped(valid, lambda j: j.pair["pattern"]),
            "relation": _grouped(valid, lambda j: j.pair["relation"]),
            "categories": _grouped(valid, _categories),
            "caption length": _grouped(valid, _length),
            "layout words": _grouped(valid, _layout_words),
            "people": _grouped(valid, _people),
            "kinds": _grouped(valid, _related),
        },
        both_orders=_both_orders(valid),
        examples=[_example(j) for j in valid[:: max(1, len(valid) // 24)][:24]],
        published={
            name: {"rate": share, "n": n, "wilson": wilson(round(share * n), n)}
            for name, (share, n) in PUBLISHED.items()
        },
    )


def rate(judged: Sequence[JudgedPair]) -> Rate:
    """Computes the single-probe rate of some valid pairs."""
    sided = [j for j in judged if not math.isnan(j.side)]
    return Rate.of(
        np.array([j.side for j in sided], dtype=float),
        _clustered,
        entities=[j.entities for j in sided],
        images=[j.image for j in sided],
        hosts=[j.host for j in sided],
    )


def _clustered(values: Array, clusters: Sequence[str]) -> Interval:
    """Interval of a share over clusters; NOTHING below two."""
    if len(set(clusters)) < 2:
        return NOTHING
    return cluster_interval(values, list(clusters), (0, 1))[0].interval


def _side(label: str) -> float:
    return {ALIGNED: 1.0, REVERSED: 0.0}.get(label, math.nan)


def _verdict_counts(judged: Sequence[JudgedPair], valid: Sequence[JudgedPair]) -> dict[str, Any]:
    """Counts of the judge's labels and failures at each stage."""

    def gate_labels(aspect: str) -> dict[str, int]:
        return _counts(j.answers.gate.get((aspect, "original"), "not asked") for j in judged)

    def order_labels(probe: str) -> dict[str, int]:
        return _counts(j.answers.order.get(probe, "not asked") for j in valid)

    return {
        "judged": len(judged),
        "stage_1": {aspect: gate_labels(aspect) for aspect in ASPECTS},
        "valid": len(valid),
        "stage_2": {probe: order_labels(probe) for probe in PROBES},
        "consistent": sum(j.consistent for j in valid),
        "aligned": sum(j.side == 1 for j in valid),
    }


def _counts(labels: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(labels).items()))


def _controls(valid: Sequence[JudgedPair]) -> dict[str, Any]:
    """Computes the biases of the judge, from questions with mirrored images and swapped names."""
    sides = [(j.side, _side(j.answers.order.get("mirror", ""))) for j in valid]
    sided = [pair for pair in sides if not any(map(math.isnan, pair))]
    answered_a = [
        _answered_a(probe, label)
        for j in valid
        for probe, label in j.answers.order.items()
        if label in (ALIGNED, REVERSED)
    ]
    # As shown: in the mirrored image, a true answer names the other thing.
    shown_sides = [(side + (1 - mirror)) / 2 for side, mirror in sided]
    gate_labels = [
        [j.answers.gate.get((aspect, probe), "missing") for probe in GATE_PROBES]
        for j in valid
        for aspect in ASPECTS
    ]
    gate = [labels[0] == labels[1] for labels in gate_labels if not set(labels) & set(FAILURES)]
    return {
        "n": len(sided),
        "rate": _mean([side for side, _ in sided]),
        "mirrored_rate": _mean([1 - mirror for _, mirror in sided]),
        "flips": _mean([float(side == mirror) for side, mirror in sided]),
        "side_bias": _mean(shown_sides) - 0.5,
        "name_bias": _mean([float(a) for a in answered_a]) - 0.5,
        "gate_unchanged": _mean([float(same) for same in gate]),
    }


def _answered_a(probe: str, label: str) -> bool:
    """Whether the answer was A: the first-mentioned thing unless swapped; mirroring swaps sides."""
    exchanged = probe.endswith("swap") != probe.startswith("mirror")
    return (label == ALIGNED) != exchanged


def _grouped(valid: Sequence[JudgedPair], key: Callable[[JudgedPair], str]) -> dict[str, Rate]:
    groups: dict[str, list[JudgedPair]] = {}
    for j in valid:
        groups.setdefault(key(j), []).append(j)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return {name: rate(group) for name, group in ordered}


def _categories(judged: JudgedPair) -> str:
    return f"{judged.pair['first']['category']} then {judged.pair['second']['category']}"


def _length(judged: JudgedPair) -> str:
    tokens = judged.pair["tokens"]
    for most in (8, 12, 16, 24):
        if tokens <= most:
            return f"up to {most} tokens"
    return "more than 24 tokens"


def _layout_words(judged: JudgedPair) -> str:
    return group_of_words(judged.pair["spatial_words"])


def _people(judged: JudgedPair) -> str:
    return group_of_people(judged.pair["first"]["category"], judged.pair["second"]["category"])


def _related(judged: JudgedPair) -> str:
    """Returns the group of a pair by whether one name is a kind of the other: a judge may then see
    both in one thing."""
    entities = Ontology.read().entities
    first, second = (entities.get(judged.pair[half]["name"]) for half in ("first", "second"))
    apart = first is None or second is None or distinct(first, second)
    return "neither" if apart else "one is a kind of the other"


def group_of_words(spatial_words: Iterable[str]) -> str:
    """Returns the group of a caption by its layout words, for a table."""
    words = set(spatial_words)
    return "left or right" if words & SIDES else "other layout words" if words else "none"


def group_of_people(first: str, second: str) -> str:
    """Returns the group of a pair by which thing is a person, from the categories of both."""
    return {
        (True, True): "both people",
        (True, False): "person first",
        (False, True): "person second",
        (False, False): "no person",
    }[first == "people", second == "people"]


def _both_orders(valid: Sequence[JudgedPair]) -> dict[str, Any]:
    """Computes the rate over entity pairs mentioned in both orders, each order weighted equally.

    If one entity of a pair simply tends to be on the left, it is aligned in one order and reversed
    in the other, and this rate is one half.
    """
    sides: dict[str, dict[str, list[float]]] = {}
    for j in valid:
        if not math.isnan(j.side):
            sides.setdefault(j.entities, {}).setdefault(j.pair["first"]["name"], []).append(j.side)
    order_means = [
        [sum(s) / len(s) for s in by_first.values()]
        for by_first in sides.values()
        if len(by_first) == 2
    ]
    means = [sum(orders) / 2 for orders in order_means]
    interval = _clustered(np.array(means), list(map(str, range(len(means)))))
    return {"entity_pairs": len(means), "rate": _mean(means), "interval": interval}


def _example(judged: JudgedPair) -> dict[str, Any]:
    pair = judged.pair
    return {
        "caption": pair["caption"],
        "url": pair["url"],
        "first": pair["first"]["phrase"],
        "relation": pair["relation"],
        "second": pair["second"]["phrase"],
        "answers": {probe: judged.answers.order.get(probe, "not asked") for probe in PROBES},
    }


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else math.nan


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    return value
