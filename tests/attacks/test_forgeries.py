"""`validate` and `verify` on releases that somebody changed: by accident, or with all care.

A single mutation changes one thing and nothing that depends on it. A consistent forgery is written
by the package itself, from rows or facts that are not the bank's: every digest, count and document
follows suit.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forking import ForkingCommand

from counterprior.builders.build import BuildSettings, build
from counterprior.builders.build_result import Build, ReviewRound
from counterprior.cards.write import staged, write_release
from counterprior.release import CHECKSUMS
from counterprior.schema import Row

CONFIGS = ("t2i_correctness", "rule_decoupling")
MUTATIONS, FORGERIES = 300, 100


@pytest.fixture(scope="module")
def made() -> Build:
    return build(BuildSettings(CONFIGS))


@pytest.fixture(scope="module")
def sound(made: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release as it was built; read only."""
    return written(made, tmp_path_factory.mktemp("sound") / "release")


def written(made: Build, out: Path) -> Path:
    with staged(out) as folder:
        write_release(made, folder)
    return out


# --- single mutations --------------------------------------------------------------------------

Mutation = Callable[[random.Random, Path], object]


def some_file(rng: random.Random, root: Path) -> Path:
    return rng.choice(sorted(path for path in root.rglob("*") if path.is_file()))


def flip(rng: random.Random, root: Path) -> None:
    path = some_file(rng, root)
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def cut(rng: random.Random, root: Path) -> None:
    path = some_file(rng, root)
    os.truncate(path, rng.randrange(path.stat().st_size - 2))


def grow(rng: random.Random, root: Path) -> None:
    path = some_file(rng, root)
    with path.open("ab") as file:
        file.write(rng.choice((b"\0", b"x", b"{}", path.read_bytes())))


def drop(rng: random.Random, root: Path) -> None:
    some_file(rng, root).unlink()


def exchange(rng: random.Random, root: Path) -> None:
    first = some_file(rng, root)
    second = rng.choice([p for p in sorted(root.rglob("*")) if p.is_file() and p != first])
    other = first.with_name("other")
    first.rename(other)
    second.rename(first)
    other.rename(second)


def add(rng: random.Random, root: Path) -> None:
    names = (".gitattributes", "x/.gitattributes", f"{CONFIGS[0]}/{CHECKSUMS}", "a.parquet")
    path = root / rng.choice((*names, "LICENSE", ".hidden", f"{CONFIGS[1]}/a\nb", "\udcff"))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"* -filter")


def special(rng: random.Random, root: Path) -> None:
    """A pipe, an empty folder or a link to nothing in place of a file."""
    path = some_file(rng, root)
    path.unlink()
    rng.choice((os.mkfifo, os.mkdir, lambda at: os.symlink("/nowhere", at)))(path)


def replace_value(rng: random.Random, root: Path) -> None:
    """Another value in a JSON document."""
    names = ("manifest.json", "checksums.json", "croissant.json")
    path = root / rng.choice(names)
    document = json.loads(path.read_text())
    places = list(leaves(document))
    holder, key = rng.choice(places)
    old = holder[key]
    values = (None, -1, 10**400, "", "\ud800", "../../x", [], {}, "x" * 9, True, 1e308, "NaN")
    holder[key] = rng.choice([v for v in values if v != old or type(v) is not type(old)])
    path.write_text(json.dumps(document))


def leaves(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, below in items:
        yield value, key
        if isinstance(below, dict | list):
            yield from leaves(below)


def one_cell(rng: random.Random, root: Path) -> None:
    """Another value in one row of a table."""
    path = rng.choice(sorted(root.rglob("*.parquet")))
    table = pq.read_table(path)
    records = table.to_pylist()
    record = rng.choice(records)
    name = rng.choice([n for n, v in record.items() if isinstance(v, str)])
    record[name] += rng.choice((" ", "x", "\u200b", "\0"))
    pq.write_table(pa.Table.from_pylist(records, schema=table.schema), path)


MUTATING: tuple[Mutation, ...] = (
    *(flip, cut, grow, drop, exchange, add, special, replace_value, replace_value, one_cell),
)


# --- consistent forgeries ----------------------------------------------------------------------


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return f"{value} indeed" if value else "forged"
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list | tuple):
        return type(value)([*value[1:], other(value[0])] if value else ["forged"])
    if isinstance(value, dict):
        return {name: other(below) for name, below in value.items()}
    if value is None:
        return "forged"
    return value.model_copy(update={n: other(v) for n, v in value})


def forge_field(rng: random.Random, rows: list[Row]) -> list[Row]:
    at = rng.randrange(len(rows))
    names = [n for n, v in rows[at] if n not in ("id", "suite", "canary") and v != other(v)]
    name = rng.choice(names)
    changed = rows[at].model_copy(update={name: other(getattr(rows[at], name))})
    return [*rows[:at], changed, *rows[at + 1 :]]


