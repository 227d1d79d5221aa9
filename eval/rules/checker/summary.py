"""Metrics of checked runs: by image, prompt and counterfactual pair, and as Markdown tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..boxes import FORWARD, RELATIONS, SIDEWAYS
from .decide import REASONS, CheckedImage, CheckVerdict

PAIRS = ("both_pass", "both_fail", "one_sided", "undecidable")


def best_of(verdicts: Sequence[CheckVerdict]) -> CheckVerdict:
    """PASS if any passes, FAIL only if all fail."""
    if "PASS" in verdicts:
        return "PASS"
    return "FAIL" if verdicts and set(verdicts) == {"FAIL"} else "UNDECIDABLE"


def all_of(verdicts: Sequence[CheckVerdict], expected: int) -> CheckVerdict:
    """PASS if all pass, FAIL if any fails; UNDECIDABLE where images are missing."""
    if len(verdicts) != expected:
        return "UNDECIDABLE"
    if "FAIL" in verdicts:
        return "FAIL"
    return "PASS" if set(verdicts) == {"PASS"} else "UNDECIDABLE"


def pair_verdict(first: CheckVerdict, second: CheckVerdict) -> str:
    """One of `PAIRS`: undecidable where either is."""
    if "UNDECIDABLE" in (first, second):
        return "undecidable"
    if first != second:
        return "one_sided"
    return "both_pass" if first == "PASS" else "both_fail"


def summarize(checked: Sequence[CheckedImage]) -> dict[str, Any]:
    """Everything the published `metrics.json` holds, with prompt and pair metrics added.

    A rate with an empty denominator is None, never 0.
    """
    reasons = Counter(
        item.reason.split(":")[0].split(" (")[0] for item in checked if item.reason is not None
    )
    counts = _counts(item.verdict for item in checked)
    n = counts.pop("count")
    confidences = [item.confidence for item in checked]
    return {
        "total_samples": n,
        **counts,
        "undecidable_rate": _share(counts["undecidable_count"], n),
        "mean_confidence": math.fsum(confidences) / n if n else None,
        "by_relation": {
            relation: _counts(some)
            for relation in RELATIONS
            if (some := [one.verdict for one in checked if one.sample.relation == relation])
        },
        "undecidable_reasons": dict(sorted(reasons.items())),
        **{
            f"assumed_{part}": sum(part in item.assumed for item in checked)
            for part in ("stability", "agreement")
        },
        **_by_prompt(checked),
    }


def _counts(verdicts: Iterable[CheckVerdict]) -> dict[str, Any]:
    count = Counter(verdicts)
    return {
        "count": count.total(),
        "pass_count": count["PASS"],
        "fail_count": count["FAIL"],
        "undecidable_count": count["UNDECIDABLE"],
        **rates(count["PASS"], count["FAIL"], count["UNDECIDABLE"]),
    }


def rates(passed: int, failed: int, undecidable: int) -> dict[str, float | None]:
    """Coverage, pass rate of all, and pass rate of the decided, each in [0, 1] or None."""
    n = passed + failed + undecidable
    return {
        "coverage": _share(passed + failed, n),
        "pass_rate_overall": _share(passed, n),
        "pass_rate_conditional": _share(passed, passed + failed),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _by_prompt(checked: Sequence[CheckedImage]) -> dict[str, Any]:
    prompts: dict[str, list[CheckVerdict]] = {}
    scenes: dict[tuple[str, ...], list[str]] = {}
    for item in checked:
        prompt = item.sample.prompt_id
        if prompt not in prompts:
            scenes.setdefault(_scene(item), []).append(prompt)
        prompts.setdefault(prompt, []).append(item.verdict)
    if not prompts:
        return {}
    k = max(map(len, prompts.values()))
    best = {name: best_of(verdicts) for name, verdicts in prompts.items()}
    pairs = Counter(
        pair_verdict(*(best[name] for name in names))
        for names in scenes.values()
        if len(names) == 2
    )
    return {
        "prompts": len(prompts),
        "images_per_prompt": k,
        "best_of_k": _tally(best.values()),
        "all_of_k": _tally(all_of(verdicts, k) for verdicts in prompts.values()),
        "counterfactual_pairs": {
            "count": pairs.total(),
            "unpaired_prompts": sum(len(names) for names in scenes.values() if len(names) != 2),
            **{name: pairs[name] for name in PAIRS},
            "both_pass_rate": _share(pairs["both_pass"], pairs.total()),
        },
    }


def _scene(image: CheckedImage) -> tuple[str, ...]:
    """The arrangement a prompt asks for, whichever way round it says it.

    "A left of B" and "B right of A" share it: they are each other's counterfactual pair.
    """
    sample = image.sample
    axis = "horizontal" if sample.relation in SIDEWAYS else "vertical"
    objects = (sample.object_a, sample.object_b)
    return (axis, *(objects if sample.relation in FORWARD else objects[::-1]))


def _tally(verdicts: Iterable[CheckVerdict]) -> dict[str, Any]:
    count = _counts(verdicts)
    names = ("pass_count", "fail_count", "undecidable_count")
    return {name: count[name] for name in names} | {"pass_rate": count["pass_rate_overall"]}


RunMetrics = Mapping[str, Any]


def markdown(runs: Mapping[str, RunMetrics]) -> str:
    """Main, abstention, prompt and pair tables of named runs (`metrics.json`), with provenance.

    A number that nothing defines is a dash. Rates in %.
    """
    tables: dict[str, tuple[Sequence[str], Callable[[RunMetrics], list[str]]]] = {
        "Images": (
            ("images", "pass", "coverage", "pass of decided", "mean confidence"),
            _images,
        ),
        "Pass by relation": (
            RELATIONS,
            lambda run: [
                _percent(run["by_relation"].get(relation, {}).get("pass_rate_overall"))
                for relation in RELATIONS
            ],
        ),
        "Undecidable, by reason": (
            ("all", *REASONS),
            lambda run: [
                _percent(run["undecidable_rate"]),
                *_percents(run["undecidable_reasons"], REASONS, run["total_samples"]),
            ],
        ),
        "Prompts and counterfactual pairs": (
            ("prompts", "best of K", "all of K", "pairs", *PAIRS),
            _prompts,
        ),
        "Where the numbers come from": (
            ("detections (SHA-256)", "margin", "detection score", "stability assumed for"),
            lambda run: [
                run["detections_sha256"][:16],
                str(run["rules"]["geometry"]["margin"]),
                str(run["rules"]["thresholds"]["detection_score"]),
                str(run["assumed_stability"]),
            ],
        ),
    }
    return "\n".join(
        f"| {title} | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}\n"
        + "".join(f"| {name} | {' | '.join(cells(run))} |\n" for name, run in runs.items())
        for title, (columns, cells) in tables.items()
    )


def _images(run: RunMetrics) -> list[str]:
    rates = ("pass_rate_overall", "coverage", "pass_rate_conditional")
    mean = run["mean_confidence"]
    return [
        str(run["total_samples"]),
        *(_percent(run[rate]) for rate in rates),
        "-" if mean is None else f"{mean:.3f}",
    ]


def _prompts(run: RunMetrics) -> list[str]:
    if "best_of_k" not in run:
        return ["0", *"-" * (3 + len(PAIRS))]
    pairs = run["counterfactual_pairs"]
    return [
        str(run["prompts"]),
        _percent(run["best_of_k"]["pass_rate"]),
        _percent(run["all_of_k"]["pass_rate"]),
        str(pairs["count"]),
        *_percents(pairs, PAIRS, pairs["count"]),
    ]


def _percents(counts: Mapping[str, int], names: Sequence[str], whole: int) -> list[str]:
    return [_percent(counts.get(name, 0) / whole if whole else None) for name in names]


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"
