"""What Ray adds to mining: two nodes on this machine against two processes.

    python benchmarks/nodes.py CAPTIONS [--captions 20000] [--runs 5]

Needs the extra `ray`. CAPTIONS as in `load.py`; two nodes with a core each mine what `--workers 2`
does without Ray. The CPU time of Ray's is that of the command, without the nodes and their workers.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import load
from figures import CLOCK, CPU, PEAK, RUNS, Cost, Figures, command

NODES_SECONDS = 180
"""Time for the nodes to join."""


@contextmanager
def two_nodes() -> Iterator[dict[str, str]]:
    """Environment of a command that runs on two nodes of one core each."""
    with tempfile.TemporaryDirectory(prefix="ray") as folder:  # names of sockets must be short
        own = {
            "RAY_TMPDIR": folder,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }
        ray = str(Path(sys.executable).with_name("ray"))
        nodes = []
        try:
            for place in (["--head", "--port=6379"], ["--address=127.0.0.1:6379"]):
                line = [ray, "start", *place, "--num-cpus=1", "--block"]
                environment = os.environ | own
                nodes.append(subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL))
                await_nodes(len(nodes), own)
            yield own | {"RAY_ADDRESS": "127.0.0.1:6379"}
        finally:
            for node in reversed(nodes):
                node.terminate()
                node.wait(60)


def await_nodes(number: int, own: Mapping[str, str]) -> None:
    """Until so many nodes have joined. Raises SystemExit if they do not."""
    ask = "import ray; ray.init('127.0.0.1:6379'); print(sum(n['Alive'] for n in ray.nodes()))"
    deadline = time.monotonic() + NODES_SECONDS
    while time.monotonic() < deadline:
        line = [sys.executable, "-c", ask]
        answer = subprocess.run(line, env=os.environ | own, capture_output=True, text=True)
        if answer.stdout.strip() == str(number):
            return
        time.sleep(1)
    raise SystemExit(f"node {number} has not joined: {answer.stderr[-2000:]}")


def compare(folder: Path, total: int, runs: int) -> None:
    figures = Figures("nodes", f"python benchmarks/nodes.py CAPTIONS --captions {total}")
    local, ray = list[Cost](), list[Cost]()
    with tempfile.TemporaryDirectory() as temporary, two_nodes() as nodes:
        source = Path(temporary, "captions")
        load.write_captions(folder, source, total, total // 8)
        mine = ("corpus", "mine", str(source), "--workers", "2", "--out")
        for number in range(runs):
            local.append(command(*mine, f"{temporary}/local-{number}"))
            out = f"{temporary}/ray-{number}"
            ray.append(command(*mine, out, "--engine", "ray", environment=nodes))
            pairs = [Path(temporary, f"{how}-{number}", "pairs") for how in ("local", "ray")]
            files = [{f.name: f.read_bytes() for f in path.iterdir()} for path in pairs]
            assert files[0] == files[1], "Ray wrote other pairs"
    figures.costs(f"`--workers 2`, {total:,} captions", local)
    figures.add(
        "`--engine ray --workers 2` on two nodes",
        {
            CPU: [cost.cpu_seconds for cost in ray],
            CLOCK: [cost.seconds for cost in ray],
            PEAK: [cost.peak_mb for cost in ray],
            "ratio of the clock": [
                there.seconds / here.seconds for there, here in zip(ray, local, strict=True)
            ],
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, metavar="CAPTIONS")
    parser.add_argument("--captions", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=RUNS)
    asked = parser.parse_args()
    compare(asked.folder, asked.captions, asked.runs)


if __name__ == "__main__":
    main()
