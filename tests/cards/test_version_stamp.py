"""A build gets its version: which number it may have, and what the stamp makes of it."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises
from releases import ATTRIBUTES, RULES, revised, small_release

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.build import row_checks
from counterprior.builders.build_result import Build, Erratum
from counterprior.cards.diff import diff
from counterprior.cards.errors import HubError
from counterprior.cards.manifest import read_manifest
from counterprior.cards.validate import validate
from counterprior.cards.version_stamp import Mark, stamp
from counterprior.cards.versions import BUMPS, Bump, Version, check_above, check_step, latest
from counterprior.errors import UsageError
from counterprior.release import Change, iter_records
from counterprior.schema import Row

FIRST = Mark("ns/name", "1.0.0", "2026-11-21")
numbers = st.integers(0, 10**6)
versions = st.builds(Version, numbers, numbers, numbers)


@given(versions, st.sampled_from(BUMPS[1:]))
def test_the_next_version_is_the_smallest_that_makes_the_step(last: Version, bump: Bump) -> None:
    following = last.next(bump)
    assert following > last and following.bump_from(last) == bump
    assert Version.parse(str(following)) == following == Version.of_tag(following.tag)
    check_step(following, last, bump)
    for larger in BUMPS[BUMPS.index(bump) + 1 :]:
        with raises("version-too-small", last.next(larger), error=HubError):
            check_step(following, last, larger)


@given(st.lists(versions, min_size=1), versions)
def test_versions_only_go_up(released: list[Version], version: Version) -> None:
    tags = ["pilot", "v1", "1.0.0", *(v.tag for v in released)]
    assert latest(tags) == max(released)
    below = [v for v in released if v < version]
    assert latest(tags, below=version) == (max(below) if below else None)
    if version > max(released):
        check_above(version, tags)
    else:
        with raises("version-not-above", error=HubError):
            check_above(version, tags)


@pytest.mark.parametrize("text", ["v1.0.0", "1.0", "1.0.0-rc1", "01.0.0", "1.0.0.0", "", "1.0.٣"])
def test_only_three_plain_numbers_are_a_version(text: str) -> None:
    with raises("bad-option", text, error=UsageError):
        Version.parse(text)


@pytest.fixture
def first(tmp_path: Path) -> Path:
    stamp(small_release(tmp_path / "build"), tmp_path / "first", FIRST, None)
    return tmp_path / "first"


def restamped(tmp_path: Path, first: Path, build: Path, version: str) -> Path:
    out = tmp_path / version
    stamp(build, out, replace(FIRST, version=version), first)
    return out


def test_data_stay_byte_for_byte_and_texts_state_the_mark(first: Path, tmp_path: Path) -> None:
    built = tmp_path / "build"
    before = json.loads((built / "checksums.json").read_text())
    after = json.loads((first / "checksums.json").read_text())
    parquet = f"{RULES}/test-00000-of-00001.parquet"
    assert after["version"] == "1.0.0"
    assert after["files"][parquet] == before["files"][parquet]
    assert set(after["files"]) == set(before["files"])
    assert os.path.samefile(built / parquet, first / parquet)
    assert 'counterprior.load("ns/name", ' in (first / "README.md").read_text()
    assert "datasets/ns/name/resolve/v1.0.0/" in (first / "croissant.json").read_text()
    assert validate(first, row_checks(DEFAULT_BANK)).problems == ()
    assert diff(built, first).bump == "PATCH"


def test_the_same_stamp_gives_the_same_bytes(first: Path, tmp_path: Path) -> None:
    build = small_release(tmp_path / "again", (RULES, ATTRIBUTES), revised)
    one = restamped(tmp_path, first, build, "2.0.0")
    other = tmp_path / "other"
    stamp(build, other, replace(FIRST, version="2.0.0"), first)
    assert diff(one, other).files == ()
    for path in (p for p in one.rglob("*") if p.is_file()):
        assert (other / path.relative_to(one)).read_bytes() == path.read_bytes()


def test_changelog_agrees_with_the_rows(first: Path, tmp_path: Path) -> None:
    build = small_release(tmp_path / "next", (RULES, ATTRIBUTES), lambda rows: revised(rows)[:-2])
    text = (restamped(tmp_path, first, build, "2.0.0") / "CHANGELOG.md").read_text()
    assert text.index("## 2.0.0") < text.index("## 1.0.0")
    assert "* rule_decoupling: 1 row edited, 2 rows removed\n" in text
    assert "* attribute_decoupling: new, 200 rows\n" in text
    assert "* First release: 198 rows.\n" in text
    same = restamped(tmp_path, first, tmp_path / "build", "1.0.1")
    assert "* Every row is unchanged.\n" in (same / "CHANGELOG.md").read_text()


def test_the_notes_of_the_bank_come_first_where_they_are_of_this_version(
    first: Path, tmp_path: Path
) -> None:
    def noted(build: Build) -> Build:
        change = Change(version="1.1.0", date="2020-01-01", notes=["A mended bank."])
        return replace(build, changes=(change,))

    build = small_release(tmp_path / "next", (RULES, ATTRIBUTES), facts=noted)
    mine = read_manifest(restamped(tmp_path, first, build, "1.1.0")).changes[0]
    assert mine.notes == ["A mended bank.", "attribute_decoupling: new, 200 rows"]
    assert mine.date == FIRST.date
    other = read_manifest(restamped(tmp_path, first, build, "1.2.0")).changes[0]
    assert other.notes == ["attribute_decoupling: new, 200 rows"]


def test_every_edited_and_removed_row_is_an_erratum_and_stays_one(
    first: Path, tmp_path: Path
) -> None:
    reason = "The red ball was said to float."

    def explained(build: Build) -> Build:
        rows = build.configs[0].rows
        told = Erratum(
            config=RULES, entry=rows[0].provenance.entry, status="revised", reason=reason
        )
        return replace(build, errata=(told,))

    def change(rows: list[Row]) -> list[Row]:
        other = rows[100].model_copy(update={"status": "retired"})
        return [*revised(rows)[:100], other, *rows[101:-1]]

    build = small_release(tmp_path / "next", (RULES,), change, explained)
    rows = [record["id"] for record in iter_records(first, RULES)]
    second = restamped(tmp_path, first, build, "2.0.0")
    found = {e.row: e for e in read_manifest(second).errata}
    assert set(found) == {rows[0], rows[100], rows[-1]}
    assert (found[rows[0]].status, found[rows[0]].reason) == ("revised", reason)
    assert (found[rows[100]].status, found[rows[100]].reason) == ("retired", "Changed: status.")
    assert found[rows[-1]].status == "removed"
    assert {e.version for e in found.values()} == {"2.0.0"}
    text = (second / "ERRATA.md").read_text()
    assert all(f"| `{RULES}` | 2.0.0 | `{row}` |" in text for row in found)
    third = tmp_path / "third"
    stamp(build, third, replace(FIRST, version="2.0.1"), second)
    assert read_manifest(third).errata == read_manifest(second).errata
