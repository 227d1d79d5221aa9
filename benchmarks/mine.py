"""Speed of the miner, as ratios against spaCy with the pipes that pairs need, in one run.

    python benchmarks/mine.py CAPTIONS [--repeats 3] [--out results.json]

Every figure is CPU time (a process's own) unless it says wall, the smaller the machine's other load
the truer. Peer and miner read the same captions; the peer parses all of them, with `nlp.pipe`, its
default batch size, and only the tagger and the parser. Pairs are counted on both sides by the same
rules. The miner's first run takes about a second, too short to average out a machine's good and bad
moments: it is the median of several, each in a process of its own, as is the peer's.
`two_workers_wall` needs two idle cores:
`cores_of_two` tells how much of them the run got, and `cpu_of_two_against_one` what the second
worker costs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

SETS = {"LAION-400M alt text": "laion400m_10k", "CC3M": "cc3m_val"}


def cpu(run: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    began = time.process_time()
    run()
    return time.process_time() - began


def peer(path: Path) -> float:
    """CPU seconds of spaCy's tagger and parser, and the rules, over every caption of a file."""
    import pyarrow.parquet as pq
    import spacy

    from counterprior.corpus_analysis.captions.extract import Extractor
    from counterprior.corpus_analysis.captions.ontology import Ontology
    from counterprior.corpus_analysis.captions.parser import UNNEEDED, installed_model

    captions = pq.read_table(path, columns=["caption"])["caption"].to_pylist()
    nlp = spacy.load(installed_model()[0], exclude=list(UNNEEDED))
    extractor = Extractor(Ontology.read())

    def run() -> None:
        for doc in nlp.pipe(captions):
            extractor.pairs(doc, doc.text)

    return cpu(run)


def apart(measure: Callable[[Path], float], path: Path, repeats: int) -> list[float]:
    """Several measurements, each in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        return list(pool.map(measure, [path] * repeats))


def cold(path: Path) -> float:
    """CPU seconds of a miner's first run in this process, loading not counted."""
    import pyarrow.parquet as pq

    from counterprior.corpus_analysis.captions.miner import Miner

    captions = pq.read_table(path, columns=["caption"])["caption"].combine_chunks()
    miner = Miner()
    miner(captions.slice(0, 200))  # loads lookup tables; few words are known yet
    return cpu(lambda: miner(captions))


