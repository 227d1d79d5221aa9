"""`counterprior push` on the test Hub: whatever goes wrong, a release is there whole or not."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from loopback_hub import LoopbackHub
from pushing import REPO, at, online, push, push_to_die
from releases import ATTRIBUTES, RULES, small_release

from counterprior.cards.errors import HubError
from counterprior.cards.remote import Repository

Transport = Literal["lfs", "xet"]
Files = dict[str, bytes]

STEPS = {
    "info": ("GET", f"/api/datasets/{REPO}$"),
    "refs": ("GET", "/refs$"),
    "tree": ("GET", "/tree/"),
    "resolve": ("GET|HEAD", "/resolve/"),
    "create": ("POST", "/api/repos/create$"),
    "card": ("POST", "/validate-yaml$"),
    "preupload": ("POST", "/preupload/"),
    "batch": ("POST", "/objects/batch$"),
    "put": ("PUT", "/storage/"),
    "uploaded": ("POST", "/lfs/verify$"),
    "commit": ("POST", "/commit/main$"),
    "tag": ("POST", "/tag/"),
}
"""Every request that a push makes."""

FAULTS = ("once", "for ever", "lost", "cut", "kill", "somebody")


@dataclass(frozen=True)
class World:
    """A Hub on disk with version 1.0.0, the folder of the next, and what both hold."""

    root: Path
    next: Path
    old: Files
    new: Files
    first: str
    """Commit of 1.0.0."""


def built_world(root: Path, transport: Transport) -> World:
    first = small_release(root / "first")
    following = small_release(root / "next", (RULES, ATTRIBUTES))
    with online(transport):
        with LoopbackHub(root / "hub", transport=transport) as hub:
            commit = push(first, at(hub.url, "1.0.0"))
            old = hub.tree(REPO, "main")
        shutil.copytree(root / "hub", root / "reference")
        with LoopbackHub(root / "reference", transport=transport) as hub:
            push(following, at(hub.url, "1.1.0"))
            new = hub.tree(REPO, "main")
    return World(root / "hub", following, old, new, commit)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return built_world(tmp_path_factory.mktemp("world"), "lfs")


@contextmanager
def copied(world: World, tmp_path: Path, transport: Transport = "lfs") -> Iterator[LoopbackHub]:
    """A Hub of one's own in the state of `world`."""
    root = Path(shutil.copytree(world.root, tmp_path / "hub"))
    with online(transport), LoopbackHub(root, transport=transport) as hub:
        yield hub


LANE = pytest.mark.lane
THEIRS = {"NOTES.md": b"Somebody else was here.\n"}


def check_whole(hub: LoopbackHub, world: World) -> None:
    """The old version whole or the new one; a tag only on what it names; nothing lost."""
    tags = hub.tags(REPO)
    assert tags["v1.0.0"] == world.first
    assert hub.tree(REPO, "v1.0.0") == world.old
    assert set(tags) <= {"v1.0.0", "v1.1.0"}
    if "v1.1.0" in tags:
        assert hub.tree(REPO, "v1.1.0") == world.new
    main = hub.tree(REPO, "main")
    main = {name: data for name, data in main.items() if name not in THEIRS}
    assert main in (world.old, world.new)


def check_finished(hub: LoopbackHub, world: World) -> None:
    """The new version is released, by one commit."""
    check_whole(hub, world)
    assert hub.tags(REPO)["v1.1.0"] == hub.head(REPO)
    history = Repository(REPO, hub.url).history(hub.head(REPO))
    assert [commit.title for commit in history[:2]] == ["Release 1.1.0", "Release 1.0.0"]


def ordeal(
    hub: LoopbackHub, folder: Path, version: str, step: str, fault: str, transport: Transport
) -> str:
    """One push with one fault; how it ended: `done`, `killed`, or the reason of its end."""
    method, path = STEPS[step]
    happened: list[str] = []
    if fault == "kill":
        killed = push_to_die(folder, at(hub.url, version), transport)
        # Registered when the process has begun, and long before its first request.
        hub.before(method, path, lambda: (happened.append("kill"), killed.kill())[-1])
        killed.join()
        assert happened, f"{step} was never asked for"
        return "killed" if killed.exitcode == -9 else "done"
    if fault == "somebody":
        hub.before(method, path, lambda: happened.append(hub.commit(REPO, THEIRS)))
    elif fault == "cut":
        hub.fail(method, path, cut=True)
    else:
        hub.fail(method, path, times=10**9 if fault == "for ever" else 1, applied=fault == "lost")
    try:
        push(folder, at(hub.url, version))
    except HubError as error:
        return error.reason
    finally:
        went_wrong = [request for request in hub.requests if request.status in (0, 503)]
        assert happened or went_wrong, f"{step} was never asked for"
    return "done"


def suffered(
    world: World, tmp_path: Path, step: str, fault: str, transport: Transport = "lfs"
) -> None:
    """The fault at the step, then a push without: all that must hold after each."""
    with copied(world, tmp_path, transport) as hub:
        ended = ordeal(hub, world.next, "1.1.0", step, fault, transport)
        check_whole(hub, world)
        if fault in ("once", "lost", "cut"):
            assert ended == "done"
        elif fault == "for ever":
            # What has been put is there, whether its size was confirmed or not.
            assert ended == ("done" if step == "uploaded" else "hub-unreachable")
        elif fault == "kill":
            assert ended == "killed"
        else:
            assert ended in ("done", "head-moved", "foreign-head")
            assert ("v1.1.0" in hub.tags(REPO)) == (ended == "done")
        hub_faults_end(hub)
        if fault != "somebody":
            push(world.next, at(hub.url, "1.1.0"))
            check_finished(hub, world)
            return
        if ended == "done":  # they came after our commit, and what we tagged is ours
            push(world.next, at(hub.url, "1.1.0"))
        else:
            with pytest.raises(HubError, match=r"foreign-head: .*Somebody else"):
                push(world.next, at(hub.url, "1.1.0"))
        check_whole(hub, world)
        assert hub.tree(REPO, "main")["NOTES.md"] == THEIRS["NOTES.md"]


def hub_faults_end(hub: LoopbackHub) -> None:
    hub._faults.__init__()  # type: ignore[misc]


LATER = [step for step in STEPS if step != "create"]
OVER_XET = {step: STEPS[step] for step in LATER if step not in ("batch", "put", "uploaded")}


def cases(steps: list[str]) -> list[Any]:
    """Every fault at every step; what is not representative is left to the lane."""
    return [
        pytest.param(
            step, fault, marks=[] if step in ("commit", "tag") or (i + j) % 3 == 0 else LANE
        )
        for i, step in enumerate(steps)
        for j, fault in enumerate(FAULTS)
    ]


@pytest.mark.parametrize(("step", "fault"), cases(LATER))
def test_a_release_is_whole_whatever_goes_wrong(
    world: World, tmp_path: Path, step: str, fault: str
) -> None:
    suffered(world, tmp_path, step, fault)
