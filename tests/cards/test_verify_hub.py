"""`counterprior verify NAMESPACE/NAME`: whatever a release is not is named."""

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from loopback_hub import LoopbackHub
from pushing import REPO, at, online, push
from refusals import raises
from releases import RULES, small_release

from counterprior.cards.errors import HubError
from counterprior.cards.remote import Repository
from counterprior.cards.verify import verify_release
from counterprior.eval.engine import data
from counterprior.release import ReleaseError, iter_records, parquet_path

Files = dict[str, bytes]


@dataclass(frozen=True)
class Published:
    """A Hub with one release of one config."""

    hub: LoopbackHub
    files: Files


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    root = tmp_path_factory.mktemp("verify")
    with (
        online(),
        LoopbackHub(root / "hub") as hub,
        patch("huggingface_hub.constants.ENDPOINT", hub.url),
        patch(
            "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
            hub.url + "/{repo_id}/resolve/{revision}/{filename}",
        ),
    ):
        push(small_release(root / "build"), at(hub.url, "1.0.0"))
        yield Published(hub, hub.tree(REPO, "main"))


def found(repo: str, revision: str | None = None) -> list[str]:
    return [str(problem) for problem in verify_release(repo, revision).problems]


def test_an_unchanged_release_verifies_at_tag_branch_and_commit(published: Published) -> None:
    for revision in ("v1.0.0", "main", None, published.hub.head(REPO)):
        report = verify_release(REPO, revision)
        assert (report.problems, report.notes) == ((), ())
    assert report.checked == f"{REPO}@{published.hub.head(REPO)}"


def replaced(name: str, old: bytes, new: bytes) -> Callable[[Files], dict[str, bytes | None]]:
    def change(files: Files) -> dict[str, bytes | None]:
        assert old in files[name]
        return {name: files[name].replace(old, new, 1)}

    return change


def recorded(files: Files) -> dict[str, bytes | None]:
    """A Croissant entry of another file, with checksums that follow suit."""
    import hashlib

    text = files["croissant.json"].replace(b"/resolve/v1.0.0/", b"/resolve/main/")
    checksums = json.loads(files["checksums.json"])
    checksums["files"]["croissant.json"]["sha256"] = hashlib.sha256(text).hexdigest()
    return {"croissant.json": text, "checksums.json": json.dumps(checksums).encode()}


CHANGED = {
    "card": (replaced("README.md", b"| 198 |", b"| 199 |"), "README.md:line "),
    "bytes": (replaced("LICENSE", b"International", b"Local"), "LICENSE: bytes differ"),
    "missing": (lambda files: {"eval.yaml": None}, "eval.yaml: is missing"),
    "foreign": (lambda files: {"extra.md": b"x"}, "extra.md: is not in checksums.json"),
    "rows": (lambda files: {parquet_path(RULES): b"PAR1"}, f"{RULES}/test-00000-of-00001.parquet"),
    "manifest": (replaced("manifest.json", b'"rows": 198', b'"rows": 197'), "checksums.json:"),
    "croissant": (recorded, f"croissant.json:{parquet_path(RULES)}:contentUrl: says https://"),
    "address": (replaced("manifest.json", REPO.encode(), b"other/name"), "manifest.json:repo_id"),
}


@pytest.mark.parametrize("what", CHANGED)
def test_every_difference_is_named(published: Published, what: str) -> None:
    change, place = CHANGED[what]
    hub = published.hub
    hub.commit(REPO, change(published.files))
    try:
        problems = found(REPO)
        assert any(place in problem for problem in problems), problems
        if what == "card":  # a tag stays what it was
            assert found(REPO, "v1.0.0") == []
    finally:
        now = hub.tree(REPO, "main")
        hub.commit(REPO, dict.fromkeys(now.keys() - published.files.keys()) | published.files)


