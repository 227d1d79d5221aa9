"""What a downstream researcher does with a release: load it, stream it, trust it."""

import io
import json
import shutil
from pathlib import Path

import datasets
import pytest
import yaml
from PIL import Image
from refusals import raises

import counterprior
from counterprior.builders.build import BuildSettings, build
from counterprior.cards.documents import render_documents
from counterprior.cards.manifest import read_manifest
from counterprior.cards.write import write_release
from counterprior.release import ReleaseError, iter_records, parquet_path, verify
from counterprior.schema import ROWS, features

CONFIGS = {
    "t2i_homogenization": 1_700,
    "t2i_correctness": None,
    "i2i_homogenization": 1_100,
    "i2i_correctness": 1_100,
    "counterfactual": None,
    "counterfactual_denominalized": None,
    "altered_worlds": 4_364,
    "rule_decoupling": 198,
    "attribute_decoupling": 200,
    "spatial_uc": 200,
    "spatial_visor": 25_280,
    "spatial_multi": 200,
    "spatial_3d": 1_000,
    "spatial_distance": 400,
    "spatial_clauses": 200,
    "order_beyond": 800,
    "t2i_homogenization_multilingual": 1_800,
    "order_beyond_multilingual": 540,
}
"""Rows that the design promises; None where the bank decides."""


@pytest.mark.parametrize("config", CONFIGS)
def test_load_dataset_reads_every_config(full_release: Path, config: str) -> None:
    dataset = datasets.load_dataset(str(full_release), config, split="test")
    assert dataset.features == features(config)
    assert CONFIGS[config] in (None, len(dataset))
    assert dataset[0]["suite"] == config
    assert (
        str(dataset.info.version)
        == json.loads((full_release / "manifest.json").read_text())["changes"][0]["version"]
    )