def forge_exchange(rng: random.Random, rows: list[Row]) -> list[Row]:
    """Two rows with a field of each other."""
    a, b = rng.sample(range(len(rows)), 2)
    differing = [n for n, v in rows[a] if v != getattr(rows[b], n)]
    name = rng.choice(differing)
    rows = list(rows)
    values = getattr(rows[b], name), getattr(rows[a], name)
    for at, value in zip((a, b), values, strict=True):
        rows[at] = rows[at].model_copy(update={name: value})
    return rows


def forge_order(rng: random.Random, rows: list[Row]) -> list[Row]:
    a, b = rng.sample(range(len(rows)), 2)
    rows = list(rows)
    rows[a], rows[b] = rows[b], rows[a]
    return rows


def forge_loss(rng: random.Random, rows: list[Row]) -> list[Row]:
    at = rng.randrange(len(rows))
    return rows[:at] + rows[at + 1 :]


def forge_review(rng: random.Random, rows: list[Row]) -> list[Row]:
    """Every row was looked at by a person, it says."""
    return [row.model_copy(update={"review": [*row.review, "human"]}) for row in rows]


ROW_FORGERIES = (forge_field, forge_field, forge_field, forge_exchange, forge_order, forge_loss)


def forged(rng: random.Random, made: Build) -> Build:
    """A build of which one thing is not the bank's."""
    at = rng.randrange(len(made.configs))
    config = made.configs[at]
    kind = rng.choice(("rows",) * 6 + ("review", "license", "source", "summary", "rounds"))
    if kind == "rows":
        changed = replace(config, rows=rng.choice(ROW_FORGERIES)(rng, list(config.rows)))
    elif kind == "review":
        changed = replace(config, rows=forge_review(rng, list(config.rows)))
    elif kind == "rounds":
        human = ReviewRound(content=config.name, by="human", read=400, mended=3, dropped=1)
        return replace(made, reviews=(*made.reviews, human))
    else:
        changed = replace(config, **{kind: "CC0-1.0" if kind == "license" else "As in the paper."})
    return replace(made, configs=(*made.configs[:at], changed, *made.configs[at + 1 :]))


# --- the commands ------------------------------------------------------------------------------


def judged(done: Any) -> str:
    """What a command says of a release: `found`, `valid`, or that it crashed."""
    if done.returncode == 0:
        return "valid"
    told = done.returncode in (1, 2) and "Traceback" not in done.stderr + done.stdout
    return "found" if told and (done.stdout or done.stderr) else f"crashed: {done.stderr[-900:]}"


def attacked(
    folder: Path, cli: ForkingCommand, kind: str, by: tuple[str, ...], survived: Any
) -> list[str]:
    wrong = []
    for command in by:
        found = judged(cli(command, folder))
        survived(f"{kind}, {command}", found == "found")
        if found != "found":
            wrong.append(f"{kind}, {command}: {found}")
    return wrong


PART = 25


def parts(count: int) -> list[Any]:
    """Seeds in parts, so that an ended run has shown some."""
    starts = range(0, count, PART)
    return [
        pytest.param(range(at, at + PART), marks=pytest.mark.lane, id=f"from {at}") for at in starts
    ]


@pytest.mark.lane  # what the mutations below start from
def test_the_release_itself_is_valid(sound: Path, cli: ForkingCommand) -> None:
    for command in ("validate", "verify"):
        done = cli(command, sound)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("seeds", parts(MUTATIONS))
def test_no_single_mutation_is_missed(
    seeds: range, sound: Path, tmp_path: Path, cli: ForkingCommand, survived: Any
) -> None:
    wrong = []
    for seed in seeds:
        rng, folder = random.Random(seed), tmp_path / "release"
        shutil.copytree(sound, folder)
        mutate = MUTATING[seed % len(MUTATING)]
        mutate(rng, folder)
        kind = f"mutation: {mutate.__name__}"
        # The Hub adds one to every repository: what is verified may have it, no release of ours.
        of_hub = (folder / ".gitattributes").exists()
        by = ("validate",) if of_hub else ("validate", "verify")
        wrong += [f"{seed}: {one}" for one in attacked(folder, cli, kind, by, survived)]
        shutil.rmtree(folder)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("seeds", parts(FORGERIES))
def test_no_consistent_forgery_is_missed(
    seeds: range, made: Build, tmp_path: Path, cli: ForkingCommand, survived: Any
) -> None:
    wrong = []
    for seed in seeds:
        folder = written(forged(random.Random(seed), made), tmp_path / "release")
        found = attacked(folder, cli, "consistent forgery", ("validate",), survived)
        wrong += [f"{seed}: {one}" for one in found]
        shutil.rmtree(folder)
    assert not wrong, "\n".join(wrong)
