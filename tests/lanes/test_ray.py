"""Opt-in: what runs on Ray writes the bytes of what runs here, on a Ray of its own here."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

pytestmark = [pytest.mark.lane, pytest.mark.online]

CLUSTER = Path(__file__).parents[2] / "examples" / "ray-cluster.yaml"
GOLDEN = Path(__file__).parents[1] / "golden" / "captions.jsonl"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has Ray besides all that this one has."""
    environment = tmp_path_factory.mktemp("ray") / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    site = environment / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    # Added as a site folder, so that what is installed there in editable mode is found too.
    here = sysconfig.get_paths()["purelib"]
    (site / "these.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    found = environment / "bin" / "python"
    subprocess.run([found, "-m", "pip", "install", "--quiet", "ray>=2.40"], check=True)
    return found


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """Six shards."""
    texts = [json.loads(line)["caption"] for line in GOLDEN.read_text().splitlines()]
    source = tmp_path / "captions"
    source.mkdir()
    for number in range(6):
        part = texts[number::6]
        urls = [f"http://x/{number}/{i}" for i in range(len(part))]
        pq.write_table(pa.table({"url": urls, "caption": part}), source / f"{number}.parquet")
    return source


def pairs_of(mined: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((mined / "pairs").iterdir())}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ray_writes_the_same_bytes(
    python: Path, captions: Path, tmp_path: Path, workers: str
) -> None:
    found = {}
    for engine, interpreter in (("ray", python), ("local", Path(sys.executable))):
        out = tmp_path / engine
        command = [interpreter, "-m", "counterprior", "corpus", "mine", captions, "--out", out]
        done = subprocess.run(
            [*command, "--engine", engine, "--workers", workers],
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found[engine] = pairs_of(out)
    assert found["ray"] == found["local"]
    assert len(found["ray"]) == 6


def test_a_cluster_of_two_nodes_mines_what_one_machine_does(
    python: Path, captions: Path, tmp_path: Path
) -> None:
    plan = yaml.safe_load(CLUSTER.read_text())
    check = "import json, sys; from ray.autoscaler._private import util; "
    check += "util.validate_config(util.prepare_config(json.load(sys.stdin)))"
    subprocess.run([python, "-c", check], input=json.dumps(plan), text=True, check=True)
    mine = ["-m", "counterprior", "corpus", "mine", captions, "--out"]
    subprocess.run([sys.executable, *mine, tmp_path / "here"], check=True, timeout=400)
    # Each node is a Ray of its own, started by the file's own lines, with two CPUs: three workers
    # have room on no one of them.
    with tempfile.TemporaryDirectory(prefix="ray") as folder:  # names of sockets must be short
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]]),
            "RAY_HEAD_IP": "127.0.0.1",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_TMPDIR": folder,
            "RAY_AUTH_MODE": "token",
            "RAY_ADDRESS": "127.0.0.1:6379",
        }
        nodes = []
        try:
            for kind in ("head", "worker"):
                stop, start = plan[f"{kind}_start_ray_commands"]
                assert stop == "ray stop"
                without = {k: v for k, v in environment.items() if k != "RAY_ADDRESS"}
                line = ["sh", "-c", f"exec env {start} --num-cpus=2 --block"]
                nodes.append(subprocess.Popen(line, env=without, stdout=subprocess.DEVNULL))
                await_nodes(python, environment, len(nodes))
            words = [*mine, tmp_path / "there", "--engine", "ray", "--workers", "3"]
            subprocess.run([python, *words], env=environment, check=True, timeout=400)
        finally:
            for node in reversed(nodes):
                node.terminate()
                node.wait(60)
    assert pairs_of(tmp_path / "there") == pairs_of(tmp_path / "here")
    assert len(pairs_of(tmp_path / "there")) == 6


def await_nodes(python: Path, environment: Mapping[str, str], number: int) -> None:
    """Until so many nodes have joined."""
    ask = "import ray; ray.init(); print(sum(node['Alive'] for node in ray.nodes()))"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        command = [str(python), "-c", ask]
        told = subprocess.run(command, env=environment, capture_output=True, text=True)
        if told.stdout.strip() == str(number):
            return
        time.sleep(1)
    pytest.fail(f"{number} nodes have not joined: {told.stdout}{told.stderr[-2000:]}")


