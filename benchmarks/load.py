"""Time and memory of large work, each by the command line, in a process of its own.

    python benchmarks/load.py images   [--cases 10000 100000]
    python benchmarks/load.py captions CAPTIONS [--captions 100000 1000000]
    python benchmarks/load.py report   [--images 20000]

images: `generate`, `judge` and `score` of `spatial_visor` with a generator and a judge of this
file, which answer at once, both named by `python:` as anybody's are. captions: `corpus mine` with
one worker; CAPTIONS is the folder of the two sets that `mine.py` takes, which are repeated with
another year behind each caption, so that none comes twice and the miner parses each. Its memory is
that of the worker after each tenth of the captions: flat means that the last is as the second.
report: `report` of such a run, with thumbnails. Peaks are the kernel's, of the largest process of a
command.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

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


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    cpu_seconds: float
    peak_mb: float


def run(*arguments: str) -> Cost:
    """Runs a command with this file's functions on its path. Raises SystemExit where it fails."""
    places = [str(Path(__file__).parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "counterprior", *arguments],
            stdout=output,
            stderr=output,
            env=environment,
        )
        _, status, used = os.wait4(process.pid, 0)  # its memory alone: others ran before
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"{' '.join(arguments)}: {output.read().decode()[-2000:]}")
    return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def evaluate(cases: int, folder: Path) -> dict[str, Cost]:
    """A run of that many cases, or as many as the suite has with four seeds, under `run`; by step,
    what it took."""
    release, out = str(folder / "release"), str(folder / "run")
    run("build", "--config", SUITE, "--out", release)
    rows = ("--suite", SUITE, "--data", release, "--seeds", str(SEEDS))
    limit = ("--limit", str(cases // SEEDS))
    return {
        "generate": run(
            "generate", *rows, *limit, "--generator", "python:load:Squares", "--out", out
        ),
        "judge": run("judge", out, "--judge", "python:load:judge"),
        "score": run("score", out),
    }


def images(counts: list[int]) -> None:
    for cases in counts:
        with tempfile.TemporaryDirectory() as folder:
            costs = evaluate(cases, Path(folder))
            with Path(folder, "run", "images.jsonl").open("rb") as log:
                made = sum(1 for _ in log)
        for step, cost in costs.items():
            print(
                f"{made:,} cases, {step}: {cost.seconds:.0f} s, {1000 * cost.seconds / made:.2f} "
                f"ms each, of which {1000 * cost.cpu_seconds / made:.2f} ms CPU; peak "
                f"{cost.peak_mb:.0f} MB",
                flush=True,
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


def captions(folder: Path, counts: list[int]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for total in counts:
        with tempfile.TemporaryDirectory() as temporary:
            source, out = Path(temporary, "captions"), Path(temporary, "mined")
            source.mkdir()
            texts = varied(folder)
            for start in range(0, total, SHARD):
                part = [next(texts) for _ in range(min(SHARD, total - start))]
                urls = [f"https://example.org/{start + number}" for number in range(len(part))]
                table = pa.table({"url": urls, "caption": part})
                pq.write_table(table, source / f"{start:09}.parquet")
                del part, urls, table
            cost = run("corpus", "mine", str(source), "--out", str(out), "--workers", "1")
            lines = Path(out, "manifest.jsonl").read_text().splitlines()
        peaks = [json.loads(line)["peak_mb"] for line in lines]
        tenths = [peaks[max(0, len(peaks) * part // 10 - 1)] for part in range(1, 11)]
        print(
            f"{total:,} captions: {cost.seconds:.0f} s, {total / cost.seconds:,.0f} a second, "
            f"{total / cost.cpu_seconds:,.0f} a CPU second; peak {cost.peak_mb:.0f} MB; of the "
            f"worker after each tenth: {', '.join(map(str, tenths))} MB",
            flush=True,
        )


def report(number: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        evaluate(number, Path(folder))
        site = Path(folder, "site")
        cost = run("report", str(Path(folder, "run")), "--out", str(site))
        size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    print(
        f"report of {number:,} images: {cost.seconds:.0f} s ({cost.cpu_seconds:.0f} s CPU), peak "
        f"{cost.peak_mb:.0f} MB; the site has {size / 1e6:.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    part = what.add_parser("images")
    part.add_argument("--cases", type=int, nargs="+", default=[10_000, 100_000])
    part = what.add_parser("captions")
    part.add_argument("folder", type=Path)
    part.add_argument("--captions", type=int, nargs="+", default=[100_000, 1_000_000])
    part = what.add_parser("report")
    part.add_argument("--images", type=int, default=20_000)
    asked = parser.parse_args()
    if asked.what == "images":
        images(asked.cases)
    elif asked.what == "captions":
        captions(asked.folder, asked.captions)
    else:
        report(asked.images)


if __name__ == "__main__":
    main()
