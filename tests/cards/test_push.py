"""`counterprior push` on the test Hub: whatever goes wrong, a release is there whole or not."""

import hashlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import pytest
from loopback_hub import LoopbackHub
from pushing import REPO, at, online, plan_of, push, push_to_die, valid
from refusals import raises
from releases import ATTRIBUTES, RULES, revised, small_release

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.build import row_checks
from counterprior.builders.build_result import Build, Holdout
from counterprior.cards.errors import HubError
from counterprior.cards.push import execute, verify_cold
from counterprior.cards.push_plan import planned
from counterprior.cards.remote import Repository, is_passing
from counterprior.cards.validate import ReleaseReport, validate
from counterprior.extras import install_command
from counterprior.progress import Progress, silent
from counterprior.release import parquet_path
from counterprior.schema import CANARY, Row

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
    "grant": ("GET", "/xet-write-token/"),
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
        shutil.copytree(root / "hub", root / "reference", symlinks=True)
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
    root = Path(shutil.copytree(world.root, tmp_path / "hub", symlinks=True))
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
        return error.code
    finally:
        went_wrong = [request for request in hub.requests if request.status in (0, 503)]
        assert happened or went_wrong, f"{step} was never asked for"
    return "done"


def suffered(
    world: World, tmp_path: Path, step: str, fault: str, transport: Transport = "lfs"
) -> None:
    """The fault at the step, then a push without: all that must hold after each."""
    with copied(world, tmp_path, transport) as hub:
        ended = ordeal(hub, world.next, "1.1.0", step=step, fault=fault, transport=transport)
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
            with raises("foreign-head", "Somebody else", error=HubError):
                push(world.next, at(hub.url, "1.1.0"))
        check_whole(hub, world)
        assert hub.tree(REPO, "main")["NOTES.md"] == THEIRS["NOTES.md"]


def hub_faults_end(hub: LoopbackHub) -> None:
    hub._faults.__init__()  # type: ignore[misc]


OVER_LFS = [step for step in STEPS if step not in ("create", "grant")]
OVER_XET = [step for step in STEPS if step not in ("create", "batch", "put", "uploaded")]


def _often(step: str, fault: str, number: int, other: int) -> bool:
    """Whether every run of the tests has this fault at this step."""
    return fault in ("lost", "kill", "somebody") if step == "commit" else number % 12 == other


def cases(steps: list[str]) -> list[Any]:
    """Every fault at every step; what is not representative is left to the lane.

    To kill takes a process of its own, which is slow.
    """
    often = {fault: [pytest.mark.slow] * (fault == "kill") for fault in FAULTS}
    return [
        pytest.param(step, fault, marks=often[fault] if _often(step, fault, i, j) else LANE)
        for i, step in enumerate(steps)
        for j, fault in enumerate(FAULTS)
    ]


@pytest.mark.parametrize(("step", "fault"), cases(OVER_LFS))
def test_a_failed_push_leaves_a_whole_release(
    world: World, tmp_path: Path, step: str, fault: str
) -> None:
    suffered(world, tmp_path, step, fault)


@pytest.fixture(scope="module")
def xet_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return built_world(tmp_path_factory.mktemp("xet"), "xet")


@LANE
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", OVER_XET)
def test_a_failed_push_over_xet_leaves_a_whole_release(
    xet_world: World, tmp_path: Path, step: str, fault: str
) -> None:
    suffered(xet_world, tmp_path, step, fault, "xet")


@pytest.mark.parametrize(("step", "fault"), cases(["create", "card", "preupload"]))
def test_a_failed_first_push_leaves_a_whole_release(
    world: World, tmp_path: Path, step: str, fault: str
) -> None:
    if fault == "somebody":
        pytest.skip("nobody else writes to a repository that is not there")
    with online(), LoopbackHub(tmp_path / "hub") as hub:
        ended = ordeal(hub, world.next, "1.0.0", step=step, fault=fault, transport="lfs")
        if hub.exists(REPO):
            main = hub.tree(REPO, "main")
            assert set(main) == {".gitattributes"} or set(main) >= set(world.new)
            assert hub.tags(REPO) == {} or "manifest.json" in main
        assert ended == {"for ever": "hub-unreachable", "kill": "killed"}.get(fault, "done")
        hub_faults_end(hub)
        commit = push(world.next, at(hub.url, "1.0.0"))
        assert hub.tags(REPO) == {"v1.0.0": commit} and hub.head(REPO) == commit
        assert len(Repository(REPO, hub.url).history(commit)) == 2


