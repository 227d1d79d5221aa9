"""The hold-out: what belongs together stays so, the salt decides, two folders prove it."""

import hashlib
import hmac
import json
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import assert_refused, raises

import counterprior
from counterprior.builders.build import BuildSettings, build, row_checks, sampled
from counterprior.builders.build_result import Build, Erratum
from counterprior.builders.holdout import (
    Secret,
    divide,
    divider,
    read_salt,
    read_secret,
    split,
)
from counterprior.builders.suite import SHIPPED, Group
from counterprior.builders.suites import SUITES
from counterprior.cards.holdout import verify_holdout
from counterprior.cards.validate import validate
from counterprior.cards.write import write_releases
from counterprior.release import ReleaseError, iter_records, parquet_path, sha256_file, verify
from counterprior.schema import Row, row_digest, rows_digest

Run = Callable[..., subprocess.CompletedProcess[str]]
SALT = b"an example of a salt that is no secret"
WHOLE = ("spatial_uc", "spatial_visor", "real_gold")
NAMES = ("t2i_correctness", "counterfactual_denominalized", "rule_decoupling", "spatial_uc")
"""Small configs, one of which takes no part."""
RULE = "rule_decoupling"


@pytest.fixture(scope="module")
def every_row() -> dict[str, list[Row]]:
    """The rows of every config that takes part, without images; other tests check them."""
    names = [name for name, suite in SUITES.items() if suite.group and not suite.optional]
    return {name: sampled(name, SHIPPED, 0) for name in names}


@pytest.fixture(scope="module")
def some_build() -> Build:
    """Some of the configs, without images."""
    return build(BuildSettings((RULE, "counterfactual"), seed_images="none"))


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Public and private folder of some configs under `SALT`; read only."""
    some = build(BuildSettings(NAMES))
    outs = [tmp_path_factory.mktemp("holdout") / side for side in ("public", "private")]
    write_releases(lambda: split(some, Secret(0.2, SALT)), outs)
    return outs[0], outs[1]


@pytest.fixture(scope="module")
def small_parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Public and private folder of what is soon built again, which each check does; read only."""
    some = build(BuildSettings((RULE, "attribute_decoupling", "spatial_uc")))
    outs = [tmp_path_factory.mktemp("small") / side for side in ("public", "private")]
    write_releases(lambda: split(some, Secret(0.2, SALT)), outs)
    return outs[0], outs[1]


