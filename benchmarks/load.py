"""Time and memory of large work, each by the command line, in a process of its own.

    python benchmarks/load.py images   [--cases 10000] [--runs 5]
    python benchmarks/load.py captions CAPTIONS [--captions 100000] [--runs 3]

images: `generate`, `judge` and `score` of `spatial_visor` with a generator and a judge of this
file, which answer at once, both named by `python:` as anybody's are. captions: `corpus mine` with
one worker; CAPTIONS is the folder of the two sets that `mine.py` takes, which are repeated with
another year behind each caption, so that none comes twice and the miner parses each. Its memory is
that of the worker after each tenth of the captions: flat means that the last is as the second.
Peaks are the kernel's, of the largest process of a command.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

from figures import LONG_RUNS, PEAK, RUNS, Cost, Figures, command
from PIL import Image

from counterprior.eval.core import ImageRequest, Question

SUITE = "spatial_visor"
SEEDS = 4
SIDE = 64
"""Pixels of an image."""
SHARD = 50_000
"""Captions of a file."""


class Squares:
    """A generator whose images nothing else has, at no cost."""

    def identity(self) -> dict[str, str]:
        return {"kind": "squares"}

    def generate(self, request: ImageRequest) -> Image.Image:
        assert request.case is not None
        colors = random.Random(request.case.id).randbytes(3 * 16)
        tiles = Image.frombytes("RGB", (4, 4), colors)
        return tiles.resize((SIDE, SIDE), Image.Resampling.NEAREST)


def judge() -> Callable[[Question], str]:
    """Makes `first`."""
    return first


def first(question: Question) -> str:
    """A judge that answers at once."""
    return question.labels[0]


def evaluate(cases: int, release: Path, out: str) -> dict[str, Cost]:
    """A run of that many cases, or as many as the suite has with four seeds; by step, what it
    took."""
    rows = ("--suite", SUITE, "--data", str(release), "--seeds", str(SEEDS))
    limit = ("--limit", str(cases // SEEDS))
    return {
        "generate": command(
            "generate", *rows, *limit, "--generator", "python:load:Squares", "--out", out
        ),
        "judge": command("judge", out, "--judge", "python:load:judge"),
        "score": command("score", out),
    }


def images(counts: list[int], runs: int) -> None:
    figures = Figures("load-images", "python benchmarks/load.py images")
    with tempfile.TemporaryDirectory() as temporary:
        release = Path(temporary, "release")
        command("build", "--config", SUITE, "--out", str(release))
        for cases in counts:
            costs: dict[str, list[Cost]] = {}
            for _ in range(runs):
                with tempfile.TemporaryDirectory() as out:
                    for step, cost in evaluate(cases, release, f"{out}/run").items():
                        costs.setdefault(step, []).append(cost)
            add(figures, cases, costs)


def add(figures: Figures, cases: int, costs: Mapping[str, Sequence[Cost]]) -> None:
    """Adds the figures of each step."""
    for step, taken in costs.items():
        figures.add(
            f"`{step}`, {cases:,} cases",
            {
                "ms of CPU each": [1000 * cost.cpu_seconds / cases for cost in taken],
                "ms by the clock each": [1000 * cost.seconds / cases for cost in taken],
                PEAK: [cost.peak_mb for cost in taken],
            },
        )


def varied(folder: Path) -> Iterator[str]:
    """Captions without end, all of them different."""
    import pyarrow.parquet as pq
    from mine import SETS

    texts = [
        caption
        for name in SETS.values()
        for caption in pq.read_table(folder / f"{name}.parquet")["caption"].to_pylist()
    ]
    for year in count(1900):
        for text in texts:
            yield f"{text} in {year}"


def captions(folder: Path, counts: list[int], runs: int) -> None:
    figures = Figures("load-captions", "python benchmarks/load.py captions CAPTIONS")
    for total in counts:
        costs, grown = [], []
        for _ in range(runs):
            with tempfile.TemporaryDirectory() as temporary:
                source, out = Path(temporary, "captions"), Path(temporary, "mined")
                write_captions(folder, source, total)
                costs.append(
                    command("corpus", "mine", str(source), "--out", str(out), "--workers", "1")
                )
                lines = Path(out, "manifest.jsonl").read_text().splitlines()
            peaks = [json.loads(line)["peak_mb"] for line in lines]
            grown.append(peaks[-1] / peaks[len(peaks) // 5])
        figures.add(
            f"`corpus mine`, {total:,} captions",
            {
                "captions a s of CPU": [total / cost.cpu_seconds for cost in costs],
                "captions a s": [total / cost.seconds for cost in costs],
                PEAK: [cost.peak_mb for cost in costs],
                "peak at the end / after a fifth": grown,
            },
        )


def write_captions(folder: Path, source: Path, total: int, shard: int = SHARD) -> None:
    """Writes so many captions, in files of `shard`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source.mkdir()
    texts = varied(folder)
    for start in range(0, total, shard):
        part = [next(texts) for _ in range(min(shard, total - start))]
        urls = [f"https://example.org/{start + number}" for number in range(len(part))]
        pq.write_table(pa.table({"url": urls, "caption": part}), source / f"{start:09}.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    part = what.add_parser("images")
    part.add_argument("--cases", type=int, nargs="+", default=[10_000])
    part.add_argument("--runs", type=int, default=RUNS)
    part = what.add_parser("captions")
    part.add_argument("folder", type=Path)
    part.add_argument("--captions", type=int, nargs="+", default=[100_000])
    part.add_argument("--runs", type=int, default=LONG_RUNS)
    asked = parser.parse_args()
    if asked.what == "images":
        images(asked.cases, asked.runs)
    else:
        captions(asked.folder, asked.captions, asked.runs)


if __name__ == "__main__":
    main()
