"""The life of a release on the test Hub: four versions, each for ever what it was; its readers."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from forking import ForkingCommand
from loopback_hub import TOKEN, LoopbackHub
from pushing import REPO, at, online, push
from releases import ATTRIBUTES, RULES, revised, small_release

from counterprior.release import parquet_path

READER = """
import json, sys, time
import datasets, counterprior
from counterprior.schema import rows_digest

time.sleep = lambda seconds: None  # the libraries wait between their tries
for line in sys.stdin:
    found = []
    for config, revision, way, repo in json.loads(line):
        try:
            if way == "load":
                rows = counterprior.load(repo, config, revision=revision)
            else:
                rows = datasets.load_dataset(repo, config, split="test", revision=revision,
                                             streaming=way == "streaming")
            found.append(rows_digest(rows))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    print(json.dumps(found), flush=True)
"""


class Reader:
    """A process of its own, with caches of its own, that loads what it is told to."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def read(self, *asked: tuple[str, str | None, str]) -> Any:
        """For each config, revision and way, the digest of the rows or the error."""
        return self.ask([(*one, REPO) for one in asked])

    def ask(self, asked: list[tuple[str, str | None, str, str]]) -> Any:
        assert self.process.stdin and self.process.stdout
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


@contextmanager
def reading(hub: LoopbackHub, home: Path, **environment: str) -> Iterator[Reader]:
    with subprocess.Popen(
        [sys.executable, "-c", READER],
        env=hub.environment | {"HF_HOME": str(home)} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        yield Reader(process)


@dataclass(frozen=True)
class Life:
    """A Hub on disk with four versions of one release."""

    root: Path
    commits: dict[str, str]
    """Version -> commit."""
    digests: dict[str, dict[str, str]]
    """Version -> config -> logical digest."""


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """All versions are pushed from here."""
    root = tmp_path_factory.mktemp("life")
    one = small_release(root / "one")
    two = small_release(root / "two", (RULES, ATTRIBUTES))
    three = small_release(root / "three", (RULES, ATTRIBUTES), revised)
    versions = {"1.0.0": one, "1.0.1": one, "1.1.0": two, "2.0.0": three}
    with online(), LoopbackHub(root / "hub") as hub:
        commits = {
            version: push(build, at(hub.url, version)) for version, build in versions.items()
        }
        trees = {version: hub.tree(REPO, f"v{version}") for version in commits}
        assert hub.tags(REPO) == {f"v{version}": commit for version, commit in commits.items()}
    digests = {
        version: {
            name.partition("/")[0]: entry["rows_sha256"]
            for name, entry in json.loads(tree["checksums.json"])["files"].items()
            if "rows_sha256" in entry
        }
        for version, tree in trees.items()
    }
    return Life(root / "hub", commits, digests)


def run(
    cli: ForkingCommand, hub: LoopbackHub, *arguments: object
) -> "subprocess.CompletedProcess[str]":
    """The command line as a maintainer runs it; it tells nobody the token."""
    done = cli(*arguments, env=hub.environment)
    assert TOKEN not in done.stdout + done.stderr
    return done


@pytest.mark.slow
def test_a_version_is_pushed_and_verified_by_a_command(
    loopback_hub: LoopbackHub, cli: ForkingCommand, tmp_path: Path
) -> None:
    """`counterprior push`, with the cold cache's process; its plan is printed, then true."""
    hub, folder = loopback_hub, small_release(tmp_path / "one")
    command = ("push", folder, "--repo-id", REPO, "--version", "1.0.0", "--create", "--json")
    done = run(cli, hub, *command)
    assert done.returncode == 0, done.stderr
    commit = hub.head(REPO)
    assert json.loads(done.stdout)["steps"] == ["create", "commit", "verify", "tag"]
    assert f"{REPO}: v1.0.0 is {commit}, verified from a cold cache." in done.stderr
    # Its process, with a cache of its own, read and loaded all of the commit before the tag.
    paths = [request.path for request in hub.requests]
    made, tagged = (
        next(i for i, p in enumerate(paths) if part in p) for part in ("/commit/", "/tag/")
    )
    read = {path.partition(f"/resolve/{commit}/")[2] for path in paths[made:tagged]}
    assert read >= {*hub.tree(REPO, "main")} - {".gitattributes"}
    assert ".huggingface.yaml" in read, "`datasets` asks for it when it loads"
    assert not (hub.root / "client" / "hub").exists(), "not the maintainer's cache"
    _check_token_nowhere(tmp_path)


def _check_token_nowhere(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path


def test_the_token_is_nowhere_on_disk(life: Life) -> None:
    _check_token_nowhere(life.root.parent)


@pytest.mark.lane  # each reader is a process
def test_every_version_stays_what_it_was_for_every_kind_of_reader(
    life: Life, tmp_path: Path
) -> None:
    digests = life.digests
    assert digests["1.0.0"] == digests["1.0.1"] == {RULES: digests["1.0.0"][RULES]}
    assert digests["1.1.0"] == digests["1.0.0"] | {ATTRIBUTES: digests["1.1.0"][ATTRIBUTES]}
    assert digests["2.0.0"][ATTRIBUTES] == digests["1.1.0"][ATTRIBUTES]
    assert digests["2.0.0"][RULES] != digests["1.1.0"][RULES]
    asked: list[tuple[str, str | None, str]] = []
    expected = []
    for version, configs in [*digests.items(), ("main", digests["2.0.0"])]:
        revision = None if version == "main" else f"v{version}"
        for config, digest in configs.items():
            for way in ("load", "load_dataset", "streaming"):
                asked.append((config, revision, way))
                expected.append(digest)
    with LoopbackHub(life.root) as hub, reading(hub, tmp_path) as reader:
        assert reader.read(*asked) == expected


def test_the_changelog_and_the_errata_grow(life: Life) -> None:
    with LoopbackHub(life.root) as hub:
        tree = hub.tree(REPO, "main")
    text = tree["CHANGELOG.md"].decode()
    heads = [line.split()[1] for line in text.splitlines() if line.startswith("## ")]
    assert heads == ["2.0.0", "1.1.0", "1.0.1", "1.0.0"]
    assert text.count("* rule_decoupling: 1 row edited\n") == 1
    assert text.count("* Every row is unchanged.\n") == 1
    assert "| revised | Changed: status. |" in tree["ERRATA.md"].decode()


@pytest.mark.lane  # three readers of `datasets` itself; `test_release.py` has what `load` answers
def test_nothing_stale_is_returned(life: Life, tmp_path: Path) -> None:
    """The proven traps of `datasets`: it returns other rows, `load` says what is wrong."""
    old, new = life.digests["1.1.0"][RULES], life.digests["2.0.0"][RULES]
    commit = life.commits["1.1.0"]
    root = Path(shutil.copytree(life.root, tmp_path / "hub"))
    with LoopbackHub(root) as hub, reading(hub, tmp_path / "home") as reader:
        first, bogus, vanished = reader.read(
            (RULES, "v1.1.0", "load"), (RULES, "bogus", "load"), (ATTRIBUTES, "v1.0.0", "load")
        )
        assert first == old
        assert "has no revision 'bogus': see the tags" in bogus
        assert f"has no config '{ATTRIBUTES}'" in vanished
        assert "check the name" in reader.ask([(RULES, None, "load", "tester/nothing")])[0]
        # main loses a config that is cached.
        hub.commit(REPO, {parquet_path(RULES): None}, "Gone")
        stale, refused = reader.read((RULES, "main", "load_dataset"), (RULES, "main", "load"))
        assert stale == old != new, "datasets has mended it: the trap is gone"
        assert refused.startswith("ReleaseError") and "a stale cache or a changed file" in refused
        hub.stop()
        stale, *refusals, same = reader.read(
            (RULES, "v2.0.0", "load_dataset"),
            (RULES, "v2.0.0", "load"),
            (RULES, None, "load"),
            (RULES, life.commits["2.0.0"], "load"),
            (RULES, commit, "load"),
        )
        assert stale == old, "datasets has mended it: the trap is gone"
        assert same == old, "a cached commit needs no Hub"
        assert "can't be asked for its newest revision" in refusals.pop(1)
        for refused in refusals:
            assert "the Hub can't be asked for revision" in refused
            assert "give the 40-digit commit of a revision that you have loaded before" in refused
        with reading(hub, tmp_path / "home", HF_HUB_OFFLINE="1") as offline:
            same, refused = offline.read((RULES, commit, "load"), (RULES, "v1.1.0", "load"))
        assert same == old and "the Hub can't be asked for revision" in refused


@pytest.mark.lane  # one more reader; the same refusal as above, where `datasets` is what is stale
def test_a_foreign_cache_is_refused(life: Life, tmp_path: Path) -> None:
    """Rows in the cache under the name of a version that never held them."""
    wanted, other = ((RULES, life.commits[version], "load") for version in ("1.1.0", "2.0.0"))
    with LoopbackHub(life.root) as hub:
        with reading(hub, tmp_path) as reader:
            expected = [life.digests[version][RULES] for version in ("1.1.0", "2.0.0")]
            assert reader.read(wanted, other) == expected
            ours, theirs = (
                next(path for path in tmp_path.rglob("*.arrow") if commit in str(path))
                for _, commit, _ in (wanted, other)
            )
            # A new file in its place: the old one is mapped into the reader's memory.
            shutil.copy(theirs, tmp_path / "copy")
            os.replace(tmp_path / "copy", ours)
            (refused,) = reader.read(wanted)
        assert "a stale cache or a changed file. Load with another cache_dir=" in refused