@pytest.fixture
def damaged(small_parts: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    public, private = (Path(shutil.copytree(part, tmp_path / part.name)) for part in small_parts)
    return public, private


def everything(some: Build) -> Iterator[Row]:
    return (row for config in some.configs for row in config.rows)


def files(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def ids(root: Path, config: str) -> set[str]:
    return {record["id"] for record in iter_records(root, config)}


def group(row: Any) -> Group:
    """What keeps the row together with others, by its suite."""
    found = SUITES[row.suite].group
    assert found is not None
    return found(row)


def test_only_what_is_published_elsewhere_takes_no_part() -> None:
    assert {name for name, suite in SUITES.items() if suite.group is None} == set(WHOLE)


def shared(row: Any) -> list[tuple[str, object]]:
    """What a reader would say that a row shares with others, whatever the table says."""
    found: list[tuple[str, object]] = []
    for field in ("group", "rule", "pair", "pair_id"):
        if hasattr(row, field):
            found.append((field, getattr(row, field)))
    if hasattr(row, "seed_prompt"):
        found.append(("entities", frozenset((row.left.name, row.right.name))))
    if row.suite == "t2i_homogenization":
        found.append(("entities", frozenset((row.first.name, row.second.name))))
    if row.suite in ("spatial_3d", "spatial_distance"):
        found.append(("entities", frozenset((row.object_a, row.object_b))))
    if row.suite in ("spatial_multi", "spatial_clauses"):
        found.append(("entities", frozenset(row.objects)))
    if row.suite == "order_beyond":
        bank = row.provenance.bank == "sequences.yaml"
        found.append(
            ("sequence", row.provenance.entry) if bank else ("entities", frozenset(row.entities))
        )
    return found


@pytest.fixture(scope="module")
def clusters(every_row: dict[str, list[Row]]) -> dict[tuple[str, object], list[Row]]:
    """Rows that share something, by what it is."""
    found: dict[tuple[str, object], list[Row]] = defaultdict(list)
    for row in (row for rows in every_row.values() for row in rows):
        for key in shared(row):
            found[key].append(row)
    return found


@pytest.fixture(scope="module")
def some_clusters(clusters: dict[tuple[str, object], list[Row]]) -> list[list[Row]]:
    """The largest of each kind, for tests that repeat."""
    kinds: dict[str, list[list[Row]]] = defaultdict(list)
    for (kind, _), rows in sorted(clusters.items(), key=lambda item: -len(item[1])):
        kinds[kind].append(rows)
    return [rows for found in kinds.values() for rows in found[:8]]


def test_rows_that_share_something_are_one_group(
    clusters: dict[tuple[str, object], list[Row]],
) -> None:
    for key, rows in clusters.items():
        assert len({group(row) for row in rows}) == 1, key
    suites = {frozenset(row.suite for row in rows) for rows in clusters.values()}
    assert {"counterfactual", "counterfactual_denominalized", "altered_worlds"} in suites
    assert any({"i2i_homogenization", "i2i_correctness"} <= found for found in suites)
    assert any({"t2i_homogenization", "spatial_3d"} <= found for found in suites)


@settings(max_examples=30)
@given(salt=st.binary(min_size=16), fraction=st.floats(0.01, 0.99), more=st.floats(0.01, 0.99))
def test_rows_that_share_something_are_on_one_side_whatever_the_salt(
    some_clusters: list[list[Row]], salt: bytes, fraction: float, more: float
) -> None:
    small, large = sorted((fraction, more))
    some, others = Secret(small, salt), Secret(large, salt)
    for rows in some_clusters:
        taken = {(some.takes(row), others.takes(row)) for row in rows}
        assert len(taken) == 1
        assert taken != {(True, False)}, "a larger share takes all that a smaller one does"


@settings(max_examples=20)
@given(salt=st.binary(min_size=16), order=st.randoms())
def test_the_split_knows_no_order_and_no_other_config(
    some_clusters: list[list[Row]], salt: bytes, order: Any
) -> None:
    secret = Secret(0.3, salt)
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in (row for cluster in some_clusters for row in cluster):
        if row.suite in ("rule_decoupling", "attribute_decoupling"):
            rows[row.suite].append(row)
    expected = divide(rows, secret)
    for some in rows.values():
        order.shuffle(some)
    assert divide(dict(reversed(rows.items())), secret) == expected
    alone = divide({"rule_decoupling": rows["rule_decoupling"]}, secret)
    assert alone.held["rule_decoupling"] == expected.held["rule_decoupling"]
    assert alone.commitment.full_hmac != expected.commitment.full_hmac


@pytest.mark.slow
def test_about_the_share_is_held_out_and_another_salt_holds_out_others(
    every_row: dict[str, list[Row]],
) -> None:
    rows = every_row
    one, two = (divide(rows, Secret(0.2, salt)).held for salt in (SALT, SALT + b"!"))
    held = sum(map(len, one.values())) / sum(map(len, rows.values()))
    assert 0.16 < held < 0.24
    for name in rows:
        assert one[name] and one[name] != two[name], name


def test_the_commitment_can_be_computed_by_anybody_with_the_salt(parts: tuple[Path, Path]) -> None:
    """Selection and hashes as documented, from the standard library alone."""

    def keyed(what: str, message: bytes) -> bytes:
        text = f"counterprior hold-out {what}\0".encode() + message
        return hmac.new(SALT, text, hashlib.sha256).digest()

    public, private = parts
    kinds = {"t2i_correctness": "family", "rule_decoupling": "rule"}
    for name, kind in kinds.items():
        for root, side in ((public, False), (private, True)):
            for record in iter_records(root, name):
                told = json.dumps([kind, record[kind]], separators=(",", ":"))
                drawn = keyed("group", told.encode())
                assert (int.from_bytes(drawn) / 2**256 < 0.2) == side
    found = json.loads((public / "manifest.json").read_text())["holdout"]
    assert (
        found["salt_sha256"] == hashlib.sha256(b"counterprior hold-out salt\0" + SALT).hexdigest()
    )
    held = [r for name in NAMES[:3] for r in iter_records(private, name)]
    digests = sorted(keyed("row", row_digest(record).encode()) for record in held)
    assert found["held_out_sha256"] == hashlib.sha256(b"".join(digests)).hexdigest()
    whole = {}
    for name in sorted(NAMES):
        folders = parts if name != "spatial_uc" else parts[:1]
        whole[name] = rows_digest(r for root in folders for r in iter_records(root, name))
    text = json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()
    assert found["full_hmac"] == keyed("full", text).hex()


@pytest.mark.slow
def test_the_command_makes_two_releases_that_load_validate_and_prove_each_other(
    tmp_path: Path, cli: Run
) -> None:
    salt_file = tmp_path / "holdout.salt"
    salt_file.write_bytes(SALT + b"\n")
    names = ("rule_decoupling", "attribute_decoupling", "spatial_uc")
    out, again = tmp_path / "one" / "release", tmp_path / "two" / "release"
    options = ("--holdout", 0.2, "--salt-file", salt_file)
    built = cli("build", "--out", out, *configs(names), *options)
    assert built.returncode == 0, built.stderr
    assert "anybody can rebuild the held-out rows from the shipped bank" in built.stderr
    private = out.with_name("release-holdout")
    proven = cli("verify", out, "--holdout", private, "--salt-file", salt_file)
    assert (proven.returncode, proven.stdout) == (0, f"{out} and {private}: valid\n")
    for root in (out, private):
        assert validate(root, row_checks()).problems == ()
        dataset = datasets.load_dataset(str(root), RULE, split="test")
        assert set(dataset["id"]) == ids(root, RULE)
        assert len(counterprior.load(root, RULE)) == len(dataset)
    kept = tmp_path / "kept"
    elsewhere = os.environ | {"PYTHONHASHSEED": "7"}
    rebuilt = cli(
        "build",
        "--out",
        again,
        *configs(names[::-1]),
        *options,
        "--holdout-out",
        kept,
        env=elsewhere,
    )
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert (files(again), files(kept)) == (files(out), files(private))
    ignored = ("--load", "--sha256", "0" * 64, "--revision", "v1.0.0")
    refused = cli("verify", out, "--holdout", private, "--salt-file", salt_file, *ignored)
    assert_refused(refused, "conflicting-options", "--revision", "--load", "--sha256")
    salt_file.write_bytes(SALT + b"!")
    wrong = cli("verify", out, "--holdout", private, "--salt-file", salt_file)
    assert wrong.returncode == 1 and "was made with another salt" in wrong.stdout
    for text in (*files(out).values(), *files(private).values()):
        assert SALT not in text and SALT.hex().encode() not in text
    for done in (built, proven, rebuilt, wrong):
        assert SALT.decode() not in done.stdout + done.stderr


def configs(names: tuple[str, ...]) -> list[str]:
    return [word for name in names for word in ("--config", name)]


def test_public_folder_hides_the_held_out_rows(parts: tuple[Path, Path]) -> None:
    public, private = parts
    texts = [text.decode() for name, text in files(public).items() if ".parquet" not in name]
    texts += [str(record) for name in NAMES for record in iter_records(public, name)]
    told = "\n".join(texts)
    for name in NAMES[:3]:
        for record in iter_records(private, name):
            assert record["id"] not in told
            assert record.get("prompt", record.get("aligned_prompt")) not in told
            if name == "t2i_correctness":
                assert f"'{record['provenance']['entry']}'" not in told
    facts = json.loads((public / "manifest.json").read_text())
    assert facts["seed"] is None
    assert "withheld: it would rebuild" in (public / "datasheet.md").read_text()


def test_both_folders_say_what_they_are(parts: tuple[Path, Path]) -> None:
    public, private = parts
    counts = {name: (len(ids(public, name)), len(ids(private, name))) for name in NAMES[:3]}
    hidden = {c["name"]: c for c in json.loads((private / "manifest.json").read_text())["configs"]}
    for config in json.loads((public / "manifest.json").read_text())["configs"]:
        name = config["name"]
        shown, held = counts.get(name, (200, 0))
        assert (config["rows"], config["elsewhere"], config["planned"], config["status"]) == (
            shown,
            held,
            shown + held,
            "complete",
        )
        assert (name in hidden) == (name in counts)
        line = f"| `{name}` | {shown} | {held} | {shown + held} | complete |"
        for document in ("README.md", "datasheet.md"):
            assert line in (public / document).read_text()
            if name in hidden:
                mirrored = f"| `{name}` | {held} | {shown} | {shown + held} | complete |"
                assert mirrored in (private / document).read_text()
    commitment = json.loads((public / "manifest.json").read_text())["holdout"]
    for root in parts:
        for document in ("README.md", "datasheet.md"):
            text = (root / document).read_text()
            assert "20 % of the content groups" in text
            for value in ("salt_sha256", "held_out_sha256", "full_hmac"):
                assert f"`{commitment[value]}`" in text
    card = (private / "README.md").read_text()
    assert "must not become public" in card.split("## ")[0]
    assert "extra_gated_prompt" in yaml.safe_load(card.split("---")[1])
    assert "must not become public" not in (public / "README.md").read_text()
    assert (public / "eval.yaml").exists() and not (private / "eval.yaml").exists()
    for root, rows in ((public, counts[NAMES[0]][0]), (private, counts[NAMES[0]][1])):
        record_set = json.loads((root / "croissant.json").read_text())["recordSet"][0]
        assert f"{rows} rows (complete), {418 - rows} more" in record_set["description"]


@pytest.mark.slow
def test_errata_go_where_their_rows_would(some_build: Build) -> None:
    """A retired entry has no row; the public list must not name a held-out one."""
    secret = Secret(0.3, SALT)
    groups = sorted({row.group for row in everything(some_build) if row.suite == "counterfactual"})
    errata = tuple(
        Erratum(config="counterfactual", entry=group, status="retired", reason="Wrong.")
        for group in groups[:50]
    )
    public, private = split(replace(some_build, errata=errata), secret)
    held = {row.group for row in everything(private) if row.suite == "counterfactual"}
    assert {e.entry for e in private.errata} == held & set(groups[:50])
    assert {e.entry for e in public.errata} == set(groups[:50]) - held
    assert public.errata and private.errata


def rewrite(root: Path, config: str, change: Callable[[list[Any]], list[Any]]) -> None:
    """Damage rows as a careful forger would: the folder's own digests and counts follow suit."""
    path = root / parquet_path(config)
    schema = pq.read_schema(path)
    records = change(pq.read_table(path).to_pylist())
    pq.write_table(pa.Table.from_pylist(records, schema=schema), path)
    checksums = json.loads((root / "checksums.json").read_text())
    checksums["files"][parquet_path(config)].update(
        sha256=sha256_file(path),
        bytes=path.stat().st_size,
        rows=len(records),
        rows_sha256=rows_digest(records),
    )
    (root / "checksums.json").write_text(json.dumps(checksums))


def restate(root: Path, change: Callable[[Any], object]) -> None:
    facts = json.loads((root / "manifest.json").read_text())
    change(facts)
    (root / "manifest.json").write_text(json.dumps(facts))
    checksums = json.loads((root / "checksums.json").read_text())
    manifest = root / "manifest.json"
    checksums["files"]["manifest.json"].update(
        sha256=sha256_file(manifest), bytes=manifest.stat().st_size
    )
    (root / "checksums.json").write_text(json.dumps(checksums))


def problems(public: Path, private: Path, salt: bytes = SALT) -> list[str]:
    return list(map(str, verify_holdout(public, private, divider(salt), row_checks()).problems))


def recount(root: Path, by: int) -> None:
    def change(facts: Any) -> None:
        next(c for c in facts["configs"] if c["name"] == "rule_decoupling")["elsewhere"] += by

    restate(root, change)


def test_two_folders_as_built_prove_each_other(parts: tuple[Path, Path]) -> None:
    assert problems(*parts) == []


def test_a_row_that_stands_in_both_is_named(damaged: tuple[Path, Path]) -> None:
    public, private = damaged
    row = next(iter_records(private, RULE))
    rewrite(public, RULE, lambda records: [*records, row])
    assert f"{private}/{RULE}:{row['id']}: is in the public release too" in problems(*damaged)


def test_a_row_on_the_wrong_side_is_named(damaged: tuple[Path, Path]) -> None:
    public, private = damaged
    row = next(iter_records(private, RULE))
    rewrite(private, RULE, lambda records: records[1:])
    rewrite(public, RULE, lambda records: [*records, row])
    recount(public, -1)
    recount(private, 1)
    found = problems(*damaged)
    assert f"{public}/{RULE}:{row['id']}: is public, but the salt says otherwise" in found
    assert not any("elsewhere" in problem for problem in found)


@pytest.mark.parametrize(("side", "other"), [(0, 1), (1, 0)])
def test_a_row_that_is_dropped_is_missed(damaged: tuple[Path, Path], side: int, other: int) -> None:
    rewrite(damaged[side], RULE, lambda records: records[1:])
    recount(damaged[other], -1)
    found = problems(*damaged)
    assert any("holdout.full_hmac: does not match" in problem for problem in found)
    assert any("197 rows on 33 rules, must be 198 on 33" in problem for problem in found)
    assert any("holdout.held_out_sha256: does not match" in problem for problem in found) == (
        side == 1
    )


def test_an_edited_held_out_row_is_found(damaged: tuple[Path, Path]) -> None:
    rewrite(damaged[1], RULE, lambda rs: [rs[0] | {"review": ["code", "human"]}, *rs[1:]])
    found = problems(*damaged)
    assert {p.split(": ")[0].split(":")[-1] for p in found} == {
        "holdout.held_out_sha256",
        "holdout.full_hmac",
    }


def test_a_count_another_fraction_and_another_commitment_are_found(
    damaged: tuple[Path, Path], small_parts: tuple[Path, Path]
) -> None:
    public, private = damaged
    for root in damaged:
        recount(root, 1)
        wrong = f"{root}/manifest.json:rule_decoupling:elsewhere: says"
        assert [p.startswith(wrong) for p in problems(*damaged)] == [True]
        recount(root, -1)
    restate(public, lambda facts: facts["holdout"].update(fraction=0.4))
    assert any("commits to another split" in p for p in problems(*damaged))
    restate(private, lambda facts: facts["holdout"].update(fraction=0.4))
    assert any("the salt says otherwise" in p for p in problems(*damaged))
    assert problems(*small_parts, SALT + b"!") == [
        f"{small_parts[0]}/manifest.json:holdout.salt_sha256: was made with another salt"
    ]


def test_reports_damage_before_comparing(damaged: tuple[Path, Path]) -> None:
    (damaged[1] / "LICENSE").write_text("none")
    assert problems(*damaged) == [
        f"{damaged[1]}/LICENSE: bytes differ from checksums.json (sha256)"
    ]


def test_rejects_folders_without_a_split(damaged: tuple[Path, Path]) -> None:
    public, private = damaged
    with raises("not-a-release", private, "--holdout", error=ReleaseError):
        problems(private, public)
    restate(public, lambda facts: facts.update(holdout=None))
    for folders in ((public, private), (private, public)):
        with raises("not-a-release", "public", error=ReleaseError):
            problems(*folders)


def test_a_count_of_rows_elsewhere_needs_a_hold_out(damaged: tuple[Path, Path]) -> None:
    """Or a release that lost rows could call itself complete."""
    public, _ = damaged
    restate(public, lambda facts: facts.update(holdout=None))
    found = list(map(str, validate(public, row_checks()).problems))
    assert any(
        "elsewhere: says" in p and "without a hold-out all rows are here" in p for p in found
    )


@pytest.mark.parametrize(
    ("fraction", "salt", "private", "reason"),
    [
        (0.1, None, None, ("conflicting-options", "--salt-file", "FILE")),
        (None, "salt", None, ("conflicting-options", "--salt-file", "FILE")),
        (None, None, "kept", ("conflicting-options", "--salt-file", "FILE")),
        (0, "salt", None, ("out-of-range", "--holdout 0")),
        (1, "salt", None, ("out-of-range", "--holdout 1")),
        (float("nan"), "salt", None, ("out-of-range", "--holdout nan")),
        (0.1, "nowhere", None, ("unreadable-file", "secrets.token_hex", "holdout.salt")),
        (0.1, "short", None, ("out-of-range", "holds 15")),
        (0.1, "salt", "new/release", ("would-overwrite", "--holdout-out")),
        (
            0.1,
            "salt",
            "new/release/private",
            ("would-overwrite", "--holdout-out", "new/release/private"),
        ),
        (0.1, "salt", "new", ("would-overwrite", "--holdout-out")),
        (0.1, "new/release/salt", None, ("would-overwrite", "--salt-file", "release/salt")),
        (
            0.1,
            "new/release-holdout/salt",
            None,
            ("would-overwrite", "--salt-file", "release-holdout/salt"),
        ),
    ],
)
def test_rejects_impossible_holdouts(
    tmp_path: Path,
    fraction: float | None,
    salt: str | None,
    private: str | None,
    reason: tuple[str, ...],
) -> None:
    (tmp_path / "salt").write_bytes(SALT)
    (tmp_path / "short").write_bytes(b"fifteen bytes..\n")
    out = tmp_path / "new" / "release"
    salt_file, kept = (tmp_path / name if name else None for name in (salt, private))
    with raises(*reason) as raised:
        read_secret(fraction, salt_file, out, kept)
    assert SALT.decode() not in str(raised.value) and "fifteen" not in str(raised.value)


def test_rejects_shares_that_hold_out_no_row_or_all(some_build: Build) -> None:
    few = replace(some_build, configs=tuple(c for c in some_build.configs if c.name == RULE))
    for fraction, facts in ((1e-9, ("larger",)), (1 - 1e-9, (RULE, "smaller"))):
        with raises("too-few-items", f"--holdout {fraction}", *facts):
            split(few, Secret(fraction, SALT))


def test_the_command_refuses_before_it_builds(tmp_path: Path, cli: Run) -> None:
    (tmp_path / "short").write_bytes(b"fifteen bytes..\n")
    done = cli("build", "--out", "new", "--holdout", 0.1, "--salt-file", "short", cwd=tmp_path)
    assert_refused(done, "out-of-range", "--salt-file", "15 bytes")
    assert done.stdout == "" and "fifteen" not in done.stderr
    assert not (tmp_path / "new").exists()


def test_sixteen_bytes_are_enough_and_white_space_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "salt").write_bytes(b" sixteen bytes...\r\n")
    assert read_salt(tmp_path / "salt") == b"sixteen bytes..."
    assert "sixteen" not in repr(Secret(0.1, b"sixteen bytes..."))


def test_a_build_that_fails_leaves_both_folders_as_they_were(damaged: tuple[Path, Path]) -> None:
    before = [files(root) for root in damaged]

    def fail() -> tuple[Build, ...]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_releases(fail, damaged)
    assert [files(root) for root in damaged] == before
    assert all(verify(root) == [] for root in damaged)
    left = {path.name for path in damaged[0].parent.iterdir() if path.suffix != ".lock"}
    assert left == {"public", "private"}
