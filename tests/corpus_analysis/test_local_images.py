"""Images that are there: tar shards, folders and image columns are mined without a network."""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpora import Corpus, run_all
from hypothesis import given
from hypothesis import strategies as st
from loopback_hub import LoopbackHub
from refusals import raises

from counterprior.corpus_analysis.images.fetch import Fetcher
from counterprior.corpus_analysis.images.local import LocalImages
from counterprior.corpus_analysis.mining.mine_shard import similar
from counterprior.corpus_analysis.pipeline import read_pairs
from counterprior.corpus_analysis.sources.columns import SourceError
from counterprior.corpus_analysis.sources.shards import (
    DAMAGED,
    SourceSettings,
    list_shards,
    read_shard,
)

Samples = list[tuple[str, dict[str, bytes]]]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Fetcher, url: str) -> None:
        raise AssertionError(f"fetched {url}")

    monkeypatch.setattr(Fetcher, "fetch", refuse)


def samples(corpus: Corpus, bodies: dict[str, bytes]) -> Samples:
    """What img2dataset writes of a corpus: image, caption and what is known, by key."""
    found = []
    for number, (url, caption) in enumerate(zip(corpus.urls, corpus.captions, strict=True)):
        known = {"url": f"http://gone.test{url}", "caption": caption, "uid": f"u{number}"}
        files = {"png": bodies[url], "txt": caption.encode(), "json": json.dumps(known).encode()}
        found.append((f"{number:09d}", files))
    return found


