"""The long commands, killed and failed at every operation: nothing is lost, nothing paid twice.

The operations are counted in one undisturbed run: every write, rename, fsync, folder made or
removed below the folder of the journey, and everything sent and received. At each the command is
killed (before it, or in the middle of a write), interrupted, or told that the disk is full or
broken. Then the same command is run again, and its results are those of the undisturbed run.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from breaking import FAULTS, HOWS, NETWORK
from forking import ForkingCommand
from PIL import Image
from published import published_run
from releases import RULES, small_release

from counterprior.release import verify


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
    environment: Mapping[str, str] = field(default_factory=dict)


def files(root: Path, left_out: Sequence[str] = ()) -> dict[str, bytes]:
    """What a command has made: neither locks nor what a killed process was about to write."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_dir() or path.suffix in (".lock", ".partial") or "spending.jsonl" in name:
            continue
        if not any(part in name for part in left_out):
            found[name] = path.read_bytes()
    return found


class Attack:
    """Runs one journey again and again."""

    def __init__(self, cli: ForkingCommand, journey: Journey, folder: Path) -> None:
        self.cli, self.journey, self.folder = cli, journey, folder
        self.root = folder / "here"
        self.log = folder / "operations"
        self.expected: dict[str, bytes] = {}
        self.calls = 0

    def run(self, at: int = 0, how: str = "") -> Any:
        told = {"below": str(self.root), "log": str(self.log), "at": at, "how": how}
        self.log.unlink(missing_ok=True)
        environment = {**os.environ, **self.journey.environment}
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
        self.expected = files(self.root, self.journey.left_out)
        self.journey.check(self.root)
        return self.log.read_text(errors="replace").splitlines()

    def survives(self, at: int, how: str) -> None:
        """The command with one thing going wrong, and again."""
        self.start()
        before = self.journey.paid()
        failed = self.run(at, how)
        place = f"{how} at {at}, {self.last(at)}: {failed.stderr}"
        codes = {"kill": (-9,), "torn": (-9,), "interrupt": (130, 0)}.get(how, (0, 1, 2))
        # What had all been done when it went wrong is a success.
        assert failed.returncode in (*codes, *self.journey.again), place
        assert "Traceback" not in failed.stderr, place
        lines = [line for line in failed.stderr.splitlines() if line.startswith("counterprior: ")]
        assert not failed.returncode > 0 or lines, place
        self.journey.check(self.root)
        done = self.run()
        assert done.returncode in self.journey.again, f"{place}\nagain: {done.stderr}"
        found = files(self.root, self.journey.left_out)
        differing = [n for n in {**found, **self.expected} if found.get(n) != self.expected.get(n)]
        assert not differing, f"{place}\n{differing}"
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
        left_out=("study/cells.jsonl",),  # how each cell ended, each time
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
    words = ["captioning", "--captioner", server.spec("openai"), "--scenes", 2]
    words += ["--wording", "describe", "--concurrency", 1]
    return Journey(lambda root: [*words, "--out", root / "run"], paid=lambda: len(server.asked))


def mining(request: pytest.FixtureRequest) -> Journey:
    request.getfixturevalue("parser")
    rows = [{"caption": f"a cat and a dog, {n}", "url": f"http://a.test/{n}"} for n in range(4)]

    def prepare(root: Path) -> None:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (root / "captions.jsonl").write_text(text)

    return Journey(
        lambda root: ["mine", root / "captions.jsonl", "--out", root / "mined"],
        prepare,
        left_out=("mined/manifest.jsonl",),  # how long each shard took
    )


def publishing(request: pytest.FixtureRequest) -> Journey:
    words = ["--repo-id", "me/here", "--license", "cc-by-4.0", "--dry-run"]
    return Journey(
        lambda root: ["publish", root / "run", "--out", root / "published", *words],
        lambda root: published_run(root / "run", "t2i_homogenization", "g", rows=2),
        again=(1,),  # the folder is written; nobody has a token to look at the Hub with
    )


JOURNEYS: dict[str, Callable[[pytest.FixtureRequest], Journey]] = {
    "author": authoring,
    "build": building,
    "captioning": captioning,
    "eval": evaluating,
    "mine": mining,
    "publish": publishing,
    "study": studying,
}


@pytest.fixture(scope="session")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of one row less, which a build replaces."""
    return small_release(tmp_path_factory.mktemp("older") / "release", rows=lambda rows: rows[1:])


@pytest.fixture(scope="session")
def parser() -> None:
    from counterprior.corpus_analysis.captions.parser import ModelMissing, installed_model

    try:
        installed_model()
    except ModelMissing as error:
        pytest.skip(str(error))


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
            told(f"{how}: {what}", False)
        else:
            told(f"{how}: {what}", True)
    assert not lost, "\n\n".join(lost)


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
    kinds = [operation.split()[0] for operation in attack.operations()]
    points = [
        (at, how)
        for at, kind in enumerate(kinds, 1)
        if (how != "torn" or kind == "write") and (how not in FAULTS or kind not in NETWORK)
    ]
    attack_at(attack, points, survived, name)


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
