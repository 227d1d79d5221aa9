"""A release folder is replaced whole or stays as it was, whatever happens during a build."""

import gc
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import assert_refused, raises
from releases import ATTRIBUTES, RULES, small_release

from counterprior.builders.build_result import Build
from counterprior.cards.write import check_keeps, staged, write_releases
from counterprior.errors import InUseError
from counterprior.release import ReleaseError, verify

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return small_release(tmp_path / "release", (RULES,))


def test_a_build_that_fails_leaves_the_old_release(release: Path) -> None:
    with pytest.raises(KeyboardInterrupt), staged(release) as folder:
        (folder / "manifest.json").write_text("{}")
        raise KeyboardInterrupt
    assert verify(release) == []
    assert [path.name for path in release.parent.iterdir() if path != release] == [".release.lock"]


def test_rows_are_not_searched_for_garbage_while_they_are_made(tmp_path: Path) -> None:
    collecting = []

    def fail() -> list[Build]:
        collecting.append(gc.isenabled())
        raise KeyboardInterrupt

    assert gc.isenabled()
    with pytest.raises(KeyboardInterrupt):
        write_releases(fail, [tmp_path / "release"])
    assert collecting == [False] and gc.isenabled()


def test_a_second_build_of_one_folder_is_refused(release: Path) -> None:
    with staged(release), raises("in-use", release, error=InUseError), staged(release):
        raise AssertionError("two builds at a time")


def test_a_kill_between_the_two_renames_loses_nothing(release: Path) -> None:
    """The old release was moved aside and the new one is not in its place yet."""
    release.rename(release.with_name(".release.previous"))
    (release.parent / ".release.partial").mkdir()
    with pytest.raises(KeyboardInterrupt), staged(release):
        raise KeyboardInterrupt
    assert verify(release) == []


def test_a_build_of_other_configs_drops_none_without_a_word(release: Path, cli: Cli) -> None:
    made = cli("build", "--config", ATTRIBUTES, "--out", release)
    assert_refused(made, "folder-not-empty", f"--config {RULES} --config {ATTRIBUTES}")
    assert verify(release) == [] and (release / RULES).is_dir()
    check_keeps(release, ())
    check_keeps(release, (ATTRIBUTES, RULES))
    check_keeps(release.with_name("new"), (ATTRIBUTES,))


def test_refuses_to_replace_other_folders(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with raises("folder-not-empty", "--out", error=ReleaseError):
        staged(tmp_path)
