"""The version bump that a change demands (Croissant 1.1, versioning)."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import raises

from counterprior.cards.diff import _compared, diff
from counterprior.cards.versions import Bump
from counterprior.release import ReleaseError, parquet_path

Records = list[dict[str, Any]]
CONFIG = "spatial_uc"


@pytest.fixture
def copy(text_release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(text_release, tmp_path / "new"))


def rewritten(root: Path, change: Callable[[Records], Records]) -> None:
    path = root / parquet_path(CONFIG)
    schema = pq.read_schema(path)
    records = change(pq.read_table(path).to_pylist())
    pq.write_table(pa.Table.from_pylist(records, schema=schema), path)


def edit(records: Records) -> Records:
    return [records[0] | {"prompt": "Another."}, *records[1:]]


@pytest.mark.parametrize(
    ("change", "bump", "counts"),
    [
        (lambda r: r, "NONE", (0, 0, 0)),
        (lambda r: r[::-1], "MAJOR", (0, 0, 0)),
        (lambda r: [r[0] | {"id": "spatial_uc-new"}, *r], "MINOR", (1, 0, 0)),
        (lambda r: [*r, r[0] | {"id": "spatial_uc-new"}], "MINOR", (1, 0, 0)),
        (lambda r: r[1:], "MAJOR", (0, 1, 0)),
        (edit, "MAJOR", (0, 0, 1)),
        (lambda r: [r[0] | {"status": "retired"}, *r[1:]], "MAJOR", (0, 0, 1)),
    ],
)
def test_rows_decide(
    text_release: Path,
    copy: Path,
    change: Callable[[Records], Records],
    bump: Bump,
    counts: tuple[int, int, int],
) -> None:
    rewritten(copy, change)
    found = diff(text_release, copy)
    config = next(c for c in found.configs if c.name == CONFIG)
    assert (len(config.added), len(config.removed), len(config.edited)) == counts
    assert found.bump == bump


def test_the_same_files_are_compared_once_and_changed_ones_anew(
    text_release: Path, copy: Path, tmp_path: Path
) -> None:
    rewritten(copy, edit)
    changes = diff(text_release, copy)
    stamped = Path(shutil.copytree(copy, tmp_path / "stamped"))
    with patch("counterprior.cards.diff.iter_records", side_effect=AssertionError("read again")):
        assert diff(text_release, copy) == diff(text_release, stamped) == changes
    rewritten(stamped, lambda records: records[1:])
    (edited,) = (
        config for config in diff(text_release, stamped).configs if config.edited or config.removed
    )
    assert (len(edited.removed), edited.edited) == (1, ())


def test_files_of_the_same_bytes_are_not_read(text_release: Path, copy: Path) -> None:
    _compared.cache_clear()
    with patch("counterprior.cards.diff.iter_records", side_effect=AssertionError("read")):
        assert diff(text_release, copy).bump == "NONE"
        rewritten(copy, edit)
        with pytest.raises(AssertionError, match="read"):
            diff(text_release, copy)


def test_prompts_of_displaced_and_edited_rows_are_printed(
    text_release: Path, copy: Path, cli: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    old: Records = pq.read_table(text_release / parquet_path(CONFIG)).to_pylist()
    rewritten(copy, lambda records: edit(records)[:-1])
    said = " ".join(cli("diff", text_release, copy).stdout.split())
    assert f"removed {old[-1]['id']}: {old[-1]['prompt']}" in said
    assert f"edited {old[0]['id']}: {old[0]['prompt']}" in said
    assert f"prompt: {old[0]['prompt']} -> Another." in said
    assert "1 published rows are displaced and 1 edited; the version bump is MAJOR" in said


def test_a_changed_document_is_a_patch(text_release: Path, copy: Path) -> None:
    import json

    checksums = json.loads((copy / "checksums.json").read_text())
    checksums["files"]["README.md"]["sha256"] = "0" * 64
    (copy / "checksums.json").write_text(json.dumps(checksums))
    found = diff(text_release, copy)
    assert (found.bump, found.files) == ("PATCH", ("README.md",))


def test_an_unreadable_file_is_named(text_release: Path, copy: Path) -> None:
    (copy / parquet_path(CONFIG)).write_bytes(b"PAR1")
    with raises("unreadable-file", parquet_path(CONFIG), error=ReleaseError):
        diff(text_release, copy)


def test_files_that_are_damaged_alike_are_named(copy: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(copy, tmp_path / "other"))
    for root in (copy, other):
        path = root / parquet_path(CONFIG)
        path.write_bytes(path.read_bytes()[:1000])
    with raises("unreadable-file", parquet_path(CONFIG), error=ReleaseError):
        diff(copy, other)


def test_a_column_more_is_minor_and_one_less_is_major(text_release: Path, copy: Path) -> None:
    path = copy / parquet_path(CONFIG)
    table = pq.read_table(path)
    pq.write_table(table.append_column("extra", table["id"]), path)
    assert diff(text_release, copy).bump == "MINOR"
    assert diff(copy, text_release).bump == "MAJOR"


@pytest.mark.slow
def test_a_config_more_is_minor_and_one_less_is_major(
    text_release: Path, full_release: Path
) -> None:
    assert diff(text_release, full_release).bump == "MINOR"
    assert diff(full_release, text_release).bump == "MAJOR"
