"""What large work costs on paper: our share from measured figures, that of the models from options.

    python benchmarks/cost.py [--image-seconds 6] [--judge-seconds 0.36] [--gpu-usd 3] ...

OTS-Bench's main table: nine models, 7,500 images each, a judge that runs here and another behind an
API. Images and the local judge are divided among the GPUs; the rest is not. Mining: captions of web
images. `python benchmarks/figures.py` writes a summary, by the defaults, into docs/scale.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, fields

from figures import median

GPUS = (1, 8, 64)
IMAGES = 9 * 7500
JUDGES = 2
MODELS = 10
"""Nine generators and the judge."""
AFTER = 0.029 + 0.0035 + 0.0004
"""CPU seconds an image: to read a PNG of 1024 x 1024 pixels for its thumbnail; at most, for the
rest of the report; for scores under three judges. The last two as docs/scale.md has them for as
many images."""


@dataclass(frozen=True)
class Assumptions:
    """Nothing of it is measured here."""

    image_seconds: float = 6.0
    judge_seconds: float = 0.36
    api_seconds: float = 2.0
    api_calls: int = 96
    load_seconds: float = 120.0
    gpu_usd: float = 3.0
    core_usd: float = 0.05
    cores: int = 8
    captions: int = 2_000_000_000


def study_lines(assumed: Assumptions) -> list[tuple[str, str, float, bool]]:
    """Each line of OTS-Bench's table: its name, its step, seconds on one GPU, and whether more GPUs
    share it."""
    overhead = median("overhead", "an image and its answer", "ms of CPU") / 1000
    return [
        ("images", f"{assumed.image_seconds:g} s each", IMAGES * assumed.image_seconds, True),
        ("local judge", f"{assumed.judge_seconds:g} s each", IMAGES * assumed.judge_seconds, True),
        (
            "judge behind an API",
            f"{assumed.api_seconds:g} s each, {assumed.api_calls} at a time",
            IMAGES * assumed.api_seconds / assumed.api_calls,
            False,
        ),
        (
            "loading models",
            f"{MODELS} times {assumed.load_seconds:g} s",
            MODELS * assumed.load_seconds,
            False,
        ),
        (
            "records, files, questions",
            f"measured: {1000 * overhead:.2g} ms of CPU an answer",
            IMAGES * JUDGES * overhead,
            False,
        ),
        (
            "scores and report",
            f"measured: {1000 * AFTER:.0f} ms of CPU an image, {assumed.cores} cores",
            IMAGES * AFTER / assumed.cores,
            False,
        ),
    ]


def study_table(assumed: Assumptions, *, is_summary: bool = False) -> Iterator[str]:
    """Lines of the table of OTS-Bench's images; a summary adds up what more GPUs don't shorten."""
    yield "| line | step | " + " | ".join(f"{n} GPU{'s' * (n > 1)}" for n in GPUS) + " |"
    yield "| --- | --- |" + " --- |" * len(GPUS)
    lines = study_lines(assumed)
    if is_summary:
        rest = [line for line in lines if not line[3]]
        steps = ", ".join(name for name, _, _, _ in rest)
        total = sum(seconds for _, _, seconds, _ in rest)
        lines = [*(line for line in lines if line[3]), ("the rest", steps, total, False)]
    for name, step, seconds, is_shared in lines:
        times = [duration(seconds / (n if is_shared else 1)) for n in GPUS]
        yield f"| {name} | {step} | {' | '.join(times)} |"
    totals = [sum(s / (n if shared else 1) for _, _, s, shared in lines) for n in GPUS]
    yield f"| **all** | | {' | '.join(f'**{duration(total)}**' for total in totals)} |"
    if not is_summary:
        shares = [lines[0][2] / n / total for n, total in zip(GPUS, totals, strict=True)]
        yield f"| share of the images | | {' | '.join(f'{share:.0%}' for share in shares)} |"
    usd = [n * total / 3600 * assumed.gpu_usd for n, total in zip(GPUS, totals, strict=True)]
    amounts = " | ".join(f"{amount:,.0f} USD" for amount in usd)
    yield f"| cost | {assumed.gpu_usd:g} USD a GPU hour | {amounts} |"


def mining_table(assumed: Assumptions) -> Iterator[str]:
    """Lines of the table of captions."""
    yield f"| {assumed.captions:,} captions | core-hours | USD, {assumed.core_usd:g} an hour |"
    yield "| --- | --- | --- |"
    for way in ("`corpus mine`", "spaCy, needed pipes", "spaCy"):
        for kind in ("LAION-400M", "CC3M"):
            rate = median("mine", f"{way}, {kind}", "captions a s of CPU")
            hours = assumed.captions / rate / 3600
            usd = hours * assumed.core_usd
            yield f"| {way}, at the rate of {kind} | {hours:,.0f} | {usd:,.0f} |"


def duration(seconds: float) -> str:
    """In hours, or in minutes below two of them."""
    hours = seconds / 3600
    if hours < 2:
        return f"{seconds / 60:.2g} min" if seconds < 600 else f"{seconds / 60:.0f} min"
    return f"{hours:.1f} h" if hours < 20 else f"{hours:,.0f} h"


def mining_summary(assumed: Assumptions) -> str:
    """The least and the most core-hours of the table of captions, by the kind of captions."""
    texts = []
    for way in ("`corpus mine`", "spaCy, needed pipes"):
        rates = [
            median("mine", f"{way}, {kind}", "captions a s of CPU")
            for kind in ("LAION-400M", "CC3M")
        ]
        least, most = sorted(assumed.captions / rate / 3600 for rate in rates)
        usd = f"{least * assumed.core_usd:,.0f} to {most * assumed.core_usd:,.0f} USD"
        texts.append(f"{least:,.0f} to {most:,.0f} core-hours ({usd}) with {way}")
    return f"Mining {assumed.captions:,} captions: {'; '.join(texts)}."


def tables(assumed: Assumptions) -> str:
    """Both tables."""
    return "\n\n".join("\n".join(lines(assumed)) for lines in (study_table, mining_table))


def summary(assumed: Assumptions) -> str:
    """What docs/scale.md has of both tables."""
    study = "\n".join(study_table(assumed, is_summary=True))
    return f"{study}\n\n{mining_summary(assumed)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for assumption in fields(Assumptions):
        option = f"--{assumption.name.replace('_', '-')}"
        parser.add_argument(option, type=type(assumption.default), default=assumption.default)
    print(tables(Assumptions(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