def write_tar(path: Path, found: Samples) -> Path:
    with tarfile.open(path, "w") as archive:
        for key, files in found:
            for suffix, data in files.items():
                entry = tarfile.TarInfo(f"{key}.{suffix}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    return path


def write_folder(path: Path, found: Samples) -> Path:
    path.mkdir(parents=True)
    for key, files in found:
        for suffix, data in files.items():
            (path / f"{key}.{suffix}").write_bytes(data)
    return path


def write_column(path: Path, found: Samples) -> Path:
    """An image data set of `datasets`."""
    rows = [
        {"image": {"bytes": f["png"], "path": None}, "text": f["txt"].decode()} for _, f in found
    ]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
    return path


def write_names(path: Path, found: Samples) -> Path:
    """An imagefolder: a table that names files beside it."""
    for key, files in found:
        (path.parent / "train").mkdir(exist_ok=True)
        (path.parent / "train" / f"{key}.png").write_bytes(files["png"])
    rows = [{"file_name": f"train/{k}.png", "text": f["txt"].decode()} for k, f in found]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


LAYOUTS = {
    "00000.tar": write_tar,
    "00000": write_folder,
    "images.parquet": write_column,
    "metadata.jsonl": write_names,
}


def write_boxes(corpus: Corpus, path: Path) -> Path:
    """Boxes by the address that each sample says it is from."""
    for image, url in zip(corpus.boxes["images"], corpus.urls, strict=True):
        image["file_name"] = f"http://gone.test{url}"
    path.write_text(json.dumps(corpus.boxes))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("count", [50, pytest.param(200, marks=pytest.mark.lane)])
def test_tar_shard_runs_every_stage_without_a_network(
    tmp_path: Path, inline: None, cli: Any, count: int
) -> None:
    bodies: dict[str, bytes] = {}
    corpus = Corpus("", bodies, 0.8, count, draw=False)
    found = samples(corpus, bodies)
    (tmp_path / "laion").mkdir()
    write_tar(tmp_path / "laion" / "00000.tar", found[:30])
    write_tar(tmp_path / "laion" / "00001.tar", found[30:])
    # img2dataset's own log of a shard holds the same rows and must not be read again.
    pq.write_table(
        pa.table({"url": corpus.urls[:30], "caption": corpus.captions[:30]}),
        tmp_path / "laion" / "00000.parquet",
    )
    boxes = write_boxes(corpus, tmp_path / "boxes.json")
    done = run_all(tmp_path / "laion", tmp_path / "out", f"boxes:{boxes}")
    assert done.funnel.rows == count and done.funnel.damaged == {}
    assert done.images is not None and done.images["reasons"] == {"ok": count}
    assert done.alignment is not None
    rate = done.alignment.single_probe
    assert (rate.aligned, rate.n) == (sum(corpus.aligned), count)
    pairs = list(read_pairs(tmp_path / "out"))
    assert {p["uid"] for p in pairs} == {f"u{n}" for n in range(count)}
    assert {p["source"] for p in pairs} == {"00000.tar", "00001.tar"}
    made = cli("corpus", "flips", tmp_path / "out", "--out", tmp_path / "flips", "--count", "20")
    assert made.returncode == 0, made.stderr
    assert len(list((tmp_path / "flips").rglob("*.jpg"))) == 40


@pytest.mark.parametrize("name", list(LAYOUTS))
def test_every_layout_gives_the_same_images(name: str, tmp_path: Path, inline: None) -> None:
    bodies: dict[str, bytes] = {}
    corpus = Corpus("", bodies, 0.5, 20, draw=False)
    source = LAYOUTS[name](tmp_path / name, samples(corpus, bodies))
    settings = SourceSettings((str(source),))
    images = LocalImages(settings, None)
    seen: list[Any] = []
    for shard in list_shards(settings):
        for row in read_shard(shard, settings).to_pylist():
            image = images.fetch(row["image"]).image
            assert image is not None
            seen.append((row["caption"], image.sha256))
    assert seen == [
        (caption, hashlib.sha256(bodies[url]).hexdigest())
        for caption, url in zip(corpus.captions, corpus.urls, strict=True)
    ]


READ_ALL = """
import sys
from counterprior.corpus_analysis.images.local import LocalImages
from counterprior.corpus_analysis.sources.shards import SourceSettings, list_shards, read_shard
settings = SourceSettings((sys.argv[1],))
images = LocalImages(settings, None)
for shard in list_shards(settings):
    for row in read_shard(shard, settings).to_pylist():
        print(row["caption"], images.fetch(row["image"]).image.sha256)
"""


@pytest.mark.slow
def test_archives_on_the_hub_are_read_as_local_ones(
    loopback_hub: LoopbackHub, tmp_path: Path
) -> None:
    bodies: dict[str, bytes] = {}
    corpus = Corpus("", bodies, 0.5, 6, draw=False)
    found = samples(corpus, bodies)
    loopback_hub.create("someone/images")
    files = {
        name: LAYOUTS[name](tmp_path / name, found).read_bytes()
        for name in ("00000.tar", "images.parquet")
    }
    loopback_hub.commit("someone/images", files)
    command = [sys.executable, "-c", READ_ALL, "hf://datasets/someone/images"]
    done = subprocess.run(command, capture_output=True, text=True, env=loopback_hub.environment)
    assert done.returncode == 0, done.stderr
    expected = [
        f"{caption} {hashlib.sha256(bodies[url]).hexdigest()}"
        for caption, url in zip(corpus.captions, corpus.urls, strict=True)
    ]
    assert done.stdout.splitlines() == expected * 2


def test_broken_images_are_counted_by_reason(tmp_path: Path, inline: None) -> None:
    bodies: dict[str, bytes] = {}
    corpus = Corpus("", bodies, 1.0, 12, draw=False)
    found = samples(corpus, bodies)
    del found[0][1]["txt"], found[0][1]["json"]  # an image without caption
    found[1][1]["png"] = b""
    found[2][1]["png"] = b"<html>"
    found[3][1]["json"] = b"{not json"
    folder = tmp_path / "laion"
    folder.mkdir()
    write_tar(folder / "0.tar", found)
    data = write_tar(folder / "1.tar", samples(corpus, bodies)).read_bytes()
    (folder / "1.tar").write_bytes(data[: len(data) // 2])
    (folder / "2.tar").write_bytes(b"no tar at all" * 1000)
    done = run_all(folder, tmp_path / "out", f"boxes:{write_boxes(corpus, tmp_path / 'b.json')}")
    assert done.funnel.dropped["empty"] == 2  # and the one whose caption is cut off in 1.tar
    assert {Path(file).name for file in done.funnel.damaged} == {"1.tar", "2.tar"}
    assert done.images is not None
    reasons = Counter(done.images["reasons"])
    assert reasons["empty_file"] == 1 and reasons["not_image"] == 1
    assert 12 < done.funnel.rows < 24 and done.funnel.captions == reasons.total() > 12
    page = (tmp_path / "out" / "index.html").read_text()
    assert "1.tar" in page and "damaged" in page


@given(cut=st.integers(0, 20_480), zeroed=st.booleans())
def test_damaged_tar_is_reported(
    cut: int, zeroed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tar")
    found: Samples = [(f"{n}", {"txt": b"a cat and a dog", "png": b"x" * 600}) for n in range(6)]
    data = write_tar(folder / "a.tar", found).read_bytes()
    end = 6 * (512 + 512 + 512 + 1024)
    junk = data[:cut] + b"\xff" * min(700, len(data) - cut) + data[cut + 700 :]
    (folder / "a.tar").write_bytes(junk if zeroed else data[:cut])
    settings = SourceSettings((str(folder / "a.tar"),))
    table = read_shard(list_shards(settings)[0], settings)
    damaged = DAMAGED in (table.schema.metadata or {})
    if not damaged:
        # Only what lies inside a member's bytes, or after the end, can change unseen.
        assert len(table) == 6 and (cut >= end + 512 or zeroed)
    assert len(table) <= 7


def test_names_outside_the_folder_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(b"secret")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    names = ["../secret.png", str(tmp_path / "secret.png"), "link.png", "none.png"]
    rows = [{"file_name": name, "text": "a cat and a dog"} for name in names]
    (folder / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = SourceSettings((str(folder / "m.jsonl"),))
    images = LocalImages(settings, None)
    places = read_shard(list_shards(settings)[0], settings)["image"].to_pylist()
    found = [images.fetch(place).reason for place in places]
    assert found == ["outside", "outside", "outside", "missing_file"]


DATACOMP = {
    "uid": ["f1a0", "b2c4", "99de"],
    "url": ["http://a.test/1.jpg", "http://a.test/2.jpg", "http://a.test/3.jpg"],
    "text": ["a cat and a dog", "a cow next to a horse", "a cup"],
    "original_width": [640, 320, 100],
    "original_height": [480, 240, 100],
    "clip_b32_similarity_score": [0.4, 0.1, None],
    "clip_l14_similarity_score": [0.31, 0.19, None],
    "face_bboxes": [[[0.1, 0.1, 0.2, 0.2]], [], []],
    "sha256": ["0" * 64, "1" * 64, "2" * 64],
}
"""The columns of DataComp's metadata."""
LAION = {
    "SAMPLE_ID": [1.0, 2.0, 3.0],
    "URL": DATACOMP["url"],
    "TEXT": DATACOMP["text"],
    "HEIGHT": [480, 240, 100],
    "WIDTH": [640, 320, 100],
    "LICENSE": ["?", "?", "?"],
    "NSFW": ["UNLIKELY", "UNLIKELY", "NSFW"],
    "similarity": [0.31, 0.19, None],
}
"""The columns of LAION-400M's and LAION-2B's metadata."""


@pytest.mark.parametrize(("columns", "preset"), [(DATACOMP, "datacomp"), (LAION, "laion")])
@pytest.mark.parametrize("named", [True, False])
def test_published_metadata_is_read_and_filtered(
    columns: dict[str, Any], preset: str, named: bool, tmp_path: Path
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "m.parquet")
    settings = SourceSettings((str(tmp_path / "m.parquet"),), preset=preset if named else "")
    table = read_shard(list_shards(settings)[0], settings)
    first = table.to_pylist()[0]
    assert (first["width"], first["height"], first["similarity"]) == (640, 480, 0.31)
    assert first["url"] == "http://a.test/1.jpg" and first["uid"] in ("f1a0", "1")
    assert similar(table, None, "m")[1] == {}
    kept, dropped = similar(table, 0.2, "m")
    assert kept["caption"].to_pylist() == ["a cat and a dog"]
    assert dropped == {"no_similarity": 1, "unlike": 1}
    with raises("missing-column", "--min-similarity", error=SourceError):
        similar(table.drop(["similarity"]), 0.2, "m")


def test_ids_are_unique_although_a_corpus_repeats_itself(tmp_path: Path, inline: None) -> None:
    caption, url = "a cat and a dog", "http://a.test/1.jpg"
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        table = pa.table({"url": [url] * 3, "caption": [caption] * 3})
        pq.write_table(table, tmp_path / folder / "c.parquet")
    settings = SourceSettings((str(tmp_path / "a"), str(tmp_path / "b")))
    assert [shard.source for shard in list_shards(settings)] == ["a/c.parquet", "b/c.parquet"]
    assert_unique(tmp_path, settings)


def assert_unique(tmp_path: Path, settings: SourceSettings) -> None:
    from counterprior.corpus_analysis.mining.mine_shard import MineSettings
    from counterprior.corpus_analysis.mining.mine_source import mine_pairs
    from counterprior.eval.workers.farm import Scale
    from counterprior.progress import silent

    mine_pairs(MineSettings(settings), tmp_path / "out", Scale(), silent)
    ids = [pair["id"] for pair in read_pairs(tmp_path / "out")]
    assert len(ids) == len(set(ids)) == 6
