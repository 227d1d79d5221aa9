"""Run folders of strangers: digests and paths in their records lead nowhere else."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judged import judged_run
from PIL import Image
from published import KEY, published_run
from refusals import assert_refused, raises

from counterprior.errors import DataError
from counterprior.eval.core import Case, Outcome, Verdict
from counterprior.eval.engine.run import Run, stamp_of
from counterprior.eval.report.gallery import make_thumbnails
from counterprior.eval.report.site import write_report
from counterprior.eval.results.contents import RunContents, read_contents
from counterprior.eval.results.scoring import ScoreSettings
from counterprior.images import encode_png
from counterprior.schema import Consistency

OUTSIDE = ("../../x", "/x", "x/../../x", "", "a" * 63, "A" * 64, "a" * 64 + "\n", "a" * 65, "\0")
"""What is no digest."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A judged run of two images that are there."""
    cases = [Case(f"row{n}", "reverse", 0, 0, "a prompt", ("pair",)) for n in range(2)]
    said = {("arrangement", "original"): Verdict("correct")}
    root = judged_run(tmp_path / "run", [Outcome(case, said) for case in cases])
    (root / "images").mkdir()
    data = encode_png(Image.new("RGB", (64, 64), "red"))
    digest = hashlib.sha256(data).hexdigest()
    for case in cases:
        (root / "images" / case.file).write_bytes(data)
    edit(root, "images.jsonl", lambda r: r | {"file": f"images/{r['case']}.png", "sha256": digest})
    edit(root, "verdicts/*/verdicts.jsonl", lambda r: r | {"image": digest})
    return root


def read_runs(roots: list[Path]) -> list[RunContents]:
    return read_contents(roots, ScoreSettings())


def edit(root: Path, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Path:
    """Changes every record of a log."""
    (path,) = root.glob(name)
    records = [change(json.loads(line)) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def files(root: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("digest", [d for d in OUTSIDE if d])
@pytest.mark.parametrize(
    ("log", "field"), [("images.jsonl", "sha256"), ("verdicts/*/verdicts.jsonl", "image")]
)
def test_a_digest_is_read_by_its_pattern(log: str, field: str, digest: str, run: Path) -> None:
    path = edit(run, log, lambda record: record | {field: digest})
    with raises("bad-value", f"{path}:1:", f" {field}: ", error=DataError):
        read_runs([run])


def test_a_report_writes_nothing_outside_its_site(run: Path, tmp_path: Path, cli: Any) -> None:
    edit(run, "images.jsonl", lambda record: record | {"sha256": "../../escaped"})
    before = files(tmp_path)
    done = cli("report", run, "--out", tmp_path / "site")
    assert done.stderr.count("\n") == 1
    assert_refused(done, "bad-value", "images.jsonl:1: sha256")
    assert {name: data for name, data in files(tmp_path).items() if "/site/" not in name} == before


@pytest.mark.parametrize("file", ["../x.png", "/etc/x.png", "images/../../x.png", "a\0.png", ".."])
def test_a_file_without_a_stamp_lies_in_the_run(file: str, run: Path) -> None:
    edit(run, "images.jsonl", lambda record: record | {"file": file})
    with raises("outside-folder", ":1: file", "images.jsonl:1", error=DataError):
        list(Run.open(run).results.every())


@pytest.mark.parametrize(
    "change",
    [
        {"source": "../x.png"},
        {"source": "/etc/x.png"},
        {"source": "sources/../../x.png"},
        {"source": f"sources/{'a' * 64}.png\n"},
        {"row": "../x"},
        {"row": "a/b"},
        {"variant": "/x"},
        {"row": "a\\b"},
    ],
)
def test_a_case_lies_in_the_run(change: dict[str, str], run: Path) -> None:
    edit(run, "cases.jsonl", lambda record: record | change)
    with raises("changed-file", "cases.jsonl", error=DataError):
        list(Run.open(run).cases())
    header = json.loads((run / "run.json").read_text())
    del header["cases_sha256"]  # as a forger would
    (run / "run.json").write_text(json.dumps(header))
    with raises("outside-folder", "cases.jsonl", error=DataError):
        list(Run.open(run).cases())


def test_a_link_leads_out_of_no_run(run: Path, tmp_path: Path) -> None:
    secret = tmp_path / "private.png"
    Image.new("RGB", (64, 64), "blue").save(secret)
    for path in (run / "images").iterdir():
        path.unlink()
        path.symlink_to(secret)
    with raises("outside-folder", ".png", error=DataError):
        make_thumbnails(read_runs([run]), tmp_path / "site", lambda *_: None)
    assert not (tmp_path / "site").exists()


def test_a_linked_folder_leads_out_of_no_run(run: Path, tmp_path: Path) -> None:
    images = run / "images"
    within = images.rename(run / "drawn")
    images.symlink_to(within)
    assert make_thumbnails(read_runs([run]), tmp_path / "site", lambda *_: None)
    images.unlink()
    images.symlink_to(within.rename(tmp_path / "private"))
    with raises("outside-folder", ".png", error=DataError):
        make_thumbnails(read_runs([run]), tmp_path / "other", lambda *_: None)
    assert not (tmp_path / "other").exists()


def test_images_that_lie_elsewhere_are_shown_only_to_who_has_their_digest(
    run: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "private.png"
    Image.new("RGB", (64, 64), "blue").save(elsewhere)
    place = {"file": str(elsewhere), "stamp": stamp_of(elsewhere)}
    # A stranger's guess at where an image lies, even with its size and time.
    edit(run, "images.jsonl", lambda record: record | place)
    assert not make_thumbnails(read_runs([run]), tmp_path / "site", lambda *_: None)
    # `folder:` recorded the digest: a report shows it.
    digest = hashlib.sha256(elsewhere.read_bytes()).hexdigest()
    edit(run, "images.jsonl", lambda record: record | {"sha256": digest})
    edit(run, "verdicts/*/verdicts.jsonl", lambda record: record | {"image": digest})
    assert list(make_thumbnails(read_runs([run]), tmp_path / "site", lambda *_: None)) == [digest]


@pytest.mark.parametrize("digest", OUTSIDE)
def test_a_row_holds_a_digest(digest: str) -> None:
    from pydantic import ValidationError

    with pytest.raises(ValidationError, match="image_sha256"):
        Consistency.model_validate({"image_sha256": digest, "suite": "consistency"})


def test_a_site_and_its_exports_show_no_secret_and_no_place(tmp_path: Path) -> None:
    root = published_run(tmp_path / "run", "t2i_homogenization", "g")
    forms = ["inspect", "hub"]
    site = tmp_path / "site"
    write_report([root], site, ScoreSettings(), exports=forms, dataset="me/bench@v1.0.0")
    written = [path for path in site.rglob("*") if path.is_file()]
    exported = [path for path in written if "export" in path.parts]
    assert len(written) > len(exported) == 4
    for path in written:
        shown = path.name + path.read_text("utf-8", "replace")
        assert not any(secret in shown for secret in (KEY, "me:pw@", str(tmp_path))), path
        if path in exported or path.suffix == ".json":
            # What a page shows of a run of another machine is said in SECURITY.md.
            assert "home/somebody" not in shown and "home-somebody" not in shown, path


def test_a_folder_of_a_run_can_be_moved(run: Path, tmp_path: Path) -> None:
    shutil.move(run, tmp_path / "moved")
    (tmp_path / "link").symlink_to(tmp_path / "moved")
    (opened,) = read_runs([tmp_path / "link"])
    assert len(make_thumbnails([opened], tmp_path / "site", lambda *_: None)) == 1