@pytest.mark.parametrize(
    "config",
    [pytest.param(c, marks=[pytest.mark.slow] * (c == "spatial_visor")) for c in CONFIGS],
)
def test_filters_choose_rows_while_loading(full_release: Path, config: str) -> None:
    """A card that stated numbers of rows would make `datasets` refuse what a filter leaves."""
    records = list(iter_records(full_release, config))
    column, wanted = "id", records[len(records) // 2]["id"]
    if config == "spatial_visor":
        column, wanted = "relation", "left_of"
    for streaming in (False, True):
        rows = datasets.load_dataset(
            str(full_release),
            config,
            split="test",
            filters=[(column, "=", wanted)],
            streaming=streaming,
        )
        expected = [record["id"] for record in records if record[column] == wanted]
        assert [row["id"] for row in rows.select_columns(["id"])] == expected


def test_the_text_of_the_card_begins_on_the_third_screen_at_the_latest(full_release: Path) -> None:
    yaml_text = (full_release / "README.md").read_text().split("---\n")[1]
    assert len(yaml_text.splitlines()) < 30 + 8 * len(CONFIGS)
    assert "features" not in yaml_text


def test_the_release_has_exactly_these_configs(full_release: Path) -> None:
    assert datasets.get_dataset_config_names(str(full_release)) == list(CONFIGS)
    assert set(CONFIGS) <= set(ROWS)


def test_the_default_config_needs_no_name(full_release: Path) -> None:
    dataset = datasets.load_dataset(str(full_release), split="test")
    assert dataset[0]["suite"] == "t2i_homogenization"


@pytest.mark.parametrize("config", CONFIGS)
def test_streaming_gives_the_same_rows(full_release: Path, config: str) -> None:
    stream = datasets.load_dataset(str(full_release), config, split="test", streaming=True)
    ids = [record["id"] for record in iter_records(full_release, config)]
    streamed = stream.select_columns(["id"])
    assert [row["id"] for row in streamed] == ids
    assert len(set(ids)) == len(ids)


def test_columns_are_pushed_down(full_release: Path) -> None:
    dataset = datasets.load_dataset(
        str(full_release), "i2i_correctness", split="test", columns=["id", "aligned_instruction"]
    )
    assert dataset.column_names == ["id", "aligned_instruction"]


@pytest.mark.parametrize("config", ["i2i_homogenization", "i2i_correctness"])
def test_seed_images_decode(full_release: Path, config: str) -> None:
    dataset = datasets.load_dataset(str(full_release), config, split="test")
    sizes = set()
    for number in range(0, len(dataset), 100):
        image = dataset[number]["seed_image"]
        assert image.mode == "RGB"
        sizes.add(image.size)
    assert len(sizes) == 1
    assert set(dataset["seed_source"]) == {"render"}


def test_load_checks_what_it_returns(full_release: Path, tmp_path: Path) -> None:
    for config in ("spatial_uc", "i2i_homogenization"):
        dataset = counterprior.load(full_release, config, cache_dir=tmp_path)
        assert len(dataset) == CONFIGS[config]
    assert isinstance(dataset[0]["seed_image"], Image.Image)


def test_two_folders_of_one_name_do_not_share_a_cache(tmp_path: Path) -> None:
    """`datasets` alone would return the first folder's rows if their cards were equal."""
    folders = []
    for number in (0, 7):
        out = tmp_path / str(number) / "repo"
        out.mkdir(parents=True)
        write_release(build(BuildSettings(("spatial_multi",), seed=number)), out)
        folders.append(out)
    loaded = [
        datasets.load_dataset(str(out), "spatial_multi", split="test", cache_dir=tmp_path / "cache")
        for out in folders
    ]
    for dataset, out in zip(loaded, folders, strict=True):
        assert dataset["id"] == [r["id"] for r in iter_records(out, "spatial_multi")]
    assert set(loaded[0]["id"]) != set(loaded[1]["id"])


def test_the_card_gives_every_config_a_key_of_its_content(full_release: Path) -> None:
    """`datasets` keys its cache on these entries and not on the data."""
    card = yaml.safe_load((full_release / "README.md").read_text().split("---\n")[1])
    checksums = json.loads((full_release / "checksums.json").read_text())["files"]
    for entry in card["configs"]:
        digest = checksums[parquet_path(entry["config_name"])]["rows_sha256"]
        assert digest in entry["description"]
        assert entry["version"] == counterprior.__version__


def test_a_stale_cache_is_an_error(text_release: Path, tmp_path: Path) -> None:
    """The card stays the same while the data changes: `datasets` returns its cached rows."""
    root = Path(shutil.copytree(text_release, tmp_path / "repo"))
    cache = tmp_path / "cache"
    assert len(counterprior.load(root, "spatial_uc", cache_dir=cache)) == 200
    checksums = json.loads((root / "checksums.json").read_text())
    checksums["files"][parquet_path("spatial_uc")]["rows_sha256"] = "0" * 64
    (root / "checksums.json").write_text(json.dumps(checksums))
    with raises("changed-file", "spatial_uc", error=ReleaseError):
        counterprior.load(root, "spatial_uc", cache_dir=cache)


def test_a_repository_is_read_at_one_commit(
    text_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checksums and rows come from the commit that the revision meant when it was asked for."""
    import huggingface_hub

    commit = "c" * 40
    asked: list[tuple[str, str | None]] = []

    class Api:
        def dataset_info(self, repo: str, revision: str | None) -> object:
            asked.append(("info", revision))
            return type("Info", (), {"sha": commit})

    def download(repo: str, name: str, repo_type: str, revision: str) -> str:
        asked.append((name, revision))
        return str(text_release / name)

    local = datasets.load_dataset

    def load(path: str, config: str, *, revision: str, **options: object) -> datasets.Dataset:
        asked.append((path, revision))
        return local(str(text_release), config, **options)

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(datasets, "load_dataset", load)
    dataset = counterprior.load("ns/name", "spatial_uc", revision="v1.0.0", cache_dir=tmp_path)
    assert len(dataset) == 200
    assert asked == [("info", "v1.0.0"), ("checksums.json", commit), ("ns/name", commit)]


def test_no_revision_is_taken_from_a_cache(
    text_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the Hub is away, only a commit says which rows those in the cache are."""
    import huggingface_hub
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    local, commit, away = datasets.load_dataset, "c" * 40, OSError("no route")
    ends: list[Exception] = []

    def info(self: object, repo: str, revision: str | None) -> object:
        raise ends[0]

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    monkeypatch.setattr(
        huggingface_hub, "hf_hub_download", lambda repo, name, **_: text_release / name
    )
    monkeypatch.setattr(
        datasets,
        "load_dataset",
        lambda path, config, revision, **o: local(str(text_release), config, **o),
    )

    def load(revision: str | None) -> datasets.Dataset:
        return counterprior.load("ns/name", "spatial_uc", revision=revision, cache_dir=tmp_path)

    ends[:] = [away]
    for revision, which in (("v1.0.0", "revision 'v1.0.0'"), (None, "its newest revision")):
        with raises("server-unreachable", which, "the 40-digit commit", error=ReleaseError):
            load(revision)
    assert len(load(commit)) == 200
    response = type("Response", (), {"headers": {}, "request": None})()
    ends[:] = [RevisionNotFoundError("404", response=response)]
    with raises("no-revision", "bogus", "see the tags", error=ReleaseError):
        load("bogus")
    ends[:] = [RepositoryNotFoundError("404", response=response)]
    with raises("no-such-file", "ns/name", "check the name", error=ReleaseError):
        load(None)


def test_reports_missing_releases_and_configs(text_release: Path, tmp_path: Path) -> None:
    with raises("unknown-name", "spatial_visor", "spatial_uc, t2i_correctness", error=ReleaseError):
        counterprior.load(text_release, "spatial_visor")
    for absent in ("dist/gone", tmp_path / "gone"):  # a folder, never asked of the Hub
        with raises("no-such-file", f"counterprior build --out {absent}", error=ReleaseError):
            counterprior.load(absent, "spatial_uc")
    (tmp_path / "checksums.json").write_text("[]")
    with raises("not-a-release", "checksums.json", "`files`", error=ReleaseError):
        counterprior.load(tmp_path, "spatial_uc")
    (tmp_path / "checksums.json").unlink()
    with raises("no-revision", text_release, "revision=", error=ReleaseError):
        counterprior.load(text_release, "spatial_uc", revision="v1")
    with raises("no-such-file", "`build`", error=ReleaseError):
        counterprior.load(tmp_path, "spatial_uc")


def test_eval_yaml_registers_the_complete_configs(text_release: Path) -> None:
    """The keys that the Hub documents, and tasks that `load_dataset` finds."""
    found = yaml.safe_load((text_release / "eval.yaml").read_text())
    assert list(found) == ["name", "description", "tasks"]
    names = datasets.get_dataset_config_names(str(text_release))
    assert found["tasks"] == [{"id": name, "config": name, "split": "test"} for name in names]
    facts = read_manifest(text_release)
    preview = facts.configs[0].model_copy(update={"status": "preview"})
    changed = facts.model_copy(update={"configs": [preview, *facts.configs[1:]]})
    tasks = yaml.safe_load(render_documents(changed)["eval.yaml"])["tasks"]
    assert [task["id"] for task in tasks] == names[1:]


def test_verify_finds_changed_missing_and_foreign_files(text_release: Path, tmp_path: Path) -> None:
    assert verify(text_release) == []
    root = Path(shutil.copytree(text_release, tmp_path / "repo"))
    (root / "LICENSE").write_text("none")
    (root / "datasheet.md").unlink()
    (root / "extra.txt").write_text("x")
    found = {(p.file, p.message.split(" ")[0]) for p in verify(root)}
    assert found == {("LICENSE", "bytes"), ("datasheet.md", "is"), ("extra.txt", "is")}


def test_images_are_the_bytes_that_the_row_names(full_release: Path) -> None:
    import hashlib

    for record in list(iter_records(full_release, "i2i_correctness"))[::200]:
        encoded = record["seed_image"]["bytes"]
        assert hashlib.sha256(encoded).hexdigest() == record["image_sha256"]
        with Image.open(io.BytesIO(encoded)) as image:
            assert image.format == "PNG"


def test_the_datasheet_tabulates_written_content_by_its_parts(full_release: Path) -> None:
    facts = json.loads((full_release / "manifest.json").read_text())
    config = next(c for c in facts["configs"] if c["name"] == "t2i_correctness")
    rows = list(iter_records(full_release, "t2i_correctness"))
    lines = config["tabulated"]
    assert sum(line["rows"] for name, line in lines.items() if name != "all") == len(rows)
    maps = [row for row in rows if row["domain"] == "maps"]
    assert lines["maps"]["rows"] == len(maps)
    assert lines["maps"]["different family"] == len({row["family"] for row in maps})
    assert lines["maps"]["basis code-derived"] == sum(r["basis"] == "code-derived" for r in maps)
    worlds = next(c for c in facts["configs"] if c["name"] == "counterfactual")["tabulated"]["all"]
    rows = list(iter_records(full_release, "counterfactual"))
    assert worlds["different group"] == len({row["group"] for row in rows}) == len(rows) / 3
    assert worlds["different altered_law"] == len({row["altered_law"] for row in rows})
    table = (full_release / "datasheet.md").read_text()
    assert f"| maps | {len(maps)} | {lines['maps']['different family']} |" in table
