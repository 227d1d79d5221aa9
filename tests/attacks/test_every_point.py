"""The long commands, killed and failed at every operation: nothing is lost, nothing paid twice.

The operations are counted in one undisturbed run: every write, rename, fsync, folder made or
removed below the folder of the journey, and everything sent and received. At each, or at a sample
of them, the command is killed (before it, or in the middle of a write), interrupted, or told that
the disk is full or broken. Then the same command is run again, and its results are those of the
undisturbed run.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from breaking import FAULTS, HOWS, NETWORK
from flip_sets import last_checkpoint, trained_losses, trained_weights, write_flips
from forking import ForkingCommand
from loopback_hub import LoopbackHub
from PIL import Image
from published import published_run
from releases import RULES, small_release

from counterprior.release import verify

POINTS = int(os.environ.get("ATTACK_POINTS", "40"))
"""Of one command and one way to go wrong, at most so many points: those that are the first of their
kind, and a sample of the others."""


@dataclass
class Journey:
    """One long command, and what must come of it."""

    words: Callable[[Path], Sequence[object]]
    """The command in a folder."""
    prepare: Callable[[Path], object] = lambda root: None
    """Puts there what it needs."""
    paid: Callable[[], int] = lambda: 0
    """Calls that the server has seen so far."""
    check: Callable[[Path], object] = lambda root: None
    """What must hold at any moment, also after a kill."""
    again: tuple[int, ...] = (0,)
    """Exit codes of an undisturbed run."""
    left_out: tuple[str, ...] = ()
    """Names of files that tell of a run's troubles, and so differ."""
    results: Callable[[Path], object] = lambda root: None
    """What has come of it besides the bytes of its files."""
    environment: Callable[[Path], Mapping[str, str]] = lambda root: {}
    also: tuple[str, ...] = ()
    """Modules with a slow import, which it needs."""
    worker: bool = False
    """Whether what goes wrong does in a worker that it starts."""
    points: int = POINTS
    """See `POINTS`."""


