"""A publication on the test Hub: whole or not, versioned by what changed, read back by all."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loopback_hub import TOKEN, LoopbackHub
from published import KEY, publish, published_run
from pushing import FORKS, REPO, at, online, plan_of, push, push_to_die
from refusals import raises
from releases import small_release
from typer.testing import CliRunner, Result

from counterprior.cards.errors import HubError
from counterprior.cards.publications import as_entry
from counterprior.cards.remote import Repository
from counterprior.cards.validate import ReleaseReport
from counterprior.cards.verify import verify_release
from counterprior.cli.main import app
from counterprior.eval.publishing.publication import read_publication, shard_path, write_publication
from counterprior.release import known_rows

assert FORKS  # the server of processes to kill


@dataclass(frozen=True)
class Published:
    """A Hub on disk with version 1.0.0, and the folder of the next."""

    root: Path
    first: Path
    next: Path
    old: dict[str, bytes]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Published:
    root = tmp_path_factory.mktemp("published")
    study = root / "study"
    published_run(study / "runs/t2i_homogenization/fair", "t2i_homogenization", "fair")
    publish(study, root / "first")
    published_run(study / "runs/t2i_homogenization/other", "t2i_homogenization", "other", seed=9)
    publish(study, root / "next")
    with online(), LoopbackHub(root / "hub") as hub:
        push(root / "first", at(hub.url, "1.0.0"))
        old = hub.tree(REPO, "main")
    return Published(root / "hub", root / "first", root / "next", old)


@contextmanager
def copied(world: Published, tmp_path: Path) -> Iterator[LoopbackHub]:
    root = Path(shutil.copytree(world.root, tmp_path / "hub"))
    with online(), LoopbackHub(root) as hub:
        yield hub


POINTS = {
    "upload": ("PUT", "/storage/"),
    "commit": ("POST", "/commit/main$"),
    "verify": ("GET|HEAD", "/resolve/.*verdicts"),
    "tag": ("POST", "/tag/"),
}


@pytest.mark.parametrize(
    ("point", "fault"),
    [
        pytest.param(
            point,
            fault,
            marks=[pytest.mark.slow] * (fault == "kill") if point == "commit" else pytest.mark.lane,
        )
        for point in POINTS
        for fault in ("kill", "lost")
    ],
)
def test_an_interrupted_push_leaves_a_whole_publication(
    world: Published, tmp_path: Path, point: str, fault: str
) -> None:
    with copied(world, tmp_path) as hub:
        if fault == "kill":
            killed = push_to_die(world.next, at(hub.url, None), "lfs")
            hub.before(*POINTS[point], lambda: (killed.kill(), None)[1])
            killed.join()
            assert killed.exitcode == -9
        else:
            hub.fail(*POINTS[point], applied=True)
            push(world.next, at(hub.url, None))
            assert hub.tags(REPO)["v1.1.0"] == hub.head(REPO)
        main = hub.tree(REPO, "main")
        if main != world.old:
            stated = json.loads(main["publication.json"])
            assert [run["generator"] for run in stated["runs"]] == ["fair", "other"]
            listed = json.loads(main["checksums.json"])["files"]
            assert {*listed, "checksums.json", ".gitattributes"} == {*main}
        assert hub.tree(REPO, "v1.0.0") == world.old
        put = [request.path for request in hub.requests if request.method == "PUT"]
        commit = push(world.next, at(hub.url, None))
        again = [request.path for request in hub.requests if request.method == "PUT"][len(put) :]
        whole = put[:-1] if (fault, point) == ("kill", "upload") else put
        assert not {*again} & {*whole}, "uploaded twice"
        assert hub.tags(REPO) == {"v1.0.0": hub.tags(REPO)["v1.0.0"], "v1.1.0": commit}
        titles = [c.title for c in Repository(REPO, hub.url).history(commit)]
        assert titles[:2] == ["Release 1.1.0", "Release 1.0.0"]


def test_the_version_follows_from_what_changed(world: Published, tmp_path: Path) -> None:
    with copied(world, tmp_path) as hub:
        same = plan_of(world.first, at(hub.url, None))
        assert (same.version, same.steps) == ("1.0.0", ())
        more = plan_of(world.next, at(hub.url, None))
        assert (more.version, more.demanded) == ("1.1.0", "MINOR")
        assert "t2i_homogenization/other" in more.notes
        with raises("version-too-small", "MINOR", error=HubError):
            plan_of(world.next, at(hub.url, "1.0.1"))
        with raises("version-reused", error=HubError):
            plan_of(world.next, at(hub.url, "1.0.0"))
        hub.commit(REPO, {"NOTES.md": b"theirs"})
        with raises("foreign-head", error=HubError):
            plan_of(world.next, at(hub.url, None))
        hub.commit(REPO, {"NOTES.md": None})  # as the refusal says
        push(world.next, at(hub.url, None))
        with raises("version-too-small", "--version 2.0.0", error=HubError):
            plan_of(world.first, at(hub.url, None))
        push(world.first, at(hub.url, "2.0.0"))
        assert sorted(hub.tags(REPO)) == ["v1.0.0", "v1.1.0", "v2.0.0"]
        stated = read_publication(world.first).model_copy(update={"license": "mit"})
        changed = Path(shutil.copytree(world.first, tmp_path / "changed"))
        (changed / "publication.json").write_text(stated.model_dump_json())
        with raises("version-too-small", "--version 3.0.0", error=HubError):
            plan_of(changed, at(hub.url, None))


@pytest.mark.parametrize(("before", "arrived"), [("/preupload/", False), ("/resolve/", True)])
def test_a_repository_made_public_meanwhile_gets_nothing_more(
    world: Published, tmp_path: Path, before: str, arrived: bool
) -> None:
    with online(), LoopbackHub(tmp_path / "hub") as hub:
        hub.create(REPO, private=True)
        if arrived:
            hub.before("GET|HEAD", before, lambda: hub.publish(REPO))
        else:
            # Between the plan and the commit: the plan's last look is at the tree.
            hub.before("GET", "/tree/", lambda: hub.publish(REPO))
        with raises("visibility", "tester/bench", error=HubError):
            push(world.first, at(hub.url, "1.0.0", private=True))
        assert ("README.md" in hub.tree(REPO, "main")) == arrived
        assert hub.tags(REPO) == {}


READER = """
import json, sys
from datasets import load_dataset
repo, tag = sys.argv[1:]
images = load_dataset(repo, "images", split="test", revision=tag)
stream = load_dataset(repo, "images", split="test", revision=tag, streaming=True)
scores = load_dataset(repo, "scores", split="test", revision=tag)
print(json.dumps([
    [image["image"] and image["image"].size for image in images],
    next(row["prompt"] for row in stream),
    len(load_dataset(repo, "verdicts", split="test", revision=tag)),
    [row["value"] for row in scores],
]))
"""


@pytest.mark.lane  # five processes that import `datasets`; the rest of this file goes without
def test_the_command_publishes_and_anybody_loads_it(world: Published, tmp_path: Path) -> None:
    """The real commands, with the process of the cold cache."""
    run = published_run(tmp_path / "bias", "t2i_homogenization", "bias")
    with LoopbackHub(tmp_path / "hub") as hub:

        def command(*words: object) -> subprocess.CompletedProcess[str]:
            done = subprocess.run(
                [sys.executable, *map(str, words)],
                env=hub.environment,
                capture_output=True,
                text=True,
            )
            assert TOKEN not in done.stdout + done.stderr
            return done

        ask = ("-m", "counterprior", "publish", run, "--repo-id", REPO)
        done = command(*ask, "--license", "cc-by-4.0", "--version", "v1.2.0")
        assert done.returncode == 0, done.stderr
        assert f"{REPO}: v1.2.0 is {hub.head(REPO)}, verified from a cold cache." in done.stderr
        assert hub.tags(REPO) == {"v1.2.0": hub.head(REPO)}
        tree = hub.tree(REPO, "v1.2.0")
        assert not [name for name, data in tree.items() if KEY.encode() in data]
        done = command("-c", READER, REPO, "v1.2.0")
        assert done.returncode == 0, done.stderr
        sizes, prompt, verdicts, values = json.loads(done.stdout)
        assert sizes.count([24, 20]) == 5 and sizes.count(None) == 3
        assert "dog" in prompt and verdicts == 40 and len(values) > 20


@pytest.mark.parametrize(
    ("options", "code", "fact"),
    [
        (("--repo-id", "runs"), "bad-option", "'runs'"),
        (("--repo-id", "some body/runs"), "bad-option", "'some body/runs'"),
        (("--repo-id", REPO, "--version", "v1"), "bad-option", "'1'"),
        (("--repo-id", REPO), "no-token", "HF_TOKEN"),
    ],
)
def test_bad_options_are_refused_before_anything_is_built(
    tmp_path: Path, options: tuple[str, ...], code: str, fact: str
) -> None:
    run, out = published_run(tmp_path / "run", "t2i_homogenization", "run"), tmp_path / "out"
    words = ("publish", run, *options, "--license", "cc-by-4.0", "--out", out)
    dry = () if code == "no-token" else ("--dry-run",)
    with patch("huggingface_hub.get_token", return_value=None):
        done = CliRunner().invoke(app, [*map(str, words), *dry])
    assert done.exit_code and f"[{code}]" in done.output and fact in done.output
    assert not out.exists()


@pytest.mark.slow
def test_names_each_difference_of_a_changed_publication(world: Published, tmp_path: Path) -> None:
    def found(hub: LoopbackHub) -> list[str]:
        report = verify_release(REPO)
        return [str(problem) for problem in report.problems]

    def relabeled(data: bytes) -> bytes:
        table = pq.read_table(BytesIO(data))
        rows = table.to_pylist()
        for row in rows:
            row["label"] = row["label"].replace("first_left", "first_right")
        buffer = BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), buffer)
        return buffer.getvalue()

    verdicts, images = (shard_path(config, 0, 1) for config in ("verdicts", "images"))
    with on_a_hub(world, tmp_path) as hub:
        assert found(hub) == []
        hub.commit(REPO, {verdicts: relabeled(world.old[verdicts])})
        told = found(hub)
        assert f"{verdicts}: bytes differ from checksums.json (sha256)" in told
        assert any("the published verdicts give" in line for line in told)
        hub.commit(REPO, {verdicts: (world.next / verdicts).read_bytes(), "extra.txt": b"e"})
        told = found(hub)
        assert "extra.txt: is not in checksums.json" in told
        hub.commit(REPO, {verdicts: world.old[images], "extra.txt": None})
        assert any("can't be scored" in line for line in found(hub))
        card = world.old["README.md"].replace(b"cc-by-4.0", b"mit")
        changed = {verdicts: world.old[verdicts], "README.md": card}
        hub.commit(REPO, {**changed, images: (world.next / images).read_bytes()})
        told = found(hub)
        assert any(line.startswith("README.md:line ") for line in told)
        assert f"{images}: bytes differ from checksums.json (sha256)" in told


@contextmanager
def on_a_hub(world: Published, tmp_path: Path) -> Iterator[LoopbackHub]:
    template = "/{repo_id}/resolve/{revision}/{filename}"
    with (
        copied(world, tmp_path) as hub,
        patch("huggingface_hub.constants.ENDPOINT", hub.url),
        patch("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", hub.url + template),
    ):
        yield hub


def command(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.slow
def test_publications_of_several_people_make_a_leaderboard(
    world: Published, tmp_path: Path
) -> None:
    """One on the Hub, which is fetched without its images, and one in a folder."""
    other = tmp_path / "other"
    study = tmp_path / "study"
    published_run(study / "runs/t2i_homogenization/mine", "t2i_homogenization", "mine", seed=5)
    publish(study, other)
    with on_a_hub(world, tmp_path):
        done = command("report", f"hub:{REPO}@v1.0.0", other, "--out", tmp_path / "site")
        assert done.exit_code == 0, done.output
    results = json.loads((tmp_path / "site" / "report.json").read_text())["results"]
    assert {result["folder"] for result in results} == {"fair", "mine"}
    for judge in read_publication(world.first).runs[0].judges:
        (theirs,) = (
            score["value"]
            for result in results
            if (result["folder"], result["judge"]) == ("fair", judge.name)
            for score in result["scores"]
            if (score["name"], score["group"]) == (judge.headline.score, "all")
        )
        assert theirs == judge.headline.value

    (other / "verdicts" / Path(shard_path("verdicts", 0, 1)).name).write_bytes(b"changed")
    done = command("report", other, "--out", tmp_path / "site2")
    assert done.exit_code == 2 and "is not what checksums.json says" in " ".join(
        done.output.split()
    )


def test_a_publication_without_a_version_is_no_entry(world: Published, tmp_path: Path) -> None:
    with on_a_hub(world, tmp_path):
        for name in (REPO, f"{REPO}@main"):
            done = command("report", f"hub:{name}", "--out", tmp_path / "site")
            assert done.exit_code == 2 and "names no version" in done.output


def test_an_entry_of_a_leaderboard_is_whole_and_checked(world: Published, tmp_path: Path) -> None:
    with on_a_hub(world, tmp_path):
        done = command("verify", REPO, "--revision", "v1.0.0", "--entry", "--json")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    told = [f"{p['row']} {p['field']} {p['message']}" for p in report["problems"]]
    name = "t2i_homogenization/fair"
    assert f"{name} rows_sha256 its rows are none that this package knows" in told[0]
    assert f"{name} images lacks images (1 error, 1 missing)" in told[1].replace(
        "1 missing, 1 error", "1 error, 1 missing"
    )
    assert len(told) == 2

    whole = read_publication(world.first)
    (entry,) = whole.runs
    sound = entry.model_copy(
        update={
            "rows_sha256": known_rows()[entry.suite][0],
            "images": {"made": 7, "refused": 1},
        }
    )
    unchecked = [
        judge.model_copy(
            update={"headline": judge.headline.model_copy(update={"marks": ["unchecked"]})}
        )
        for judge in entry.judges
    ]
    folder = Path(shutil.copytree(world.first, tmp_path / "sound"))
    for run, wrong in (
        (sound, []),
        (sound.model_copy(update={"limit": 3}), ["limit"]),
        (sound.model_copy(update={"where": "only pair_type=A-A"}), ["where"]),
        (sound.model_copy(update={"judges": unchecked}), ["judges", "judges"]),
    ):
        write_publication(whole.model_copy(update={"runs": [run]}), folder)
        report = as_entry(ReleaseReport("", ()), folder)
        assert [problem.field for problem in report.problems] == wrong


def test_prompts_that_a_server_rewrote_are_counted(tmp_path: Path) -> None:
    study = tmp_path / "study"
    root = published_run(study / "runs/t2i_homogenization/api", "t2i_homogenization", "api")
    lines = [json.loads(line) for line in (root / "images.jsonl").read_text().splitlines()]
    for number, line in enumerate(lines[5:8]):
        told = {"revised_prompt": ["A cat and a dog on a sofa.", "", None][number]}
        line["report"] = json.dumps(told)
    (root / "images.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    publish(study, tmp_path / "out")
    report = as_entry(ReleaseReport("", ()), tmp_path / "out")
    assert report.notes == ("t2i_homogenization/api: 1 of 8 prompts rewritten by the server",)


def test_a_release_of_rows_is_no_entry(tmp_path: Path) -> None:
    done = command("verify", small_release(tmp_path / "release"), "--entry")
    assert done.exit_code == 2 and "is a release of rows" in " ".join(done.output.split())


def test_prompts_of_a_hold_out_stay_private(world: Published, tmp_path: Path) -> None:
    stated = read_publication(world.first)
    runs = [r.model_copy(update={"release": {"holdout": "private"}}) for r in stated.runs]
    secret = Path(shutil.copytree(world.first, tmp_path / "secret"))
    write_publication(stated.model_copy(update={"runs": runs}), secret)
    with online(), LoopbackHub(tmp_path / "hub") as hub:
        with raises("visibility", "--private", error=HubError):
            plan_of(secret, at(hub.url, "1.0.0"))
        assert plan_of(secret, at(hub.url, "1.0.0", private=True)).private
