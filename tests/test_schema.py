"""Rows, schemas, ids and digests."""

import json
import random
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from counterprior.schema import (
    ROWS,
    Provenance,
    SpatialVISOR,
    arrow_schema,
    columns,
    description,
    feature_dict,
    features,
    image_columns,
    item_id,
    item_seeds,
    part_descriptions,
    row_digest,
    rows_digest,
    to_record,
)

PROVENANCE = Provenance(bank="coco.yaml", entry="a b", author="VISOR", calls=[])


def visor(number: int, **changes: Any) -> SpatialVISOR:
    fields: dict[str, Any] = {
        "visor_id": number,
        "relation": "above",
        "object_a": "cat",
        "object_b": "dog",
        "prompt": "a cat above a dog",
        "review": ["code"],
        "provenance": PROVENANCE,
    }
    return SpatialVISOR(**(fields | changes))


@pytest.mark.parametrize("config", ROWS)
def test_every_config_has_features_that_datasets_reads(config: str) -> None:
    schema = arrow_schema(config)
    assert features(config).arrow_schema.names == schema.names
    assert features(config).type == pa.struct(list(schema))
    assert "List" not in json.dumps(feature_dict(config))  # datasets < 4 knows only Sequence


@pytest.mark.parametrize("config", ROWS)
def test_every_column_is_described(config: str) -> None:
    assert list(columns(config))[:2] == ["id", "suite"]
    for name in columns(config):
        assert description(config, name).rstrip().endswith("."), name


@pytest.mark.parametrize("config", ROWS)
def test_every_part_of_a_struct_is_described(config: str) -> None:
    for name, feature in feature_dict(config).items():
        if "_type" not in feature:
            assert set(part_descriptions(config, name)) == set(feature)
            assert all(text.endswith(".") for text in part_descriptions(config, name).values())


def test_only_the_configs_with_pictures_have_image_columns() -> None:
    found = {config for config in ROWS if image_columns(config)}
    assert found == {
        *("i2i_homogenization", "i2i_correctness", "t2i_correctness_gold"),
        *("altered_worlds_gold", "consistency"),
    }


def test_an_id_depends_on_the_key_only() -> None:
    assert visor(1).id == visor(1, prompt="another text", status="revised").id
    assert visor(1).id != visor(2).id
    assert visor(1).id == item_id("spatial_visor", 1)


def test_a_foreign_id_is_refused() -> None:
    with pytest.raises(ValidationError, match="hash of the content"):
        visor(1, id="spatial_visor-000000000000")


def test_seeds_are_four_and_follow_the_id() -> None:
    assert visor(1).seeds == item_seeds(visor(1).id)
    assert len(set(visor(1).seeds)) == 4
    assert all(0 <= seed < 2**31 for seed in visor(1).seeds)


@pytest.mark.parametrize(
    "changes",
    [{"relation": "beside"}, {"visor_id": "one"}, {"unknown": 1}, {"status": "old"}],
)
def test_a_row_of_the_wrong_type_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        visor(1, **changes)


@given(st.lists(st.integers(0, 10**6), unique=True, min_size=1, max_size=20), st.randoms())
def test_the_digest_ignores_order_and_sees_every_change(
    numbers: list[int], rng: random.Random
) -> None:
    records = [to_record(visor(n)) for n in numbers]
    shuffled = rng.sample(records, len(records))
    assert rows_digest(records) == rows_digest(shuffled)
    changed = [dict(r) for r in records]
    changed[0]["prompt"] += " "
    assert rows_digest(changed) != rows_digest(records)
    assert rows_digest(records[1:]) != rows_digest(records)


def test_a_picture_counts_by_its_bytes_and_not_by_its_name() -> None:
    one = {"id": "x", "image": {"bytes": b"1", "path": "a.png"}}
    other = {"id": "x", "image": {"bytes": b"1", "path": "b.png"}}
    changed = {"id": "x", "image": {"bytes": b"2", "path": "a.png"}}
    assert row_digest(one) == row_digest(other) != row_digest(changed)


@pytest.mark.slow
@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_rows_survive_parquet(texts: list[str]) -> None:
    rows = [visor(n, prompt=text) for n, text in enumerate(texts)]
    records = [to_record(row) for row in rows]
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(records, schema=arrow_schema("spatial_visor")), buffer)
    table = pq.read_table(buffer.getvalue())
    assert [SpatialVISOR.model_validate(r) for r in table.to_pylist()] == rows
    assert rows_digest(datasets.Dataset(table)) == rows_digest(records)