def files(root: Path, left_out: Sequence[str] = ()) -> dict[str, bytes]:
    """What a command has made: neither locks nor what a killed process was about to write."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        # What a run remembers of its files are times and inodes.
        remembered = path.name == "checked.txt"
        if (
            path.is_dir()
            or remembered
            or path.suffix in (".lock", ".lease", ".partial")
            or "spending.jsonl" in name
        ):
            continue
        if not any(part in name for part in left_out):
            found[name] = path.read_bytes()
    return found


class Attack:
    """Runs one journey again and again."""

    def __init__(self, cli: ForkingCommand, journey: Journey, folder: Path) -> None:
        self.journey, self.folder = journey, folder
        self.root = folder / "here"
        self.log = folder / "operations"
        self.expected: tuple[dict[str, bytes], object] = {}, None
        self.calls = 0
        self.own = ExitStack()
        self.environment = journey.environment(self.root)
        if journey.also:
            (folder / "printed").mkdir()
            cli = ForkingCommand(folder / "printed", journey.also, self.environment)
            self.own.callback(cli.close)
        self.cli = cli

    def run(self, at: int = 0, how: str = "") -> Any:
        told: dict[str, Any] = {"below": str(self.root), "log": str(self.log), "at": at, "how": how}
        told["worker"] = self.journey.worker
        self.log.unlink(missing_ok=True)
        environment = {**os.environ, **self.environment}
        return self.cli(
            *self.journey.words(self.root), env=environment, cwd=self.root, breaking=told
        )

    def start(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        self.journey.prepare(self.root)

    def operations(self) -> list[str]:
        """What the undisturbed command does; keeps what came of it."""
        self.start()
        before = self.journey.paid()
        done = self.run()
        assert done.returncode in self.journey.again, done.stderr
        self.calls = self.journey.paid() - before
        self.expected = self.found()
        self.journey.check(self.root)
        return self.log.read_text(errors="replace").splitlines()

    def found(self) -> tuple[dict[str, bytes], object]:
        """What the command has made."""
        return files(self.root, self.journey.left_out), self.journey.results(self.root)

    def survives(self, at: int, how: str) -> None:
        """The command with one thing going wrong, and again."""
        self.start()
        before = self.journey.paid()
        failed = self.run(at, how)
        place = f"{how} at {at}, {self.last(at)}: {failed.stderr}"
        codes = {"kill": (-9,), "torn": (-9,), "interrupt": (130, 0)}.get(how, (0, 1, 2))
        if self.journey.worker:  # another one goes on, or the command says why not
            codes = (*codes, 1)
        # What had all been done when it went wrong is a success.
        assert failed.returncode in (*codes, *self.journey.again), place
        assert "Traceback" not in failed.stderr, place
        lines = [line for line in failed.stderr.splitlines() if line.startswith("counterprior: ")]
        assert not failed.returncode > 0 or lines, place
        self.journey.check(self.root)
        done = self.run()
        assert done.returncode in self.journey.again, f"{place}\nagain: {done.stderr}"
        (found, results), (expected, others) = self.found(), self.expected
        differing = [n for n in {**found, **expected} if found.get(n) != expected.get(n)]
        assert not differing, f"{place}\n{differing}"
        assert results == others, place
        self.journey.check(self.root)
        # One call is on its way when a process dies.
        assert self.calls <= self.journey.paid() - before <= self.calls + 1, place

    def last(self, at: int) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return lines[at - 1] if at <= len(lines) else f"beyond {len(lines)}"


# --- the journeys ------------------------------------------------------------------------------


def red(body: dict[str, Any]) -> bytes:
    buffer = BytesIO()
    Image.new("RGB", (32, 32), "red").save(buffer, "PNG")
    return buffer.getvalue()


PRICES = "openai:m-1: {input: 0, output: 1000}\nopenai-image:i: {image: 1, edit: 1}\n"


def building(request: pytest.FixtureRequest) -> Journey:
    older = request.getfixturevalue("older")

    def check(root: Path) -> None:
        """The old or the new release, whole; its place is empty only between two renames."""
        kept = [p for p in (root / "release", root / ".release.previous") if p.exists()]
        assert any(not verify(path) for path in kept)

    return Journey(
        lambda root: ["build", "--out", root / "release", "--config", RULES],
        lambda root: shutil.copytree(older, root / "release"),
        check=check,
    )


def evaluating(request: pytest.FixtureRequest) -> Journey:
    server, data = (request.getfixturevalue(name) for name in ("server", "text_release"))
    server.draw, server.answer = red, lambda body: "1"
    words = ["eval", "--suite", "t2i_homogenization", "--data", data, "--limit", 1]
    words += ["--generator", f"openai-image:i@{server.url}/v1", "--judge", server.spec("openai")]
    words += ["--concurrency", 1, "--prices", "prices.yaml", "--max-usd", 5]
    return Journey(
        lambda root: [*words, "--out", root / "run"],
        lambda root: (root / "prices.yaml").write_text(PRICES),
        paid=lambda: len(server.asked),
    )


def studying(request: pytest.FixtureRequest) -> Journey:
    server, data = (request.getfixturevalue(name) for name in ("server", "text_release"))
    server.draw, server.answer = red, lambda body: "1"
    plain = {
        "data": str(data),
        "suites": {"t2i_homogenization": {"limit": 1}, "spatial_uc": {"limit": 1}},
        "generators": {"i": f"openai-image:i@{server.url}/v1"},
        "judges": {"m": server.spec("openai")},
        "concurrency": 1,
    }

    def prepare(root: Path) -> None:
        (root / "prices.yaml").write_text(PRICES)
        told = plain | {"prices": str(root / "prices.yaml")}
        (root / "study.yaml").write_text(yaml.safe_dump(told))

    return Journey(
        lambda root: [
            *("study", "run", root / "study.yaml", "--out", root / "study"),
            *("--max-usd", 9),
        ],
        prepare,
        paid=lambda: len(server.asked),
        # How each cell ended, each time; calls in the order in which they were made, which is
        # another one where a cell that failed was left for later.
        left_out=("study/cells.jsonl", "study/ledgers/openai-"),
        results=lambda root: [
            sorted(path.read_text().splitlines())
            for path in root.glob("study/ledgers/openai-*.jsonl")
        ],
    )


def authoring(request: pytest.FixtureRequest) -> Journey:
    stage, bank = (request.getfixturevalue(name) for name in ("stage", "small_bank"))
    words = ["author", "constrained", "--backend", stage.spec("openai"), "--rounds", 2]
    return Journey(
        lambda root: [*words, "--base", bank, "--ledger", root / "l", "--bank", root / "bank"],
        paid=lambda: len(stage.asked),
    )


def captioning(request: pytest.FixtureRequest) -> Journey:
    server = request.getfixturevalue("server")
    request.getfixturevalue("parser")
    server.answer = lambda body: "A cat and a dog."
    words = ["corpus", "captioning", "--captioner", server.spec("openai"), "--scenes", 2]
    words += ["--wording", "describe", "--concurrency", 1]
    return Journey(
        lambda root: [*words, "--out", root / "run"],
        paid=lambda: len(server.asked),
        also=("torch", "spacy"),
        points=min(POINTS, 20),
    )


def mining(request: pytest.FixtureRequest, worker: bool = False) -> Journey:
    request.getfixturevalue("parser")
    words = ["corpus", "mine", "--workers", 1]
    rows = [{"caption": f"a cat and a dog, {n}", "url": f"http://a.test/{n}"} for n in range(4)]

    def prepare(root: Path) -> None:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (root / "captions.jsonl").write_text(text)

    return Journey(
        lambda root: [*words, root / "captions.jsonl", "--out", root / "mined"],
        prepare,
        left_out=("mined/manifest.jsonl",),  # how long each shard took
        worker=worker,
        points=min(POINTS, 10),  # each starts processes that load spaCy
    )


def publishing(request: pytest.FixtureRequest) -> Journey:
    words = ["--repo-id", "me/here", "--license", "cc-by-4.0", "--dry-run"]
    return Journey(
        lambda root: ["publish", root / "run", "--out", root / "published", *words],
        lambda root: published_run(root / "run", "t2i_homogenization", "g", rows=2),
        again=(1,),  # the folder is written; nobody has a token to look at the Hub with
    )


def pushing(request: pytest.FixtureRequest) -> Journey:
    whole, hub = (request.getfixturevalue(name) for name in ("whole", "hub"))
    seen: dict[str, Any] = {"before": 0}
    repository = "tester/bench"

    def prepare(root: Path) -> None:
        shutil.rmtree(hub.root / "repositories", ignore_errors=True)  # all that a Hub keeps
        seen["before"] = commits()
        shutil.copytree(whole, root / "release")
        (root / "temporary").mkdir()

    def commits() -> int:
        made = (r.path for r in hub.requests if r.method == "POST" and r.status == 200)
        return sum(path.endswith("/commit/main") for path in made)

    def check(root: Path) -> None:
        """Main is empty or the new release, of one commit; the tag is of the new release."""
        if not hub.exists(repository):
            return
        main = {n: d for n, d in hub.tree(repository, "main").items() if n != ".gitattributes"}
        assert not main or main == seen.setdefault("release", main)
        tags = hub.tags(repository)
        assert tags in ({}, {"v1.0.0": hub.head(repository)}) and (main or not tags)
        assert commits() - seen["before"] <= 1

    return Journey(
        lambda root: [
            *("push", root / "release", "--repo-id", repository, "--version", "1.0.0"),
            *("--date", "2020-01-02", "--create", "--endpoint", hub.url),
        ],
        prepare,
        paid=commits,
        check=check,
        left_out=("temporary/", "home/"),
        results=lambda root: hub.tags(repository).keys(),
        environment=lambda root: (
            hub.environment | {"HF_HOME": str(root / "home"), "TMPDIR": str(root / "temporary")}
        ),
        also=("huggingface_hub.hf_api", "huggingface_hub._snapshot_download", "datasets"),
        points=min(POINTS, 10),  # each with two processes that read what the Hub has
    )


def tuning(request: pytest.FixtureRequest) -> Journey:
    server, flips = (request.getfixturevalue(name) for name in ("server", "flips"))
    model = f"diffusers:{request.getfixturevalue('checkpoint')('sd3')}"
    server.answer = lambda body: "1"
    words = ["tune", "--flips", flips, "--held-out", 1, "--validate-every", 2]
    words += ["--model", f"{model}?device=cpu&steps=2&height=64&width=64", "--size", 64]
    words += ["--rank", 2, "--conv-rank", 2, "--steps", 3, "--checkpoint-every", 1]
    words += ["--optimizer", "adamw", "--judge", server.spec("openai"), "--max-usd", 5]
    return Journey(
        lambda root: [*words, "--prices", root / "prices.yaml", "--out", root / "lora"],
        lambda root: (root / "prices.yaml").write_text(PRICES),
        paid=lambda: len(server.asked),
        # Steps after the last checkpoint are taken and noted twice; equal weights and states are
        # written in other bytes: names in any order, a text once or twice.
        left_out=(
            *("lora/losses.jsonl", "lora/checkpoint.pt"),
            "lora/pytorch_lora_weights.safetensors",
        ),
        results=lambda root: (
            trained_losses(root / "lora"),
            trained_weights(root / "lora"),
            last_checkpoint(root / "lora"),
        ),
        also=("accelerate", "diffusers", "peft", "safetensors.torch", "transformers"),
        points=min(POINTS, 20),
    )


JOURNEYS: dict[str, Callable[[pytest.FixtureRequest], Journey]] = {
    "author": authoring,
    "build": building,
    "captioning": captioning,
    "eval": evaluating,
    "mine": mining,
    "mine's worker": partial(mining, worker=True),
    "publish": publishing,
    "push": pushing,
    "study": studying,
    "tune": tuning,
}


@pytest.fixture(scope="session")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of one row less, which a build replaces."""
    return small_release(tmp_path_factory.mktemp("older") / "release", rows=lambda rows: rows[1:])


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that can be pushed."""
    return small_release(tmp_path_factory.mktemp("whole") / "release")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LoopbackHub]:
    with LoopbackHub(tmp_path / "hub") as running:
        yield running


@pytest.fixture
def flips(tmp_path: Path) -> Path:
    return write_flips(tmp_path / "flips")


@pytest.fixture(scope="session")
def parser() -> None:
    from counterprior.corpus_analysis.captions.parser import ModelMissing, installed_model

    try:
        installed_model()
    except ModelMissing as error:
        pytest.skip(str(error))


def sampled(operations: Sequence[str], how: str, most: int) -> list[int]:
    """The points, from 1, at which something can go wrong in this way; at most so many.

    First of each kind of operation on each kind of file, then as chance has it.
    """
    of_kind: dict[str, int] = {}
    others = []
    for at, operation in enumerate(operations, 1):
        kind = operation.split()[0]
        if (how == "torn" and kind != "write") or (how in FAULTS and kind in NETWORK):
            continue
        place = re.sub(r"[0-9a-f]{8,}|\d+", "#", operation)
        if of_kind.setdefault(place, at) != at:
            others.append(at)
    rng = random.Random(how)
    first = list(of_kind.values())
    chosen = first if len(first) <= most else rng.sample(first, most)
    return sorted([*chosen, *rng.sample(others, min(len(others), most - len(chosen)))])


def attack_at(
    attack: Attack, points: Sequence[tuple[int, str]], told: Callable[[str, bool], None], what: str
) -> None:
    """Attacks at each point, all of them before the first failure is reported."""
    lost = []
    for at, how in points:
        try:
            attack.survives(at, how)
        except AssertionError as error:
            lost.append(str(error))
            told(f"{what}, {how}", False)
        else:
            told(f"{what}, {how}", True)
    assert not lost, "\n\n".join(lost)


@pytest.mark.parametrize(
    "name",  # each cell of a study is run as `eval` runs it
    [
        "author",
        pytest.param("build", marks=pytest.mark.slow),
        pytest.param("eval", marks=pytest.mark.slow),
        pytest.param("study", marks=pytest.mark.lane),
    ],
)
def test_resumes_after_a_kill_and_a_torn_write(
    name: str,
    request: pytest.FixtureRequest,
    cli: ForkingCommand,
    tmp_path: Path,
    survived: Callable[[str, bool], None],
) -> None:
    """Two points of the lane, of the commands without a library that is slow to import: a kill at
    two thirds of the operations, and of those that evaluate the last write to a log."""
    attack = Attack(cli, JOURNEYS[name](request), tmp_path)
    operations = attack.operations()
    writes = [at for at, what in enumerate(operations, 1) if what.startswith("write")]
    logs = [at for at in writes if operations[at - 1].endswith(".jsonl")]
    points = [(2 * len(operations) // 3, "kill")]
    if name in ("eval", "study"):  # all write their logs alike
        points.append((logs[-1], "torn"))
    attack_at(attack, points, survived, name)


@pytest.mark.lane
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", JOURNEYS)
def test_a_command_survives_at_every_point(
    name: str,
    how: str,
    request: pytest.FixtureRequest,
    cli: ForkingCommand,
    tmp_path: Path,
    survived: Callable[[str, bool], None],
) -> None:
    attack = Attack(cli, JOURNEYS[name](request), tmp_path)
    with attack.own:
        operations = attack.operations()
        points = sampled(operations, how, attack.journey.points)
        of = len(sampled(operations, how, len(operations)))
        attack_at(attack, [(at, how) for at in points], survived, f"{name}, {of} points")


@pytest.mark.lane
def test_a_run_survives_where_it_begins_and_where_it_records(
    request: pytest.FixtureRequest,
    cli: ForkingCommand,
    tmp_path: Path,
    survived: Callable[[str, bool], None],
) -> None:
    """Two points of the lane: between the two files of a new run, and at the first record."""
    attack = Attack(cli, evaluating(request), tmp_path)
    done = attack.operations()
    begun = next(n for n, what in enumerate(done, 1) if "cases.jsonl" in what)
    record = next(n for n, what in enumerate(done, 1) if "write" in what and "images.jsonl" in what)
    attack_at(attack, [(begun, "kill"), (record, "full")], survived, "eval")