def contents(run: Path) -> tuple[dict[str, str], list[str]]:
    """SHA-256 of every image, and every verdict."""
    images = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (run / "images").iterdir()
    }
    logs = run.glob("verdicts/*/verdicts.jsonl")
    return images, sorted(line for log in logs for line in log.read_text().splitlines())


def test_a_run_on_ray_is_a_run_here(python: Path, text_release: Path, tmp_path: Path) -> None:
    found = {}
    for interpreter, more in (
        (python, ["--engine", "ray", "--workers", "2"]),
        (sys.executable, []),
    ):
        out = tmp_path / f"{len(more)}"
        words = ["--suite", "t2i_homogenization", "--data", text_release, "--limit", "10"]
        words += ["--generator", "render:", "--judge", "pixels", "--probes", "mirror", "--out", out]
        command = [interpreter, "-m", "counterprior", "eval", *words, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stderr[-3000:]
        found[bool(more)] = contents(out)
    assert found[True] == found[False] and len(found[True][0]) == 20


@pytest.mark.parametrize("victim", ["actor", "driver"])
def test_what_dies_on_ray_costs_what_it_had(
    python: Path, text_release: Path, tmp_path: Path, server: Any, victim: str
) -> None:
    seen, run = tmp_path / "seen", tmp_path / "run"
    seen.mkdir()
    spec = f"python:piecework:Telling?url={server.url}&folder={seen}&seconds=0.3"
    words = ["--suite", "t2i_homogenization", "--data", text_release, "--limit", "10"]
    words += ["--generator", spec, "--out", run, "--engine", "ray", "--workers", "2"]
    command = [str(word) for word in (python, "-m", "counterprior", "generate", *words)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    log = run / "images.jsonl"
    deadline = time.monotonic() + 200
    while (not log.exists() or not log.read_bytes()) and time.monotonic() < deadline:
        time.sleep(0.01)
    pids = [int(path.stem) for path in seen.glob("*.worker")]
    os.kill(pids[0] if victim == "actor" else process.pid, signal.SIGKILL)
    _, told = process.communicate(timeout=200)
    if victim == "driver":
        subprocess.run(command, env=environment, check=True, timeout=200)
    else:
        assert process.returncode == 0, told[-3000:]
    counts = Counter(asked.body["prompt"] for asked in server.asked)
    assert len(counts) == 20 == len(log.read_text().splitlines())
    assert counts.total() - 20 <= (1 if victim == "actor" else 2) * 3


def test_shards_of_a_study_on_ray_are_the_study_here(
    python: Path, text_release: Path, tmp_path: Path
) -> None:
    suites = {"t2i_homogenization": {"limit": 6}}
    file = tmp_path / "s.yaml"
    generators = {"fair": "render:", "biased": "render:?order_bias=3"}
    plain = {"data": str(text_release), "suites": suites, "generators": generators}
    file.write_text(json.dumps(plain | {"judges": {"p": "pixels"}}))  # JSON is YAML
    study = ["-m", "counterprior", "study"]

    def shard(part: str) -> subprocess.Popen[str]:
        words = [*study, "run", file, "--out", tmp_path / "ray", "--shard", part]
        more = ["--engine", "ray", "--workers", "2"]
        return subprocess.Popen([python, *words, *more], stderr=subprocess.PIPE, text=True)

    running = [shard("1/2"), shard("2/2")]
    alone = [sys.executable, *study, "run", file, "--out", tmp_path / "here"]
    subprocess.run(alone, check=True, timeout=400)
    for process in running:
        told = process.communicate(timeout=400)[1]
        assert process.returncode == 0, told[-3000:]
    tables = []
    for name in ("ray", "here"):
        runs = sorted((tmp_path / name).glob("runs/*/*"))
        table = [sys.executable, *study, "table", tmp_path / name, "--format", "json"]
        tables.append(subprocess.run(table, check=True, capture_output=True, timeout=400).stdout)
        tables.append([contents(run)[0] for run in runs])
        lines = (p.read_text().splitlines() for run in runs for p in run.glob("verdicts/*/*.jsonl"))
        said = [{**json.loads(line), "session": 0} for part in lines for line in part]
        tables.append(sorted(json.dumps(one, sort_keys=True) for one in said))
    assert tables[:3] == tables[3:] and len(tables[2]) == 24