def test_a_hub_without_xet_is_said_by_name(world: World, tmp_path: Path) -> None:
    refused = ("hub-refuses", "no Xet storage: set HF_HUB_DISABLE_XET=1")
    with copied(world, tmp_path) as hub:
        with online("xet"), raises(*refused, error=HubError):
            push(world.next, at(hub.url, "1.1.0"))
        assert hub.tags(REPO) == {"v1.0.0": world.first}
        push(world.next, at(hub.url, "1.1.0"))
        check_finished(hub, world)


def test_a_missing_xet_storage_is_no_passing_failure_however_it_is_wrapped() -> None:
    failed = RuntimeError("upload failed")
    assert is_passing(failed)  # the libraries wrap broken connections alike
    failed.__cause__ = OSError("HTTP 404 Not Found: /api/datasets/a/b/xet-write-token/main")
    assert not is_passing(failed)
    assert "set HF_HUB_DISABLE_XET=1" in str(Repository("a/b").named(failed))


@pytest.mark.slow
def test_a_request_that_hangs_has_failed(world: World, tmp_path: Path) -> None:
    with copied(world, tmp_path) as hub:
        hub.before("POST", "/commit/main$", lambda: time.sleep(1))
        settings = at(hub.url, "1.1.0", timeout=0.3, waits=(0.2, 0.4, 0.8, 1.6))
        push(world.next, settings)
        # Sent again from the start, as its first request tells.
        assert sum(request.path.endswith("/validate-yaml") for request in hub.requests) > 1
        check_finished(hub, world)


def test_pushing_again_does_nothing(world: World, tmp_path: Path) -> None:
    with copied(world, tmp_path) as hub:
        commit = push(world.next, at(hub.url, "1.1.0"))
        hub.requests.clear()
        later = at(hub.url, "1.1.0", date="")  # the day is that of the release, not of the repeat
        assert plan_of(world.next, later).steps == ()
        assert push(world.next, later) == commit
        assert {request.method for request in hub.requests} <= {"GET", "HEAD"}
        check_finished(hub, world)


def test_the_plan_is_what_happens(world: World, tmp_path: Path) -> None:
    with copied(world, tmp_path) as hub:
        plan = plan_of(world.next, at(hub.url, "1.1.0"))
        assert {request.method for request in hub.requests} <= {"GET", "HEAD"}
        assert hub.head(REPO) == world.first
        told = json.loads(plan.to_json())
        assert (told["last"], told["demanded"], told["tag"]) == ("1.0.0", "MINOR", "v1.1.0")
        assert told["notes"] == "* attribute_decoupling: new, 200 rows"
        for operation in told["operations"]:
            old, new = (files.get(operation["file"]) for files in (world.old, world.new))
            assert operation["kind"] == ("add" if old is None else "replace") and old != new
            assert operation["bytes"] == len(new or b"")
        changed = {n for n in world.new if world.old.get(n) != world.new[n]}
        assert {operation["file"] for operation in told["operations"]} == changed
        commit = push(world.next, at(hub.url, "1.1.0"))
        assert hub.tree(REPO, commit) == world.new
        message = Repository(REPO, hub.url).history(commit)[0]
        assert (message.title, told["notes"] in message.message) == ("Release 1.1.0", True)


@pytest.mark.slow
def test_a_moved_head_is_explained_by_files_rows_and_titles(world: World, tmp_path: Path) -> None:
    other = small_release(tmp_path / "other", (RULES,), revised)
    with copied(world, tmp_path) as hub:
        theirs = {
            name: (other / name).read_bytes()
            for name in ("checksums.json", "manifest.json", parquet_path(RULES))
        }
        hub.before("POST", "/commit/main$", lambda: [hub.commit(REPO, theirs, "Mend a rule")])
        files = f"checksums.json, manifest.json, {parquet_path(RULES)}"
        with raises("head-moved", "(Mend a rule)", files, "rule_decoupling: 1 ", error=HubError):
            push(world.next, at(hub.url, "1.1.0"))
        assert "v1.1.0" not in hub.tags(REPO)
        assert hub.tree(REPO, "main")["README.md"] == world.old["README.md"]


