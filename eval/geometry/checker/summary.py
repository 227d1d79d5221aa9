"""Metrics of checked runs: by image, prompt and counterfactual pair, and as Markdown tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined

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
            if (some := [item.verdict for item in checked if item.sample.relation == relation])
        },
        "undecidable_reasons": dict(sorted(reasons.items())),
        **{
            f"assumed_{factor}": sum(factor in item.assumed for item in checked)
            for factor in ("stability", "agreement")
        },
        "secondary_failed": sum(bool(item.secondary_error) for item in checked),
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


def _share(count: int, total: int) -> float | None:
    return count / total if total else None


def _by_prompt(checked: Sequence[CheckedImage]) -> dict[str, Any]:
    prompts: dict[str, list[CheckVerdict]] = {}
    scenes: dict[tuple[str, ...], list[str]] = {}
    for item in checked:
        prompt = item.sample.prompt_id
        if prompt not in prompts:
            scenes.setdefault(scene_of(item), []).append(prompt)
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


def scene_of(image: CheckedImage) -> tuple[str, ...]:
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


def markdown(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Main, abstention, prompt and pair tables of named runs (`metrics.json`), with provenance.

    A number that nothing defines is a dash. Rates in %.
    """
    template = resources.files(__package__).joinpath("metrics.md.j2").read_text("utf-8")
    return (
        Environment(trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
        .from_string(template)
        .render(runs=runs, relations=RELATIONS, reasons=REASONS, pairs=PAIRS, percent=_percent)
    )


def _percent(value: float | None, total: int = 1) -> str:
    return "-" if value is None or not total else f"{100 * (value / total):.2f}"
