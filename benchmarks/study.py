"""What a run costs besides its models: time and memory for each image, and what workers give.

    python benchmarks/study.py overhead [--cases 10000 50000 100000]
    python benchmarks/study.py score    [--runs 9] [--images 7500]
    python benchmarks/study.py report   [--runs 9] [--images 7500]
    python benchmarks/study.py workers  [--images 2000] [--rounds 3]

overhead: a generator and a judge that answer at once, from case to recorded verdict, in a process
of its own for each number of cases; against a loop that does no more than the same files need
(encode, write, sync, decode). score: runs under three judges. report: the same with thumbnails,
twice, the second time with all thumbnails there. workers: `render:` in two workers on two cores
against one worker on one core (a worker encodes while it draws, so that alone it takes more than
its core), and against what this machine gives two processes that only count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from multiprocessing import Process
from pathlib import Path
from typing import Any

from PIL import Image

from counterprior.eval.core import ImageRequest, Question
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import Done, evaluate_run, generate
from counterprior.eval.judges import as_judge
from counterprior.eval.store.spool import SpooledRows
from counterprior.eval.suites import open_suite
from counterprior.eval.workers.farm import Scale
from counterprior.schema import Row

SUITE = "t2i_homogenization"
EACH = 8
"""Images of a row: two prompts with four seeds."""
JUDGES = 3
SIDE = 64
"""Pixels of an image that is made at once."""


def rows_for(images: int) -> Rows:
    """Rows of the self-test under new ids, as many as so many images take."""
    trial = next(iter(open_suite(SUITE).trials()))
    found = [row.model_dump(exclude={"id"}) for row in trial.rows]

    def read(record: dict[str, Any]) -> Row:
        known = {name: value for name, value in record.items() if name != "id"}
        return type(trial.rows[0]).model_validate(known).model_copy(update={"id": record["id"]})

    records = (
        {**found[number % len(found)], "id": f"row-{number:06}"}
        for number in range(-(-images // EACH))
    )
    return Rows(SpooledRows(records, read), "benchmark")


def tiles(name: str) -> Image.Image:
    """An image that nothing else has, at no cost."""
    colors = random.Random(name).randbytes(3 * 16)
    return Image.frombytes("RGB", (4, 4), colors).resize((SIDE, SIDE), Image.Resampling.NEAREST)


class AtOnce:
    """A generator that only fills squares, each time others."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def identity(self) -> dict[str, str]:
        return {"kind": "at-once", "name": self.name}

    def generate(self, request: ImageRequest) -> Image.Image:
        assert request.case is not None
        return tiles(f"{self.name} {request.case.id}")


def first(question: Question) -> str:
    """A judge that answers at once."""
    return question.labels[0]


def evaluate_at_once(images: int, out: Path) -> Done:
    settings = RunSettings(SUITE, "benchmark", out, seeds=4)
    judge = as_judge(first, identity="1")
    return evaluate_run(settings, AtOnce(), [judge], rows=rows_for(images))


def by_hand(images: int, out: Path) -> None:
    """The same files, written and read by a plain loop."""
    (out / "images").mkdir(parents=True)
    with (out / "images.jsonl").open("ab") as made, (out / "verdicts.jsonl").open("ab") as said:
        for number in range(images):
            image = tiles(str(number))
            buffer = BytesIO()
            image.save(buffer, "PNG", compress_level=6)
            path = out / "images" / f"{number}.png"
            with path.with_suffix(".partial").open("wb") as file:
                file.write(buffer.getvalue())
                file.flush()
                os.fsync(file.fileno())
            path.with_suffix(".partial").replace(path)
            _append(made, {"file": path.name, "sha": hashlib.sha256(buffer.getvalue()).hexdigest()})
        for number in range(images):
            with Image.open(out / "images" / f"{number}.png") as opened:
                opened.convert("RGB")
            _append(said, {"case": number, "label": "first_left"})


def _append(file: Any, record: dict[str, Any]) -> None:
    file.write(json.dumps(record).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())


