"""What a run and a study cost besides their models: time and memory, and what workers give.

    python benchmarks/study.py overhead [--cases 10000] [--runs 5]
    python benchmarks/study.py commands [--generators 9] [--images 750] [--runs 5]
    python benchmarks/study.py workers  [--images 2000] [--runs 5]

overhead: a generator and a judge that answer at once, from case to recorded verdict, in a process
of its own for each number of cases; against a loop that does no more than the same files need
(encode, write, sync, decode). commands: `study run` with as many such generators and three judges,
and then `score`, `study table`, `report` and `audit analyze` of its runs, each as a user runs it;
`again` takes what the one before has kept: scores, thumbnails. workers: `render:` in two workers on
two cores against one worker on one core (a worker encodes while it draws, so that alone it takes
more than its core), and against what this machine gives two processes that only count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from io import BytesIO
from multiprocessing import Process
from pathlib import Path
from typing import Any

from figures import CLOCK, PEAK, RUNS, Cost, Figures, command, repeated
from PIL import Image

from counterprior.eval.core import ImageRequest, Question
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import Done, evaluate_run, generate
from counterprior.eval.judges import as_judge
from counterprior.eval.selftest.trials import trials_of
from counterprior.eval.store.spool import SpooledRows
from counterprior.eval.suites import open_suite
from counterprior.eval.workers.farm import Scale
from counterprior.kept import CACHE
from counterprior.schema import Row

SUITE = "t2i_homogenization"
EACH = 8
"""Images of a row: two prompts with four seeds."""
SHARES = (0.6, 0.7, 0.8)
"""Of the first label, in the answers of each judge."""
SIDE = 64
"""Pixels of an image that is made at once."""


def rows_for(images: int) -> Rows:
    """Rows of the self-test under new ids, as many as so many images take."""
    trial = next(trials_of(SUITE))
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


def overhead(counts: list[int], runs: int) -> None:
    cases = " ".join(map(str, counts))
    figures = Figures("overhead", f"python benchmarks/study.py overhead --cases {cases}")
    for count in counts:
        taken: dict[str, list[dict[str, float]]] = {"ours": [], "by hand": []}
        for _ in range(runs):
            for how, measured in taken.items():
                command_line = [sys.executable, __file__, "once", how, str(count)]
                done = subprocess.run(command_line, check=True, capture_output=True, text=True)
                measured.append(json.loads(done.stdout))
        for how, name in (("ours", "an image and its answer"), ("by hand", "the same files alone")):
            pairs = list(zip(taken["ours"], taken[how], strict=True))
            figures.add(
                f"{name}, {count:,} images",
                {
                    "ms of CPU": [1000 * one["cpu_s"] / count for one in taken[how]],
                    "ms by the clock": [1000 * one["s"] / count for one in taken[how]],
                    PEAK: [one["peak_mb"] for one in taken[how]],
                    "ours to it, CPU": [ours["cpu_s"] / one["cpu_s"] for ours, one in pairs],
                    "ours to it, clock": [ours["s"] / one["s"] for ours, one in pairs],
                },
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


class Guess:
    """A judge that answers at once: the first label in 60 to 80 %, by the digest of the image."""

    def __init__(self, share: float) -> None:
        self.share = share

    def identity(self) -> dict[str, str]:
        return {"kind": "guess", "share": str(self.share)}

    def __call__(self, question: Question) -> str:
        drawn = random.Random(f"{self.share} {question.digest}").random()
        return question.labels[0 if drawn < self.share else 1]


def open_guess(share: str) -> Guess:
    return Guess(float(share))


def open_at_once(name: str) -> AtOnce:
    return AtOnce(name)


def commands(generators: int, images: int, runs: int) -> None:
    figures = Figures(
        "study",
        f"python benchmarks/study.py commands --generators {generators} --images {images}",
    )
    size = f"{generators} x {images:,} images, {len(SHARES)} judges"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        release, study, labels = folder / "release", folder / "study", folder / "labels.csv"
        command("build", "--config", SUITE, "--out", str(release))
        file = folder / "study.yaml"
        file.write_text(study_file(release, generators, images))

        def add(name: str, costs: list[Cost]) -> None:
            thousands = generators * images / 1000
            figures.costs(name, costs, {"s of CPU each 1,000 images": thousands})

        made = command("study", "run", str(file), "--out", str(study), "--trust")
        add(f"`study run`, {size}", [made])
        roots = [str(root) for root in sorted((study / "runs" / SUITE).iterdir())]
        labeled = write_labels([Path(root) for root in roots], labels)

        kept = {CACHE: str(folder / "kept")}

        def repeat(name: str, *arguments: str) -> None:
            add(name, repeated(lambda: command(*arguments, environment=kept), runs))

        def anew(*arguments: str) -> Cost:
            shutil.rmtree(kept[CACHE], ignore_errors=True)
            return command(*arguments, environment=kept)

        for words in (["score", *roots], ["study", "table", str(study)]):
            called = "`study table`" if words[0] == "study" else "`score`"
            add(f"{called}, {size}", repeated(partial(anew, *words), runs))
            repeat(f"{called} again, {size}", *words)
        site = folder / "site"
        report = ("report", str(study), "--out", str(site))

        def report_anew() -> Cost:
            shutil.rmtree(site, ignore_errors=True)
            return anew(*report)

        total = f"{generators * images:,} images"
        add(f"`report`, {total}", repeated(report_anew, runs))
        repeat(f"`report` again, {total}", *report)
        answers = f"{generators * images * len(SHARES):,} answers, {labeled:,} labels"
        repeat(f"`audit analyze`, {answers}", "audit", "analyze", *roots, "--labels", str(labels))


def study_file(release: Path, generators: int, images: int) -> str:
    """A study of one suite."""
    models = [f"  g{n}: python:study:open_at_once?name=g{n}" for n in range(generators)]
    judges = [f"  j{n}: python:study:open_guess?share={share}" for n, share in enumerate(SHARES)]
    limit = -(-images // EACH)
    return "\n".join(
        [
            f"data: {release}",
            "unchecked: true",
            f"suites:\n  {SUITE}: {{limit: {limit}, seeds: 4}}",
            "generators:",
            *models,
            "judges:",
            *judges,
        ]
    )


def write_labels(roots: list[Path], path: Path) -> int:
    """Labels of a tenth of the images, by their digest; their number."""
    question = next(iter(open_suite(SUITE).worths))
    number = 0
    with path.open("w") as file:
        file.write("case,question,label,image\n")
        for root in roots:
            run = Run.open(root)
            for case, image in run.images().items():
                if int(image.sha256[:8], 16) % 10 == 0:
                    label = "first_left" if int(image.sha256[8:16], 16) % 10 < 7 else "first_right"
                    file.write(f"{case},{question},{label},{image.sha256}\n")
                    number += 1
    return number


def workers(images: int, runs: int) -> None:
    figures = Figures("workers", "python benchmarks/study.py workers")
    taken: dict[int, list[float]] = {1: [], 2: []}
    limits = []
    cores = sorted(os.sched_getaffinity(0))
    for _ in range(runs):
        for number, seconds in taken.items():
            with tempfile.TemporaryDirectory() as folder:
                os.sched_setaffinity(0, cores[:number])  # workers and encoders inherit it
                settings = RunSettings(SUITE, "benchmark", Path(folder) / "run", seeds=4)
                scale = Scale(number, devices=("",))  # a worker also where there is only one
                start = time.perf_counter()
                generate(settings, "render:", rows=rows_for(images), scale=scale)
                seconds.append(time.perf_counter() - start)
        limits.append(2 * counting(1) / counting(2))
    for number, seconds in taken.items():
        figures.add(f"`render:`, {images:,} images, workers and cores: {number}", {CLOCK: seconds})
    ratios = [one / two for one, two in zip(taken[1], taken[2], strict=True)]
    figures.add("ratio of one to two", {"ratio": ratios})
    figures.add("the same of processes that only count", {"ratio": limits})


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
    part.add_argument("--cases", type=int, nargs="+", default=[10_000])
    part.add_argument("--runs", type=int, default=RUNS)
    part = what.add_parser("once")
    part.add_argument("how")
    part.add_argument("count", type=int)
    part = what.add_parser("commands")
    part.add_argument("--generators", type=int, default=9)
    part.add_argument("--images", type=int, default=750)
    part.add_argument("--runs", type=int, default=RUNS)
    part = what.add_parser("workers")
    part.add_argument("--images", type=int, default=2000)
    part.add_argument("--runs", type=int, default=RUNS)
    asked = parser.parse_args()
    if asked.what == "overhead":
        overhead(asked.cases, asked.runs)
    elif asked.what == "once":
        once(asked.how, asked.count)
    elif asked.what == "workers":
        workers(asked.images, asked.runs)
    else:
        commands(asked.generators, asked.images, asked.runs)


if __name__ == "__main__":
    main()
