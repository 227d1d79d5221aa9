"""Attacks on folders that a build, a push or a publication replaces: nothing of anybody is lost."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from published import CC, publish, published_run
from refusals import raises
from releases import RULES, small_release

from counterprior.cards.validate import validate
from counterprior.cards.write import staged
from counterprior.errors import DataError, InUseError
from counterprior.eval.engine.run import RunError
from counterprior.release import ReleaseError, foreign_files, verify
from counterprior.storage import Lock, folder_lock, whole_folder

CALLS = ("rename", "replace", "mkdir", "rmdir", "unlink", "fsync")
"""Everything that changes what lies on a disk, but for writing into open files."""


class Killed(BaseException):
    """Stands for the end of the process: nothing on disk changes after it."""


@contextmanager
def fault(number: int, make: Callable[[], BaseException], for_ever: bool) -> Iterator[list[str]]:
    """The call of this number raises; all later ones too, where the process is dead.

    Only calls of this thread count: the one that keeps leases alive syncs whenever its time comes.
    """
    happened: list[str] = []
    thread = threading.get_ident()

    def broken(name: str) -> Callable[..., Any]:
        true = getattr(os, name)

        def call(*args: Any, **options: Any) -> Any:
            if threading.get_ident() != thread:
                return true(*args, **options)
            happened.append(name)
            if len(happened) == number + 1 or (for_ever and len(happened) > number):
                raise make()
            return true(*args, **options)

        return call

    with pytest.MonkeyPatch.context() as patched:
        for name in CALLS:
            patched.setattr(os, name, broken(name))
        yield happened


FAULTS: dict[str, tuple[Callable[[], BaseException], bool]] = {
    "full disk": (lambda: OSError(errno.ENOSPC, "No space left on device"), False),
    "interrupt": (KeyboardInterrupt, False),
    "kill": (Killed, True),
}


ENDS = (OSError, KeyboardInterrupt, Killed)


def build(out: Path, text: str) -> None:
    with whole_folder(out) as folder:
        (folder / "a").write_text(text)
        (folder / "deep").mkdir()
        (folder / "deep" / "b").write_text(text)


def content(out: Path) -> list[str]:
    return [(out / name).read_text() for name in ("a", "deep/b")]


@pytest.mark.parametrize("kind", FAULTS)
def test_a_folder_is_old_or_new_whichever_call_fails(kind: str, tmp_path: Path) -> None:
    make, for_ever = FAULTS[kind]
    number = 0
    while True:
        out = tmp_path / str(number) / "release"
        out.parent.mkdir()
        build(out, "old")
        with suppress(*ENDS), fault(number, make, for_ever) as happened:
            build(out, "new")
        if not for_ever:  # put back at once, not only by the next command
            assert content(out) in (["old"] * 2, ["new"] * 2), f"{happened[-1]}, call {number}"
        # What a later command finds, even one that itself fails.
        with pytest.raises(ZeroDivisionError), whole_folder(out):
            raise ZeroDivisionError
        assert content(out) in (["old"] * 2, ["new"] * 2), f"{happened[-1]}, call {number}"
        build(out, "newest")
        assert content(out) == ["newest"] * 2
        left = {path.name for path in out.parent.iterdir()}
        left -= {path.name for path in out.parent.glob("*.lease.partial")}  # of who was killed
        assert left <= {"release", ".release.lock"}
        if len(happened) <= number:
            break
        number += 1
    assert number >= 6


@pytest.mark.parametrize("kind", FAULTS)
def test_a_second_fault_while_the_first_is_mended_loses_nothing(kind: str, tmp_path: Path) -> None:
    for number in range(12):
        out = tmp_path / str(number) / "release"
        out.parent.mkdir()
        build(out, "old")
        previous = out.with_name(".release.previous")
        out.rename(previous)  # as after a kill between the two renames
        with fault(number, *FAULTS[kind]), suppress(OSError, KeyboardInterrupt, Killed):
            build(out, "new")
        with pytest.raises(ZeroDivisionError), whole_folder(out):
            raise ZeroDivisionError
        assert content(out) in (["old"] * 2, ["new"] * 2)


def test_an_empty_folder_in_place_of_a_lost_one_is_not_it(tmp_path: Path) -> None:
    out = tmp_path / "release"
    build(out, "old")
    out.rename(tmp_path / ".release.previous")
    out.mkdir()
    with pytest.raises(ZeroDivisionError), whole_folder(out):
        raise ZeroDivisionError
    assert content(out) == ["old"] * 2


STRANGERS: dict[str, Callable[[Path], object]] = {
    "a file": lambda root: (root / "thesis.tex").write_text("years of work"),
    "a hidden file": lambda root: (root / ".notes").write_text("mine"),
    "a deep file": lambda root: ((root / "src").mkdir(), (root / "src" / "a.js").write_text("a")),
    "a file beside a config": lambda root: (root / RULES / "extra.parquet").write_text("mine"),
    "a nested checksums.json": lambda root: (root / RULES / "checksums.json").write_text("{}"),
    "a link": lambda root: (root / "link").symlink_to("/"),
    "a manifest of its own": lambda root: (root / "manifest.json").write_text('{"name": "x"}'),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_release(tmp_path_factory.mktemp("built") / "release")


@pytest.mark.parametrize("what", STRANGERS)
def test_a_release_folder_with_something_else_in_it_is_kept(
    built: Path, tmp_path: Path, what: str
) -> None:
    out = Path(shutil.copytree(built, tmp_path / "release"))
    STRANGERS[what](out)
    before = {path: path.lstat().st_ino for path in out.rglob("*")}
    with raises("folder-not-empty", "--out", error=ReleaseError), staged(out):
        raise AssertionError("it would be replaced")
    assert {path: path.lstat().st_ino for path in out.rglob("*")} == before


def test_browser_extension_is_not_a_release(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"manifest_version": 3, "name": "x"}')
    (tmp_path / "checksums.json").write_text('{"files": {"manifest.json": {"sha256": "0"}}}')
    (tmp_path / "worker.js").write_text("mine")
    with raises("folder-not-empty", tmp_path, error=ReleaseError), staged(tmp_path):
        raise AssertionError("it would be replaced")
    for text in ("[]", '{"files": {"manifest.json": 1}}', '{"files": 3}', "\0"):
        (tmp_path / "checksums.json").write_text(text)
        with raises("folder-not-empty", tmp_path, error=ReleaseError), staged(tmp_path):
            raise AssertionError("it would be replaced")


def test_a_publication_folder_with_something_else_in_it_is_kept(tmp_path: Path) -> None:
    run = published_run(tmp_path / "run", "t2i_homogenization", "g")
    publish(run, tmp_path / "p")
    (tmp_path / "p" / "thesis.tex").write_text("years of work")
    with raises("folder-not-empty", "thesis.tex", error=RunError):
        publish(run, tmp_path / "p", CC)
    assert (tmp_path / "p" / "thesis.tex").read_text() == "years of work"


def test_a_release_behind_a_link_is_replaced_where_it_lies(built: Path, tmp_path: Path) -> None:
    out, link = tmp_path / "disk" / "release", tmp_path / "link"
    build(out, "old")
    link.symlink_to(out)
    with folder_lock(out), raises("in-use", out, error=InUseError):  # one lock, whatever the name
        build(link, "new")
    build(link, "new")
    assert link.is_symlink() and content(out) == ["new"] * 2
    assert {path.name for path in tmp_path.iterdir()} == {"disk", "link"}


def test_a_lock_is_never_opened_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    (tmp_path / ".release.lock").symlink_to(target)
    with raises("not-a-file", ".release.lock", error=DataError):
        folder_lock(tmp_path / "release")
    assert not target.exists()


def test_a_lock_excludes_in_a_tight_loop(tmp_path: Path) -> None:
    for _ in range(200):
        with Lock(tmp_path / "lock", "it"), raises("in-use", "it is", error=InUseError):
            Lock(tmp_path / "lock", "it")


@pytest.mark.parametrize("name", [".gitattributes", "x/.gitattributes", f"{RULES}/checksums.json"])
def test_files_that_the_hub_or_a_reader_takes_for_others_are_rejected(
    built: Path, tmp_path: Path, name: str
) -> None:
    out = Path(shutil.copytree(built, tmp_path / "release"))
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_text("*.parquet -filter\n")
    report = validate(out, lambda config, rows, complete: [])
    assert name in {problem.file for problem in report.problems}
    assert foreign_files(out) == [name]
    if "/" in name:
        assert [problem.file for problem in verify(out)] == [name]


def test_every_refusal_is_one_line(built: Path) -> None:
    with (
        raises("folder-not-empty", built / "manifest.json") as error,
        staged(built / "manifest.json"),
    ):
        raise AssertionError("a file is no folder")
    assert "\n" not in str(error.value)