def ours(path: Path, repeats: int) -> dict[str, float]:
    """CPU seconds of the miner's parts, each the least of several runs, after a warm-up."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from counterprior.corpus_analysis.captions.gate import QualityGate
    from counterprior.corpus_analysis.captions.miner import Miner
    from counterprior.corpus_analysis.captions.prefilter import LINK
    from counterprior.corpus_analysis.captions.text import hard_rows

    captions = pq.read_table(path, columns=["caption"])["caption"].combine_chunks()
    miner = Miner()
    miner(captions)
    first = apart(cold, path, repeats)

    def least(run: Callable[[], object]) -> float:
        return min(cpu(run) for _ in range(repeats))

    # Nearly a shard's worth, so that what is done once doesn't matter.
    many = pa.concat_arrays([captions] * 10)
    copies = Path(tempfile.mkdtemp()) / "copies.parquet"
    pq.write_table(pa.table({"caption": many}), copies)

    def decode() -> pa.Table:
        return pq.read_table(copies, columns=["caption"])

    def one_pass() -> object:
        lower = pc.ascii_lower(decode()["caption"])
        return pc.match_substring_regex(lower, LINK)

    def scan() -> object:
        """What every row meets; only its survivors are seen by Python."""
        texts = decode()["caption"]
        for chunk in texts.chunks:
            hard_rows(chunk)
        return miner.prefilter.candidates(texts)

    return {
        "captions": len(captions),
        "parsed": len(miner.candidates(captions)),
        "first": statistics.median(first),
        "first_least": min(first),
        "first_most": max(first),
        "again": least(lambda: miner(captions)),
        "prefilter": least(lambda: miner.candidates(many)) / 10,
        "prefilter_alone": least(lambda: miner.candidates(captions)),
        "gate": least(lambda: QualityGate().reasons(captions)),
        "decode": least(decode),
        "decode_and_one_pass": least(one_pass),
        "scan": least(scan),
        "speedup": miner.parser.speedup == "fast",
    }


WORKER = """
from counterprior.corpus_analysis.mining.mine_shard import MineSettings, ShardMiner
from counterprior.corpus_analysis.sources.shards import SourceSettings
ShardMiner(MineSettings(SourceSettings((".",))))
"""
SPACY = """
import spacy
from counterprior.corpus_analysis.captions.parser import installed_model
spacy.load(installed_model()[0])
"""


def ran(*arguments: str) -> dict[str, float]:
    """Wall and CPU seconds of Python with these arguments, all its processes counted."""
    import resource

    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    quiet = subprocess.DEVNULL
    subprocess.run([sys.executable, *arguments], check=True, stdout=quiet, stderr=quiet)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu}


def start(script: str, repeats: int) -> dict[str, float]:
    """The medians for a process that only starts, imports counted."""
    runs = [ran("-c", script) for _ in range(repeats)]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def run_mine(source: Path, workers: int) -> dict[str, float]:
    """Wall, CPU and largest memory of a whole run of the command."""
    with tempfile.TemporaryDirectory() as out:
        command = ["-m", "counterprior", "corpus", "mine", str(source), "--out", out]
        run = ran(*command, "--workers", str(workers))
        manifest = Path(out, "manifest.jsonl").read_text().splitlines()
    return run | {
        "mined_cpu": sum(json.loads(line)["cpu_s"]["all"] for line in manifest),
        "memory_mb": max(json.loads(line)["peak_mb"] for line in manifest),
    }


def spread(folder: Path, target: Path, copies: int) -> None:
    """The sets as small parquet files, copied: work enough for start-up not to matter."""
    import pyarrow.parquet as pq

    for name in SETS.values():
        table = pq.read_table(folder / f"{name}.parquet", columns=["url", "caption"])
        for copy in range(copies):
            for part in range(0, len(table), 5000):
                pq.write_table(table.slice(part, 5000), target / f"{name}-{copy}-{part}.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("captions", type=Path, help="folder of the two parquet files")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--copies", type=int, default=36, help="of the sets, for the runs")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    folder = options.captions
    os.environ.update({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1"})

    found: dict[str, object] = {}
    for title, name in SETS.items():
        path = folder / f"{name}.parquet"
        mine = ours(path, options.repeats)
        spacy = statistics.median(apart(peer, path, options.repeats))
        found[title] = {
            "captions": mine["captions"],
            "parsed_share": mine["parsed"] / mine["captions"],
            "spacy_per_cpu_s": mine["captions"] / spacy,
            "ours_per_cpu_s": mine["captions"] / mine["first"],
            "ratio": spacy / mine["first"],
            "ratio_least": spacy / mine["first_most"],
            "ratio_most": spacy / mine["first_least"],
            "ratio_with_gate": spacy / (mine["first"] + mine["gate"]),
            "ratio_warm": spacy / mine["again"],
            "prefilter_share": mine["prefilter"] / mine["first"],
            "prefilter_share_of_so_few": mine["prefilter_alone"] / mine["first"],
            "gate_share": mine["gate"] / mine["first"],
            "scan_against_decode_and_one_pass": mine["decode_and_one_pass"] / mine["scan"],
            "prefilter_s_per_million": mine["prefilter"] / mine["captions"] * 1e6,
            "gate_s_per_million": mine["gate"] / mine["captions"] * 1e6,
        }
        print(title, json.dumps(found[title], indent=1), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary)
        spread(folder, source, options.copies)
        first = min(source.iterdir())
        start_up = run_mine(first, 1)["wall"]  # with 5,000 captions: under a second
        one, two = (run_mine(source, workers) for workers in (1, 2))
    worker, plain = start(WORKER, options.repeats), start(SPACY, options.repeats)
    found["runs"] = {
        "worker_start_wall_s": worker["wall"],
        "worker_start_cpu_s": worker["cpu"],
        "worker_start_cpu_against_spacy": worker["cpu"] / plain["cpu"],
        "two_workers_wall": one["wall"] / two["wall"],
        "two_workers_wall_after_start_up": (one["wall"] - start_up) / (two["wall"] - start_up),
        "cpu_of_two_against_one": two["cpu"] / one["cpu"],
        "cores_of_two": two["cpu"] / two["wall"],
        "start_up_s": start_up,
        "memory_mb_a_worker": max(run["memory_mb"] for run in (one, two)),
        "one": one,
        "two": two,
    }
    print(json.dumps(found["runs"], indent=1))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
