"""Speed of the miner beside spaCy, in the same run.

    python benchmarks/mine.py CAPTIONS [--captions 5000] [--runs 5]

CAPTIONS is the folder of the parquet files of `SETS`; a set that is not there is left out. Peers
read the same captions by `nlp.pipe` with its default batch size, and all find pairs by the same
rules: spaCy's model as it is loaded by name, only its pipes that pairs need, and these in two
processes. Each run is in a process of its own, so that no caption or word was seen before; loading
is not counted, processes that spaCy starts are. The ratio is that of CPU time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from figures import RUNS, Figures

SETS = {"LAION-400M": "laion400m_10k", "CC3M": "cc3m_val"}
WARM_UP = 200
"""Captions that load the lookup tables."""


class Taken(NamedTuple):
    """Time of a run."""

    cpu_seconds: float
    seconds: float


def timed(run: Callable[[], object]) -> Taken:
    """What a call takes, with the processes that it starts."""
    before, began = _cpu(), time.perf_counter()
    run()
    seconds = time.perf_counter() - began
    for process in multiprocessing.active_children():
        process.join()  # only then is its time counted
    return Taken(_cpu() - before, seconds)


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def peer(path: Path, number: int, needed: bool, processes: int) -> Taken:
    """spaCy and the rules. needed: only the pipes that pairs need."""
    import pyarrow.parquet as pq
    import spacy

    from counterprior.corpus_analysis.captions.extract import Extractor
    from counterprior.corpus_analysis.captions.ontology import Ontology
    from counterprior.corpus_analysis.captions.parser import UNNEEDED, installed_model

    captions = pq.read_table(path, columns=["caption"])["caption"].to_pylist()[:number]
    multiprocessing.set_start_method("fork", force=True)  # spaCy's where no process was spawned
    nlp = spacy.load(installed_model()[0], exclude=list(UNNEEDED) if needed else [])
    extractor = Extractor(Ontology.read())

    def run(texts: Iterable[str], processes: int) -> None:
        for doc in nlp.pipe(texts, n_process=processes):
            extractor.pairs(doc, doc.text)

    run(captions[:WARM_UP], 1)
    return timed(lambda: run(captions, processes))


def ours(path: Path, number: int) -> Taken:
    """The miner."""
    import pyarrow.parquet as pq

    from counterprior.corpus_analysis.captions.miner import Miner

    captions = pq.read_table(path, columns=["caption"])["caption"].combine_chunks()[:number]
    miner = Miner()
    miner(captions[:WARM_UP])
    return timed(lambda: miner(captions))


def apart(measure: Callable[[], Taken]) -> Taken:
    """A measurement in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(measure).result()


def compare(folder: Path, number: int, runs: int) -> None:
    figures = Figures("mine", f"python benchmarks/mine.py CAPTIONS --captions {number}")
    for title, name in SETS.items():
        path = folder / f"{name}.parquet"
        if not path.is_file():
            print(f"{path} is not there")
            continue
        ways: dict[str, Callable[[], Taken]] = {
            "spaCy": partial(peer, path, number, False, 1),
            "spaCy, needed pipes": partial(peer, path, number, True, 1),
            "spaCy, needed pipes, `n_process=2`": partial(peer, path, number, True, 2),
            "`corpus mine`": partial(ours, path, number),
        }
        taken: dict[str, list[Taken]] = {way: [] for way in ways}
        for _ in range(runs):
            for way, measure in ways.items():
                taken[way].append(apart(measure))
        miner = taken["`corpus mine`"]
        for way, measured in taken.items():
            figures.add(
                f"{way}, {title}",
                {
                    "captions a s of CPU": [number / run.cpu_seconds for run in measured],
                    "captions a s": [number / run.seconds for run in measured],
                    "the miner's ratio": [
                        run.cpu_seconds / own.cpu_seconds
                        for run, own in zip(measured, miner, strict=True)
                    ],
                },
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("captions_folder", type=Path, metavar="CAPTIONS")
    parser.add_argument("--captions", type=int, default=5000, help="of each set")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    os.environ.update({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1"})
    compare(options.captions_folder, options.captions, options.runs)


if __name__ == "__main__":
    main()