@pytest.mark.slow
def test_unverified_push_gets_no_tag_and_can_be_repeated(world: World, tmp_path: Path) -> None:
    with copied(world, tmp_path) as hub:
        bad = small_release(tmp_path / "bad", (RULES, ATTRIBUTES), lambda rows: rows)
        settings = at(hub.url, "1.1.0")
        command = "hf download tester/bench --repo-type dataset --revision v1.0.0"
        with (
            planned(bad, settings, valid) as plan,
            raises("verification-failed", ": gone", command, error=HubError),
        ):
            execute(plan, verify=lambda repository, commit: ["gone"])
        assert "v1.1.0" not in hub.tags(REPO)
        # Continued on another day, it is still the release of that day.
        assert plan_of(bad, replace(settings, date="")).steps == ("verify", "tag")
        mended = small_release(tmp_path / "mended", (RULES, ATTRIBUTES), revised)
        with raises("version-too-small", "1.1.0", "2.0.0", error=HubError):
            push(mended, settings)
        commit = push(mended, at(hub.url, "2.0.0"))
        assert hub.tags(REPO) == {"v1.0.0": world.first, "v2.0.0": commit}
        assert "## 1.1.0" not in hub.tree(REPO, commit)["CHANGELOG.md"].decode()


def test_damage_on_the_hub_is_found_before_the_tag(world: World, tmp_path: Path) -> None:
    """The Hub lists the right digest and hands out other bytes."""
    with copied(world, tmp_path) as hub:
        digest = hashlib.sha256(world.new[parquet_path(ATTRIBUTES)]).hexdigest()

        def damage() -> None:
            (path,) = (p for p in (tmp_path / "hub").rglob("*") if p.is_file() and digest in str(p))
            path.write_bytes(path.read_bytes()[::-1])

        hub.before("HEAD", f"/resolve/.*{ATTRIBUTES}", damage)
        with raises("damaged-file", "attribute_decoupling/", error=HubError):
            push(world.next, at(hub.url, "1.1.0"))
        assert set(hub.tags(REPO)) == {"v1.0.0"}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "version-too-small": ({"version": "1.0.1"}, "--version 1.1.0"),
    "version-not-above": ({"version": "0.9.0"}, "--version 1.0.1"),
    "version-reused": ({"version": "1.0.0"}, "v1.0.0"),
    "visibility": ({"private": True}, REPO),
}


@pytest.mark.parametrize("code", REFUSED)
def test_rejected_pushes_name_the_problem_and_a_remedy(
    world: World, tmp_path: Path, code: str
) -> None:
    changes, fact = REFUSED[code]
    with copied(world, tmp_path) as hub:
        with raises(code, fact, error=HubError):
            push(world.next, at(hub.url, **({"version": "1.1.0"} | changes)))
        assert {request.method for request in hub.requests} <= {"GET", "HEAD"}
        assert hub.head(REPO) == world.first


def test_a_hold_out_never_becomes_public(tmp_path: Path) -> None:
    held = Holdout(private=True, fraction=0.1, salt_sha256="", held_out_sha256="", full_hmac="")
    folder = small_release(tmp_path / "held", facts=lambda build: replace(build, holdout=held))
    with online(), LoopbackHub(tmp_path / "hub") as hub:
        with raises("visibility", "--private", error=HubError):
            push(folder, at(hub.url, "1.0.0"))
        assert not hub.requests
        push(folder, at(hub.url, "1.0.0", private=True))
        assert "extra_gated_prompt" in hub.tree(REPO, "main")["README.md"].decode()


