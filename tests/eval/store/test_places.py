"""What stands in for records and rows that are not held: places in files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import raises
from releases import RULES, small_release

from counterprior.errors import UsageError
from counterprior.eval.engine.data import read_rows, sample_rows
from counterprior.eval.store.places import PlaceIndex
from counterprior.eval.store.spool import RowIndex, SpooledRows
from counterprior.schema import rows_digest

records = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 3), st.integers(0, 2**59)), max_size=300
)


@settings(max_examples=40)
@given(records)
def test_an_index_says_what_a_dictionary_does(added: list[tuple[int, int, int]]) -> None:
    index, known = PlaceIndex(), dict[str, list[tuple[int, int]]]()
    for row, *at in added:
        index.add(f"row-{row}", (at[0], at[1]))
        known.setdefault(f"row-{row}", []).append((at[0], at[1]))
    assert len(index) == len(known)
    assert {name: index.of(name) for name in known} == {n: sorted(p) for n, p in known.items()}
    assert list(index.newest()) == [max(places) for places in known.values()]
    assert list(index) == sorted(place for places in known.values() for place in places)
    assert "row-0" in index if "row-0" in known else "row-0" not in index
    assert "row-201" not in index and index.of("row-201") == []


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=6))
def test_the_digest_of_spooled_rows_is_that_of_the_table(rows: list[tuple[str, int]]) -> None:
    plain = [{"id": name, "value": {"bytes": bytes(n), "path": "x"}} for name, n in rows]
    spooled = SpooledRows(iter(plain), lambda record: record)  # type: ignore[arg-type,return-value]
    assert spooled.digest() == rows_digest(plain)
    assert list(spooled) == plain and len(spooled) == len(plain)


def test_a_release_that_is_not_there_is_built_or_pinned(tmp_path: Any) -> None:
    missing = str(tmp_path / "dist" / "bench")
    with raises("no-such-file", error=UsageError) as caught:
        read_rows(missing, RULES)
    told = str(caught.value)
    assert f"build it with `counterprior build --out {missing}`" in told and "\n" not in told
    assert "`--data NAMESPACE/NAME@vX.Y.Z`" in told


@pytest.mark.slow
def test_rows_of_a_release_are_read_when_they_are_asked_for(tmp_path: Any) -> None:
    found = read_rows(str(small_release(tmp_path / "r")), RULES)
    again = list(found.rows)
    assert [row.id for row in again] == [row.id for row in found.rows] and len(again) > 3
    assert found.rows[1:3][0] == again[1] and found.rows[-1] == again[-1]
    some = sample_rows(found.rows, 2, lambda row: row.id)
    by_id = RowIndex(some)
    assert len(by_id) == 2 and list(by_id) == [row.id for row in some]
    assert all(by_id[name] == next(r for r in again if r.id == name) for name in by_id)
    assert "gone" not in by_id and by_id.get("gone") is None


def test_a_sample_of_groups_of_many_sizes_has_as_many_rows_as_fit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    groups = ["a"] * 4 + ["b"] * 3 + list("cdefghij")
    rows = [SimpleNamespace(group=group) for group in groups]

    def sizes(limit: int, of: Sequence[Any] = rows) -> Counter[str]:
        return Counter(row.group for row in sample_rows(of, limit, lambda row: row.group))

    for limit in range(4, 15):
        caplog.clear()
        sample = sizes(limit)
        assert ("stay together" in caplog.text) == (sample.total() < limit)
        assert sample.total() <= limit and sample == sizes(limit)
        for group in groups:
            assert sample[group] == groups.count(group) or (
                not sample[group] and sample.total() + groups.count(group) > limit
            )
    assert sizes(2, rows[:7]).total() in (3, 4)
    assert "--limit 2: " in caplog.text