@pytest.mark.slow
def test_several_processes_name_the_same_problems_in_the_same_order(tmp_path: Path) -> None:
    root = small_release(tmp_path / "release")
    sound = (root / "croissant.json").read_text()
    (root / "croissant.json").write_text(sound.replace('"cr:Field"', '"cr:Fields"'))
    (root / parquet_path(RULES)).write_bytes(b"PAR1")
    alone = verify_release(str(root), as_reader=True)
    with patch("counterprior.cards.validate.LARGE", 0):
        beside = verify_release(str(root), as_reader=True, jobs=2)
    assert beside == alone
    texts = list(map(str, alone.problems))
    assert any("croissant.json: is not valid Croissant" in text for text in texts), texts
    assert any("can't be loaded" in text for text in texts), texts


def test_a_tag_that_was_moved_is_found(published: Published) -> None:
    api = Repository(REPO).api
    api.create_tag(REPO, tag="v7.0.0", revision="v1.0.0", repo_type="dataset")
    assert found(REPO, "v7.0.0") == ["manifest.json:changes: says 1.0.0, but the tag is v7.0.0"]
    api.delete_tag(REPO, tag="v7.0.0", repo_type="dataset")


@pytest.mark.slow
def test_a_run_names_the_commit_that_its_rows_came_from(
    published: Published, tmp_path: Path, cli: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """Also after the branch has moved, and whatever the revision is called."""

    def recorded(repo: str, name: str) -> str:
        command = ("generate", "--suite", RULES, "--data", repo, "--limit", 2)
        environment = published.hub.environment | {"HF_HOME": str(tmp_path / "client")}
        out = ("--generator", "render:", "--out", tmp_path / name)
        done = cli(*command, *out, env=environment)
        assert (tmp_path / name / "run.json").is_file(), done.stderr
        commit = json.loads((tmp_path / name / "run.json").read_text())["commit"]
        assert isinstance(commit, str)
        return commit

    released = Repository(REPO).commit_of("v1.0.0")
    assert recorded(f"{REPO}@v1.0.0", "tag") == released
    published.hub.commit(REPO, {"NOTES.md": b"later"})
    try:
        later = Repository(REPO).commit_of("main")
        assert recorded(REPO, "newest") == later != released
        asked: list[str] = []

        def from_hub(repo: str, config: str, commit: str) -> Iterator[dict[str, Any]]:
            asked.append(commit)
            return iter_records(published.hub.root.parent / "build", config)

        with patch.object(data, "_from_hub", from_hub):
            again = [
                data.read_rows(f"{REPO}@{name}", RULES).commit for name in ("v1.0.0", released)
            ]
        assert again == asked == [released] * 2
    finally:
        published.hub.commit(REPO, {"NOTES.md": None})


def test_bytes_that_the_hub_does_not_list_are_a_problem(published: Published) -> None:
    (path,) = (
        path
        for path in published.hub.root.rglob("*")
        if path.is_file() and path.read_bytes() == published.files[parquet_path(RULES)]
    )
    good = path.read_bytes()
    path.write_bytes(good[::-1])
    try:
        with patch("counterprior.cards.verify.Repository", partial(Repository, waits=())):
            (problem,) = found(REPO)
        assert f"serves other bytes of {parquet_path(RULES)} than it lists" in problem
    finally:
        path.write_bytes(good)


def test_reports_missing_repositories_and_revisions(published: Published, tmp_path: Path) -> None:
    with raises("no-revision", REPO, error=HubError):
        found(REPO, "bogus")
    with raises("no-repository", "tester/nothing", error=HubError):
        found("tester/nothing")
    for name in ("dist/folder", "dist/no/folder"):
        with raises("no-such-file", name, error=ReleaseError):
            found(name)
    with raises("no-revision", "--revision", error=ReleaseError):
        found(str(tmp_path), "v1.0.0")
    published.hub.create("tester/other")
    with raises("verification-failed", "tester/other@", "`build`", error=ReleaseError):
        found("tester/other")
    with (
        patch("huggingface_hub.constants.HF_HUB_OFFLINE", True),
        raises("hub-unreachable", "HF_HUB_OFFLINE", error=HubError),
    ):
        found(REPO)