@pytest.mark.slow
def test_published_files_are_dropped_only_on_purpose(world: World, tmp_path: Path) -> None:
    only = small_release(tmp_path / "only", (ATTRIBUTES,))
    with copied(world, tmp_path) as hub:
        for changes in ({}, {"allow_drop": True, "version": "1.1.0"}, {"version": "3.1.0"}):
            settings = at(hub.url, **({"version": "2.0.0"} | changes))
            code = "version-too-small" if settings.version == "1.1.0" else "dropped-file"
            with raises(code, "--version 2.0.0", error=HubError):
                push(only, settings)
        commit = push(only, at(hub.url, "2.0.0", allow_drop=True))
        assert parquet_path(RULES) not in hub.tree(REPO, commit)
        assert hub.tree(REPO, "v1.0.0") == world.old


@pytest.mark.slow
def test_another_license_needs_a_flag(world: World, tmp_path: Path) -> None:
    def relicensed(rows: list[Row]) -> list[Row]:
        return [rows[0].model_copy(update={"license": "MIT"}), *rows[1:]]

    other = small_release(tmp_path / "other", (RULES,), relicensed)
    with copied(world, tmp_path) as hub:
        with raises("license-change", "rule_decoupling-", "--allow-license-change", error=HubError):
            push(other, at(hub.url, "2.0.0"))
        push(other, at(hub.url, "2.0.0", allow_license_change=True))


def test_a_config_under_other_terms_needs_a_flag(world: World, tmp_path: Path) -> None:
    def relicensed(build: Build) -> Build:
        return replace(build, configs=(replace(build.configs[0], license="MIT"),))

    other = small_release(tmp_path / "other", (RULES,), facts=relicensed)
    licenses = ("rule_decoupling", "CC-BY-4.0", "MIT")
    with copied(world, tmp_path) as hub, raises("license-change", *licenses, error=HubError):
        push(other, at(hub.url, "1.0.1"))


