"""`counterprior validate` on a built release that was damaged: file, row and field are named."""

import hashlib
import io
import json
import shutil
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import assert_refused

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.build import as_released, bank_digest, rebuilt, row_checks
from counterprior.cards.config_checks import Origin, differences
from counterprior.cards.croissant_records import _first_of_each_kind, _sample
from counterprior.cards.manifest import read_manifest
from counterprior.cards.validate import not_comparable, validate
from counterprior.images import encode_png, opened
from counterprior.release import Problem, iter_records, parquet_path, sha256_file
from counterprior.schema import ROWS, item_id, rows_digest

Run = Callable[..., subprocess.CompletedProcess[str]]
Records = list[dict[str, Any]]


@pytest.fixture(scope="module")
def smallest(cli: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of 200 rows; read only."""
    out = tmp_path_factory.mktemp("smallest") / "release"
    assert cli("build", "--out", out, "--config", "spatial_uc").returncode == 0
    return out


@pytest.fixture
def release(smallest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(smallest, tmp_path / "release"))


@pytest.fixture
def texts(text_release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(text_release, tmp_path / "release"))


def problems(root: Path, croissant: bool = False) -> list[Problem]:
    """Iterating every Croissant record takes most of a validation: only where it is asked for."""
    skipped = patch("counterprior.cards.validate.record_problems", return_value=())
    with nullcontext() if croissant else skipped:
        return list(validate(root, row_checks()).problems)


def rewrite(root: Path, config: str, change: Callable[[Records], Records]) -> None:
    """Damage the rows as a careful forger would: footer, checksums and manifest follow suit."""
    path = root / parquet_path(config)
    schema = pq.read_schema(path)
    records = change(pq.read_table(path).to_pylist())
    pq.write_table(pa.Table.from_pylist(records, schema=schema), path)
    facts = {
        "sha256": sha256_file(path),
        "bytes": path.stat().st_size,
        "rows": len(records),
        "rows_sha256": rows_digest(records),
    }
    manifest = json.loads((root / "manifest.json").read_text())
    next(c for c in manifest["configs"] if c["name"] == config).update(facts)
    (root / "manifest.json").write_text(json.dumps(manifest))
    checksums = json.loads((root / "checksums.json").read_text())
    checksums["files"][parquet_path(config)].update(facts)
    (root / "checksums.json").write_text(json.dumps(checksums))


@pytest.mark.lane  # `make release` builds and validates it
def test_the_full_release_is_valid(drawn_release: Path, cli: Run) -> None:
    done = cli("validate", drawn_release, "--json")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["problems"] == []
    assert json.loads(done.stdout)["notes"] == []


def test_a_changed_byte_is_found(release: Path, cli: Run) -> None:
    path = release / parquet_path("spatial_uc")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    done = cli("validate", release)
    assert done.returncode == 1
    assert f"{parquet_path('spatial_uc')}: bytes differ from checksums.json" in done.stdout


Damage = tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]
"""The field that is named, and what is done to a record."""
ROWS_DAMAGED: dict[str, list[Damage]] = {
    "t2i_homogenization": [
        ("id", lambda r: r | {"prompt": "One cat beside one dog."}),
        ("swapped_prompt", lambda r: r | {"swapped_prompt": "One cat beside one dog."}),
    ],
    "t2i_correctness": [
        (
            "aligned_prompt",
            lambda r: (
                r | {"aligned_prompt": r["reverse_prompt"], "reverse_prompt": r["aligned_prompt"]}
            ),
        ),
        ("aligned_prompt", lambda r: r | {"left": r["right"], "right": r["left"]}),
        ("frame", lambda r: r | {"frame": "sideways"}),
    ],
    "spatial_uc": [
        ("id", lambda r: r | {"id": "spatial_uc-000000000000"}),
        ("prompt", lambda r: r | {"prompt": "A photo of an apple."}),
        ("review", lambda r: r | {"review": []}),
    ],
}


@pytest.mark.parametrize("config", ROWS_DAMAGED)
def test_damaged_rows_are_named_even_when_all_digests_follow(texts: Path, config: str) -> None:
    damages = ROWS_DAMAGED[config]

    def damage(records: Records) -> Records:
        hurt = [change(record) for (_, change), record in zip(damages, records, strict=False)]
        return [*hurt, *records[len(damages) : -1], records[len(damages)]]  # the last one twice

    ids = [record["id"] for record in islice(iter_records(texts, config), len(damages) + 1)]
    rewrite(texts, config, damage)
    file = parquet_path(config)
    found = {(p.row, p.field.split(".")[0]) for p in problems(texts) if p.file == file}
    for (field, _), row in zip(damages, ids, strict=False):
        assert (row, field) in found or (field == "id" and "id" in {name for _, name in found})
    assert (ids[-1], "id") in found
    if config == "t2i_homogenization":  # a row is lost, and with it the balance
        assert "pair_type" in {field for _, field in found}


def test_a_forged_row_with_a_matching_id_is_found_by_its_text(texts: Path) -> None:
    prompt = "One cat beside one dog."

    def forge(records: Records) -> Records:
        forged = {"prompt": prompt, "id": item_id("t2i_homogenization", prompt)}
        return [records[0] | forged, *records[1:]]

    rewrite(texts, "t2i_homogenization", forge)
    found = {(p.row, p.field) for p in problems(texts) if "spatial word" in p.message}
    assert found == {(item_id("t2i_homogenization", prompt), "prompt")}


def test_a_dropped_row_contradicts_the_manifest(release: Path) -> None:
    path = release / parquet_path("spatial_uc")
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    messages = [str(p) for p in problems(release)]
    assert any("has 199 rows, but checksums.json says 200" in m for m in messages)
    assert any(m.startswith("manifest.json:spatial_uc:rows") for m in messages)


@pytest.mark.parametrize(
    ("old", "new"),
    [("rows sha256", "rows sha255"), ("| 200 | 200 |", "| 199 | 200 |")],
)
def test_a_wrong_fact_in_the_readme_is_found_by_its_line(release: Path, old: str, new: str) -> None:
    card = release / "README.md"
    text = card.read_text()
    assert old in text
    card.write_text(text.replace(old, new, 1))
    line = 1 + text[: text.index(old)].count("\n")
    found = [p for p in problems(release) if p.file == "README.md"]
    assert f"line {line}" in {p.field for p in found}


def test_a_missing_column_is_named(release: Path) -> None:
    path = release / parquet_path("spatial_uc")
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["relation"]), path)
    found = {(p.file, p.field) for p in problems(release) if p.message == "column is missing"}
    assert found == {(parquet_path("spatial_uc"), "relation")}


def test_a_column_of_another_type_and_an_unknown_one_are_named(release: Path) -> None:
    path = release / parquet_path("spatial_uc")
    table = pq.read_table(path)
    number = table.schema.get_field_index("relation")
    table = table.set_column(number, "relation", pa.array(range(len(table))))
    pq.write_table(table.append_column("extra", table["id"]), path)
    found = {(p.field, p.message.split(",")[0]) for p in problems(release)}
    assert ("relation", "column is int64") in found
    assert ("extra", "column is unknown") in found


def test_a_truncated_parquet_is_named(release: Path, cli: Run) -> None:
    path = release / parquet_path("spatial_uc")
    path.write_bytes(path.read_bytes()[:-100])
    done = cli("validate", release)
    assert done.returncode == 1
    assert f"{parquet_path('spatial_uc')}: can't be read" in done.stdout


@pytest.mark.parametrize("name", ["bytes", "version"])
def test_checksums_that_contradict_the_manifest_are_found(release: Path, name: str) -> None:
    checksums = json.loads((release / "checksums.json").read_text())
    (checksums if name == "version" else checksums["files"][parquet_path("spatial_uc")])[name] = 1
    (release / "checksums.json").write_text(json.dumps(checksums))
    assert ("checksums.json", name) in {(p.file, p.field) for p in problems(release)}


def test_a_missing_file_is_named(release: Path) -> None:
    (release / parquet_path("spatial_uc")).unlink()
    messages = [str(p) for p in problems(release)]
    assert f"{parquet_path('spatial_uc')}: is missing" in messages


@pytest.mark.parametrize("document", ["datasheet.md", "croissant.json", "eval.yaml", "CANARY.md"])
def test_every_document_is_what_the_manifest_renders(release: Path, document: str) -> None:
    path = release / document
    path.write_text(path.read_text().replace("e", "3", 1))
    assert document in {p.file for p in problems(release) if "renders" in p.message}


def test_croissant_that_describes_another_file_is_found(release: Path) -> None:
    path = release / "croissant.json"
    document = json.loads(path.read_text())
    column = document["recordSet"][0]["field"][2]["source"]["extract"]
    name, column["column"] = column["column"], "canary"
    path.write_text(json.dumps(document))
    wrong = problems(release, croissant=True)
    found = [(p.file, p.field) for p in wrong if "differs from the" in p.message]
    assert found == [("croissant.json", name)]


def test_croissant_reads_a_row_of_each_kind_of_values(texts: Path, tmp_path: Path) -> None:
    """A sample, in which what only one row has is there all the same."""
    config = "t2i_homogenization"

    def unlike(records: Records) -> Records:
        records[777]["review"] = []
        records[1_234]["prompt"] = ""
        return records

    rewrite(texts, config, unlike)
    assert _sample(texts, config, tmp_path)
    rows, read = (list(iter_records(root, config)) for root in (texts, tmp_path))
    assert len(read) < 100 < len(rows) and rows[777] in read and rows[1_234] in read


@pytest.mark.slow
def test_a_digest_in_croissant_that_is_not_the_files_is_named(texts: Path) -> None:
    path = texts / "croissant.json"
    document = json.loads(path.read_text())
    document["distribution"][0]["sha256"] = "0" * 64
    path.write_text(json.dumps(document))
    assert any("Hash of downloaded file" in p.message for p in problems(texts, croissant=True))


def test_a_missing_responsible_ai_property_is_named(release: Path) -> None:
    path = release / "croissant.json"
    document = json.loads(path.read_text())
    del document["rai:dataBiases"]
    path.write_text(json.dumps(document))
    wrong = problems(release, croissant=True)
    assert ("croissant.json", "rai:dataBiases") in {(p.file, p.field) for p in wrong}


def only(config: str, release: Path, root: Path) -> Path:
    """A copy of a release without its other configs and its documents."""
    root.mkdir()
    manifest = json.loads((release / "manifest.json").read_text())
    manifest["configs"] = [c for c in manifest["configs"] if c["name"] == config]
    (root / "manifest.json").write_text(json.dumps(manifest))
    shutil.copytree(release / config, root / config)
    checksums = json.loads((release / "checksums.json").read_text())
    (root / "checksums.json").write_text(json.dumps(checksums))
    return root


def with_image(record: dict[str, Any], data: bytes) -> dict[str, Any]:
    image = record["seed_image"] | {"bytes": data}
    return record | {"seed_image": image, "image_sha256": hashlib.sha256(data).hexdigest()}


@pytest.mark.slow
def test_seed_images_are_decoded_unless_they_are_kept_drawings(
    full_release: Path, tmp_path: Path, cli: Run
) -> None:
    config = "i2i_homogenization"
    root = only(config, full_release, tmp_path / "release")

    def damage(records: Records) -> Records:
        cut, spoiled, other, *rest = records[:20]
        data = cut["seed_image"]["bytes"]
        with opened(io.BytesIO(other["seed_image"]["bytes"])) as image:
            image.load()
            image.putpixel((3, 3), (1, 2, 3))
            redrawn = encode_png(image)
        return [
            with_image(cut, data[: len(data) // 2]),
            with_image(spoiled, b"no image"),
            with_image(other, redrawn),  # another image than the recipe draws, but an image
            *rest,
        ]

    rewrite(root, config, damage)
    rows = [record["id"] for record in iter_records(root, config)]
    kept, again = cli("validate", root), cli("validate", root, "--redraw")
    assert kept.returncode == again.returncode == 1, kept.stderr + again.stderr
    lines = kept.stdout.splitlines()
    assert lines[:-1] == again.stdout.splitlines()[:-1]
    for row in rows[:2]:
        assert sum(f"{row}:seed_image: is not a readable image" in line for line in lines) == 1
    assert not any(f"{row}:seed_image" in line for row in rows[2:] for line in lines)
    assert "; 17 seed images are kept drawings, the others were decoded" in lines[-1]
    assert "seed images are kept" not in again.stdout


@pytest.mark.slow
def test_several_processes_name_the_same_problems_in_the_same_order(texts: Path) -> None:
    def damage(records: Records) -> Records:
        forged = records[0] | {"review": []}
        return [forged, records[2], records[1], *records[3:], records[5]]

    for config in ("t2i_homogenization", "spatial_uc"):
        rewrite(texts, config, damage)
    cut = texts / parquet_path("t2i_correctness")
    cut.write_bytes(cut.read_bytes()[:-100])
    (texts / "README.md").write_text("A card.")
    (texts / "more.txt").write_text("more")
    alone = validate(texts, row_checks(), SHIPPED)
    with patch("counterprior.cards.validate.LARGE", 0):
        beside = validate(texts, row_checks(), SHIPPED, jobs=3)
    assert beside == alone and len(alone.problems) > 20
    files = {problem.file.partition("/")[0] for problem in alone.problems}
    assert files >= {"README.md", "more.txt", "spatial_uc", "t2i_correctness", "manifest.json"}


def test_each_entry_of_the_manifest_is_compared_even_of_one_config(release: Path) -> None:
    path = release / "manifest.json"
    manifest = json.loads(path.read_text())
    (entry,) = manifest["configs"]
    manifest["configs"] = [entry | {"pictures": 7}, entry]
    path.write_text(json.dumps(manifest))
    assert any("says 7, but the rows give 0" in p.message for p in problems(release))


def test_a_config_that_this_version_does_not_know_is_named(release: Path, cli: Run) -> None:
    path = release / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["configs"].append(manifest["configs"][0] | {"name": "spatial_4d", "file": "x.parquet"})
    path.write_text(json.dumps(manifest))
    done = cli("validate", release)
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("manifest.json:configs: config 'spatial_4d' is unknown") == 1


def test_the_first_of_each_kind_of_values() -> None:
    columns = {
        "text": ["a", "b", "", "é", "a\nb", None, "é", ""],
        "number": [1.0, 2.0, 0.0, -1.0, float("nan"), None, 3.0, -0.5],
        "flag": [True, True, False, None, False, True, None, True],
        "list": [["a"], ["b"], ["a", "b"], ["a", "é"], [], None, ["a", "b", "c"], ["é", "a"]],
        "parts": [{"n": 1, "t": "a"}, {"n": 2, "t": "b"}, {"n": 0, "t": "b"}, None, *[None] * 4],
        "bytes": [b"", b"a", b"", None, b"b", b"", b"", b""],
    }
    first = {name: _first_of_each_kind(pa.array(values)) for name, values in columns.items()}
    assert {name: sorted(places) for name, places in first.items()} == {
        "text": [0, 2, 3, 4, 5],
        "number": [0, 2, 3, 4, 5],
        "flag": [0, 2, 3],
        "list": [0, 2, 3, 4, 5],
        "parts": [0, 2, 3],
        "bytes": [0, 3],
    }


@pytest.mark.slow
def test_unreadable_images_are_named(full_release: Path, tmp_path: Path) -> None:
    config = "i2i_homogenization"
    root = only(config, full_release, tmp_path / "release")

    def damage(records: Records) -> Records:
        good = records[0]["seed_image"]
        cut = good | {"bytes": good["bytes"][: len(good["bytes"]) // 2]}
        return [
            records[0] | {"seed_image": cut},
            records[1] | {"seed_image": good | {"bytes": b"no image"}},
            *records[2:20],
        ]

    rewrite(root, config, damage)
    rows = [r["id"] for r in pq.read_table(root / parquet_path(config), columns=["id"]).to_pylist()]
    faults = problems(root)
    found = {(p.row, p.field) for p in faults if "is not a readable image" in p.message}
    assert found == {(rows[0], "seed_image"), (rows[1], "seed_image")}
    with patch("counterprior.cards.validate.LARGE", 0):  # in a process of its own
        beside = validate(root, row_checks(), jobs=2).problems
    undocumented = "croissant.json"  # which the reduced release lacks
    assert {p for p in beside if p.file != undocumented} == {
        p for p in faults if p.file != undocumented
    }
    wrong = {p.row for p in faults if p.field == "image_sha256"}
    assert wrong == {rows[0], rows[1]}


def test_rejects_a_folder_without_a_release(tmp_path: Path, cli: Run) -> None:
    done = cli("validate", tmp_path)
    assert_refused(done, "no-such-file", tmp_path / "manifest.json", "`build`")


def test_every_row_type_has_a_validator_or_is_not_built_yet() -> None:
    from counterprior.builders.suites import SUITES

    assert set(SUITES) <= set(ROWS)


SHIPPED = Origin(bank_digest(DEFAULT_BANK), rebuilt(DEFAULT_BANK), as_released)
FORGED: dict[type, Callable[[Any], Any]] = {
    str: lambda value: f"{value} forged" if value else "forged",
    bool: lambda value: not value,
    int: lambda value: value + 1,
    float: lambda value: value + 0.5,
    list: lambda value: [*value[1:], FORGED[type(value[0])](value[0])] if value else ["forged"],
    dict: lambda value: {name: FORGED[type(v)](v) if v else v for name, v in value.items()},
    type(None): lambda value: "forged",
}
"""A value -> another of its type."""
DRAWN = {"seed_image", "image_sha256", "seed_source"}
SOME = 28
"""Rows of each config that are tried."""


def test_every_field_of_every_config_is_compared_with_the_bank(full_release: Path) -> None:
    tried, missed = 0, []
    for config in read_manifest(full_release).configs:
        records = list(islice(iter_records(full_release, config.name), SOME))
        expected = [ROWS[config.name].model_validate(record) for record in records]
        assert not list(differences(config, records, expected, SHIPPED))
        for field in set(records[0]) - DRAWN:
            for number, record in enumerate(records[::9]):
                forged = {field: FORGED[type(record[field])](record[field])}
                if forged[field] == record[field]:
                    continue
                changed = list(records)
                changed[9 * number] = record | forged
                found = list(differences(config, changed, expected, SHIPPED))
                tried += 1
                if not found or any(p.field not in (field, "id") for p in found):
                    missed.append((config.name, field, forged[field]))
    print(f"{tried} forgeries, {len(missed)} missed")
    assert tried > 1000 and not missed


def test_exchanged_rows_are_found(release: Path) -> None:
    def exchange(records: Records) -> Records:
        first, second = records[0], records[1]
        return [first | {"id": second["id"]}, second | {"id": first["id"]}, *records[2:]]

    for change, message in (
        (exchange, "the bank gives"),
        (lambda r: [r[1], r[0], *r[2:]], "another place"),
        (lambda r: r[:-1], "lacks 1 row"),
    ):
        folder = Path(shutil.copytree(release, release.with_name(f"r{message[:4]}")))
        rewrite(folder, "spatial_uc", change)
        with patch("counterprior.cards.validate.record_problems", return_value=()):
            report = validate(folder, row_checks(), SHIPPED)
        assert any(message in p.message for p in report.problems), message
        assert f"bank {SHIPPED.sha256[:12]}" in report.compared


def test_skips_comparison_with_another_bank_or_version(release: Path) -> None:
    other = replace(SHIPPED, sha256="0" * 64)
    assert "give it with --bank" in not_comparable(read_manifest(release), other)
    assert any("--bank" in note for note in validate(release, row_checks(), other).notes)
    facts = read_manifest(release)
    older = facts.model_copy(update={"made_with": facts.made_with | {"counterprior": "0.0.1"}})
    assert "counterprior 0.0.1 built them" in not_comparable(older, SHIPPED)
    assert not not_comparable(facts, SHIPPED)