def overhead(counts: list[int]) -> None:
    memory = {}
    for count in counts:
        found = {}
        for how in ("ours", "by hand"):
            command = [sys.executable, __file__, "once", how, str(count)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[how] = json.loads(done.stdout)
        ours, peer = found["ours"], found["by hand"]
        memory[count] = ours["peak_mb"]
        print(
            f"{count:,} images: {1000 * ours['s'] / count:.2f} ms each, of which "
            f"{1000 * ours['cpu_s'] / count:.2f} ms CPU; by hand "
            f"{1000 * peer['s'] / count:.2f} ms: {ours['s'] / peer['s']:.2f}x; peak "
            f"{ours['peak_mb']:.0f} MB, of which rows {ours['rows_mb']:.0f} MB"
        )
    if len(counts) > 1:
        first, last = counts[0], counts[-1]
        more = 1024 * 1024 * (memory[last] - memory[first]) / (last - first)
        print(
            f"memory, {last:,} against {first:,} images: {memory[last] / memory[first]:.2f}x, "
            f"{more:.0f} bytes for each image more"
        )


def once(how: str, images: int) -> None:
    """One measurement in this process, as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        before = peak()
        rows = rows_for(images)
        rows_mb = peak() - before
        del rows
        start, cpu = time.perf_counter(), time.process_time()
        if how == "ours":
            evaluate_at_once(images, Path(folder) / "run")
        else:
            by_hand(images, Path(folder) / "run")
        found = {
            "s": time.perf_counter() - start,
            "cpu_s": time.process_time() - cpu,
            "peak_mb": peak(),
            "rows_mb": rows_mb,
        }
    print(json.dumps(found))


def peak() -> float:
    """Of this process, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def judged_runs(number: int, images: int) -> Iterator[list[Path]]:
    """Runs under three judges each."""
    with tempfile.TemporaryDirectory() as folder:
        roots = []
        for run in range(number):
            root = Path(folder) / f"run-{run}"
            settings = RunSettings(SUITE, "benchmark", root, seeds=4)
            made = generate(settings, AtOnce(str(run)), rows=rows_for(images)).run
            write_verdicts(made, run)
            roots.append(root)
        yield roots


def write_verdicts(run: Run, seed: int) -> None:
    """Verdicts of three judges, written at once."""
    from counterprior.eval.core import Verdict
    from counterprior.eval.store.verdicts import Answered

    labels = ("first_left", "first_right", "invalid")
    for judge in range(JUDGES):
        log = run.judge({"kind": f"judge{judge}", "persona": "standard"})
        rng = random.Random(1000 * seed + judge)
        lines = []
        for image in run.images().values():
            said = rng.choices(labels, (60 - 3 * seed, 35 + 3 * seed, 5))[0]
            answered = Answered(
                key=hashlib.sha256(image.case.encode()).hexdigest()[:24],
                case=image.case,
                image=image.sha256,
                question="order",
                probe="original",
                labels=labels,
                answers=dict(zip("123", labels, strict=True)),
                sided=True,
                verdict=Verdict(said, "1"),
            )
            lines.append(json.dumps(answered.to_record()) + "\n")
        (log.root / "verdicts.jsonl").write_text("".join(lines))


def score(runs: int, images: int) -> None:
    from counterprior.eval.results.parallel import score_results
    from counterprior.eval.results.scoring import ScoreSettings

    with judged_runs(runs, images) as roots:
        files = [p for root in roots for p in root.rglob("*.jsonl")]
        start = time.perf_counter()
        lines = sum(1 for path in files for line in path.read_bytes().splitlines() if parsed(line))
        read = time.perf_counter() - start
        start, cpu = time.perf_counter(), cpu_with_workers()
        score_results(roots, ScoreSettings())
        taken, used = time.perf_counter() - start, cpu_with_workers() - cpu
    print(
        f"score of {runs} runs x {images:,} images x {JUDGES} judges: {taken:.1f} s ({used:.1f} s "
        f"CPU); parsing their {lines:,} lines alone {read:.1f} s: {taken / read:.1f}x"
    )


def cpu_with_workers() -> float:
    """CPU seconds of this process and of the workers that have ended."""
    own, workers = (
        resource.getrusage(resource.RUSAGE_SELF),
        resource.getrusage(resource.RUSAGE_CHILDREN),
    )
    return own.ru_utime + own.ru_stime + workers.ru_utime + workers.ru_stime


def parsed(line: bytes) -> Any:
    return json.loads(line)


def report(runs: int, images: int) -> None:
    from counterprior.eval.report.site import write_report

    with judged_runs(runs, images) as roots:
        site = roots[0].parent / "site"
        for what in ("first", "again, thumbnails there"):
            start, cpu = time.perf_counter(), time.process_time()
            write_report(roots, site)
            print(
                f"report of {runs * images:,} images, {what}: {time.perf_counter() - start:.0f} s "
                f"({time.process_time() - cpu:.0f} s CPU in this process), peak {peak():.0f} MB"
            )


def workers(images: int, rounds: int) -> None:
    """The best of some rounds: other processes on the machine only ever make it slower."""
    ratios, limits = [], []
    cores = sorted(os.sched_getaffinity(0))
    for _ in range(rounds):
        taken = {}
        for number in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                os.sched_setaffinity(0, cores[:number])  # workers and encoders inherit it
                settings = RunSettings(SUITE, "benchmark", Path(folder) / "run", seeds=4)
                scale = Scale(number, devices=("",))  # a worker also where there is only one
                start = time.perf_counter()
                generate(settings, "render:", rows=rows_for(images), scale=scale)
                taken[number] = time.perf_counter() - start
        ratios.append(taken[1] / taken[2])
        limits.append(2 * counting(1) / counting(2))
        print(
            f"render, {images:,} images: 2 workers on 2 cores {ratios[-1]:.2f}x of 1 on 1 "
            f"({taken[1]:.1f} s, {taken[2]:.1f} s); two counting processes {limits[-1]:.2f}x of one"
        )
    print(f"best {max(ratios):.2f}x, of {max(limits):.2f}x that the machine gives")


def counting(number: int) -> float:
    """Seconds that so many processes take to count, each as far."""
    processes = [Process(target=count) for _ in range(number)]
    start = time.perf_counter()
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return time.perf_counter() - start


def count() -> None:
    total = 0
    for number in range(20_000_000):
        total += number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    part = what.add_parser("overhead")
    part.add_argument("--cases", type=int, nargs="+", default=[10_000, 50_000, 100_000])
    part = what.add_parser("once")
    part.add_argument("how")
    part.add_argument("count", type=int)
    for name in ("score", "report"):
        part = what.add_parser(name)
        part.add_argument("--runs", type=int, default=9)
        part.add_argument("--images", type=int, default=7500)
    part = what.add_parser("workers")
    part.add_argument("--images", type=int, default=2000)
    part.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    if asked.what == "overhead":
        overhead(asked.cases)
    elif asked.what == "once":
        once(asked.how, asked.count)
    elif asked.what == "workers":
        workers(asked.images, asked.rounds)
    else:
        {"score": score, "report": report}[asked.what](asked.runs, asked.images)


if __name__ == "__main__":
    main()