def test_reports_missing_repository_and_missing_token(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with online(), LoopbackHub(tmp_path / "hub") as hub:
        with raises("no-repository", "--create", error=HubError):
            push(world.next, at(hub.url, "1.0.0", create=False))
        push(world.next, at(hub.url, "1.0.0", private=True))
        assert Repository(REPO, hub.url).head().private  # type: ignore[union-attr]
        monkeypatch.setenv("HF_TOKEN", "hf_wrong")
        with raises("hub-refuses", "401", error=HubError):
            push(world.next, at(hub.url, "1.0.1"))
        monkeypatch.delenv("HF_TOKEN")
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
        with raises("no-token", "HF_TOKEN", error=HubError):
            push(world.next, at(hub.url, "1.0.1"))


def test_a_plan_for_a_public_repository_needs_no_token(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with copied(world, tmp_path) as hub:
        monkeypatch.delenv("HF_TOKEN")
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
        plan = plan_of(world.next, at(hub.url, "1.1.0", dry_run=True))
        assert plan.operations and plan.steps == ("commit", "verify", "tag")
        with raises("no-token", "HF_TOKEN", error=HubError):
            plan_of(world.next, at(hub.url, "1.1.0"))


def test_more_files_than_a_commit_may_touch_are_refused(world: World, tmp_path: Path) -> None:
    many = Path(shutil.copytree(world.next, tmp_path / "many"))
    (many / "assets").mkdir()
    for number in range(100):
        (many / "assets" / f"{number}.png").write_bytes(b"%d" % number)
    with copied(world, tmp_path) as hub, raises("too-many-files", "110 files", error=HubError):
        push(many, at(hub.url, "1.1.0"))


def test_a_repository_with_other_files_is_not_overwritten(world: World, tmp_path: Path) -> None:
    with online(), LoopbackHub(tmp_path / "hub") as hub:
        hub.create(REPO)
        hub.commit(REPO, THEIRS, "Release 1.0.0")  # by hand, as its missing signature tells
        with raises("foreign-head", "Release 1.0.0", error=HubError):
            push(world.next, at(hub.url, "1.0.0"))
        # Put back by hand, main holds what the last release held.
        hub.commit(REPO, dict.fromkeys(THEIRS))
        push(world.next, at(hub.url, "1.0.0"))


def test_somebody_who_tags_first_is_not_overruled(world: World, tmp_path: Path) -> None:
    with copied(world, tmp_path) as hub:
        repository = Repository(REPO, hub.url)

        def tag(commit: str) -> None:
            repository.api.create_tag(REPO, tag="v1.1.0", revision=commit, repo_type="dataset")

        hub.before("POST", "/tag/", lambda: tag(world.first))
        with raises("version-reused", "v1.1.0", error=HubError):
            push(world.next, at(hub.url, "1.1.0"))
        assert hub.tags(REPO)["v1.1.0"] == world.first


def check(folder: Path, progress: Progress = silent, *, quick: bool = False) -> ReleaseReport:
    return validate(folder, row_checks(DEFAULT_BANK), progress=progress, quick=quick)


NOBODY = "http://127.0.0.1:9"


def check_refused(folder: Path, code: str, *facts: str, hub: str = NOBODY) -> None:
    """Refused before anything is written, and only locks are left beside the folder."""
    settings = at(hub, "1.1.0")
    with online(), raises(code, *facts, error=HubError), planned(folder, settings, check):
        raise AssertionError("planned")
    left = [path for path in folder.parent.iterdir() if path.name.startswith(".")]
    assert {path.suffix for path in left} == {".lock"}


@pytest.mark.slow
def test_a_dirty_canary_and_an_invalid_folder_are_refused(tmp_path: Path) -> None:
    def leaking(rows: list[Row]) -> list[Row]:
        return [
            rows[0].model_copy(update={"assessment_point": f"See {CANARY.upper()}."}),
            *rows[1:],
        ]

    def without(rows: list[Row]) -> list[Row]:
        return [rows[0].model_copy(update={"canary": "canary"}), *rows[1:]]

    for change, field in ((leaking, "assessment_point"), (without, "canary")):
        bad = small_release(tmp_path / change.__name__, (RULES,), change)
        with LoopbackHub(tmp_path / f"hub for {field}") as hub:
            check_refused(bad, "canary", f"{RULES}-", f":{field}: ", hub=hub.url)
    whole = small_release(tmp_path / "whole")
    bad = Path(shutil.copytree(whole, tmp_path / "file"))
    (bad / "CANARY.md").unlink()
    check_refused(bad, "canary", "CANARY.md")
    bad = Path(shutil.copytree(whole, tmp_path / "bad"))
    (bad / "datasheet.md").write_text("Nothing.")
    check_refused(bad, "invalid-folder", "datasheet.md")


def test_what_is_cheap_to_find_is_said_before_rows_are_checked(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing extra before the Hub is asked, and the Hub before the rows are read."""

    def unread(folder: Path, progress: Progress = silent, *, quick: bool = False) -> ReleaseReport:
        assert quick, "the rows were checked"
        return check(folder, progress, quick=True)

    with copied(world, tmp_path) as hub:
        for settings, code in (
            (at(hub.url, "1.0.0"), "version-reused"),
            (at(hub.url, "0.9.0"), "version-not-above"),
            (replace(at(hub.url, "1.0.0"), repo_id="tester/none", create=False), "no-repository"),
        ):
            with raises(code, error=HubError), planned(world.next, settings, unread):
                raise AssertionError("planned")
    monkeypatch.setattr("counterprior.cards.validate.util.find_spec", lambda name: None)
    check_refused(world.next, "invalid-folder", install_command("croissant"))


def test_checks_of_rows_tell_how_many_configs_are_done(world: World) -> None:
    told: dict[str, list[tuple[int, int]]] = {}

    def progress(stage: str, done: int, total: int) -> None:
        told.setdefault(stage, []).append((done, total))

    with patch("counterprior.cards.validate.record_problems", return_value=()):
        assert not check(world.next, progress).problems
    assert told["rows"] == [(0, 2), (1, 2), (2, 2)]
    told.clear()
    assert not check(world.next, progress, quick=True).problems and not told


def test_what_a_failed_verification_said_is_told_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = "Traceback\nInvalidHeader: b'Bearer hf_secret' of https://cdn.test/x?Signature=abc\n"
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1, "", said)
    )
    with raises("hub-unreachable", "InvalidHeader", "https://cdn.test/x", error=HubError) as told:
        verify_cold(Repository("somebody/rows"), "c0")
    assert "hf_secret" not in str(told.value) and "abc" not in str(told.value)
