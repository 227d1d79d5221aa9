"""Shows rows of a release to readers, faults planted among them, and counts what readers object to.

    python tools/read_rows.py draw dist/counterprior WORK spatial_3d --rows 40 --plants 14 --seed 7
    python tools/read_rows.py count WORK spatial_3d ann bo
    python tools/read_rows.py draw dist/counterprior WORK CONFIG --language es --rows 15 --seed 7
    python tools/read_rows.py count WORK CONFIG_es ann bo

`draw` writes WORK/CONFIG.jsonl, numbered rows in random order, and WORK/key_CONFIG.json, which
readers must not see. Rows that were drawn before under the same WORK are not drawn again, and of
rows about one thing (a group, a pair) there is one. A planted fault is a change of one field: a
text of another row that is alike, sides exchanged, or a word that is left out or written twice.

Each reader writes WORK/CONFIG_NAME.jsonl, a line for each row:

    {"n": 3, "verdict": "serious", "why": "the prompt names a cat, the row a dog"}

`serious`: a number that is computed with the row is wrong, or may be. `small`: it should be
mended, and moves no number. `fine`: neither. An objection of either reader counts.

`count` prints the share of rows with objections, with its 95 % interval, and the readers' power:
the share of planted faults that somebody objected to.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from counterprior.eval.stats.intervals import wilson
from counterprior.parsing import read_rows, write_rows
from counterprior.release import parquet_path

HIDDEN = frozenset(
    "id suite status review provenance seeds license canary image seed_image seed_source standards "
    "source_ids seen".split()
)
"""Fields that say nothing of a row's content to a reader, or too much."""
ABOUT = ("group", "pair", "pair_id", "source_id", "family")
"""Fields that name what a row is about: of several rows with one value, one is drawn."""
ALIKE = ("discipline", "domain", "pair_type", "setting", "relation", "language")
"""Fields in which rows are alike."""
SIDES = re.compile(r"\b(left|right|above|below|front|behind)\b")
OPPOSITE = {"left": "right", "above": "below", "front": "behind"}
OPPOSITE |= {second: first for first, second in OPPOSITE.items()}
Field = tuple[str | int, ...]
VERDICTS = ("fine", "small", "serious")


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader sees of a row."""
    return {name: value for name, value in row.items() if name not in HIDDEN}


def texts(value: Any, at: Field = ()) -> dict[Field, str]:
    """Texts of more than one word in an item, by the names and numbers that lead to them."""
    if isinstance(value, str):
        return {at: value} if " " in value else {}
    parts: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    return {field: text for name, part in parts for field, text in texts(part, (*at, name)).items()}


def changed(value: Any, field: Field, text: str) -> Any:
    """A copy of an item with another text in a field."""
    if not field:
        return text
    first, *rest = field
    copy = value.copy()
    copy[first] = changed(value[first], tuple(rest), text)
    return copy


def plants(
    item: dict[str, Any], others: Sequence[dict[str, Any]], rng: random.Random
) -> Iterator[tuple[str, Field, str]]:
    """Yields kind of fault, field and its text with the fault, for each that the item can have."""
    alike = [o for o in others if all(o.get(name) == item.get(name) for name in ALIKE)] or others
    other = rng.choice(list(alike))
    fields = list(texts(item).items())
    rng.shuffle(fields)
    of_other = texts(other)
    for field, text in fields:
        if of_other.get(field, text) != text:
            yield "another row's text", field, of_other[field]
            break
    for field, text in fields:
        if len(set(SIDES.findall(text))) == 1:
            yield "sides exchanged", field, SIDES.sub(lambda side: OPPOSITE[side.group()], text)
            break
    for field, text in fields:
        words = text.split(" ")
        if len(words) > 4:
            at = rng.randrange(1, len(words) - 1)
            left_out, twice = words[:at] + words[at + 1 :], words[:at] + words[at - 1 :]
            yield "a word missing or twice", field, " ".join(rng.choice((left_out, twice)))
            break


def draw(
    release: Path, work: Path, config: str, language: str, rows: int, planted: int, seed: int
) -> None:
    """Writes the numbered rows of a config, or of one of its languages, and the key."""
    table = pq.read_table(release / parquet_path(config)).to_pylist()
    if language:
        table = [row for row in table if row.get("language") == language]
        config = f"{config}_{language}"
    rng = random.Random(f"{seed} {config}")
    key_file = work / f"key_{config}.json"
    if key_file.exists():
        raise SystemExit(f"{key_file} is there: a draw is made once")
    seen = {
        name for file in work.glob("key_*.json") for name in json.loads(file.read_text())["ids"]
    }
    rng.shuffle(table)
    chosen: list[dict[str, Any]] = []
    about: set[Any] = set()
    for row in table:
        subjects = {(name, row[name]) for name in ABOUT if row.get(name)}
        if row["id"] not in seen and not subjects & about:
            chosen.append(row)
            about |= subjects
    if len(chosen) < rows + planted:
        raise SystemExit(f"{config} has {len(chosen)} such rows: ask for fewer")
    others = [shown(row) for row in table]
    items: list[tuple[dict[str, Any], str, str, str]] = []
    for number, row in enumerate(chosen[: rows + planted]):
        item = shown(row)
        if number < rows:
            items.append((item, row["id"], "", ""))
            continue
        kind, field, text = rng.choice(list(plants(item, others, rng)))
        items.append((changed(item, field, text), row["id"], kind, ".".join(map(str, field))))
    rng.shuffle(items)
    work.mkdir(parents=True, exist_ok=True)
    write_rows(work / f"{config}.jsonl", [{"n": n, **item} for n, (item, *_) in enumerate(items)])
    key = {
        "release": release.name,
        "config": config,
        "seed": seed,
        "ids": [name for _, name, _, _ in items],
        "plants": {n: [kind, field] for n, (_, _, kind, field) in enumerate(items) if kind},
    }
    key_file.write_text(json.dumps(key, indent=1) + "\n")
    print(f"{len(items)} rows to read: {work / f'{config}.jsonl'}")


def verdicts(work: Path, config: str, reader: str, count: int) -> list[dict[str, Any]]:
    """The verdicts of a reader, by number. Ends the program where one is missing or unknown."""
    file = work / f"{config}_{reader}.jsonl"
    by_number = {row["n"]: row for _, row in read_rows(file)}
    missing = sorted(set(range(count)) - by_number.keys())
    wrong = sorted(n for n, row in by_number.items() if row["verdict"] not in VERDICTS)
    if missing or wrong:
        raise SystemExit(f"{file}: rows {missing} are missing, rows {wrong} have no known verdict")
    return [by_number[n] for n in range(count)]


def count(work: Path, config: str, readers: Sequence[str]) -> None:
    """Prints objections, their shares, and what the readers saw of the planted faults."""
    key = json.loads((work / f"key_{config}.json").read_text())
    read = [verdicts(work, config, reader, len(key["ids"])) for reader in readers]
    worst = [
        max(rows, key=lambda row: VERDICTS.index(row["verdict"]))
        for rows in zip(*read, strict=True)
    ]
    planted = {int(n): kind for n, (kind, _) in key["plants"].items()}
    real = [row for row in worst if row["n"] not in planted]
    tally = Counter(row["verdict"] for row in real)
    for name in VERDICTS[1:]:
        print(f"{config}: {name} {_share(tally[name], len(real))}")
    caught = [worst[n]["verdict"] != "fine" for n in planted]
    print(f"{config}: planted faults seen {_share(sum(caught), len(caught))}")
    for kind in sorted(set(planted.values())):
        of_kind = [worst[n]["verdict"] != "fine" for n, other in planted.items() if other == kind]
        print(f"  {kind}: {sum(of_kind)} of {len(of_kind)}")
    for row in real:
        if row["verdict"] != "fine":
            print(f"  {row['verdict']}: {key['ids'][row['n']]}: {row['why']}")


def _share(part: int, whole: int) -> str:
    low, high = wilson(part, whole)
    return f"{part} of {whole}, {part / whole:.1%} ({low:.1%} to {high:.1%})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("release", type=Path)
    drawing.add_argument("work", type=Path)
    drawing.add_argument("config")
    drawing.add_argument("--language", default="", help="only rows of this language")
    drawing.add_argument("--rows", type=int, default=40)
    drawing.add_argument("--plants", type=int, default=14)
    drawing.add_argument("--seed", type=int, required=True)
    counting = commands.add_parser("count")
    counting.add_argument("work", type=Path)
    counting.add_argument("config")
    counting.add_argument("readers", nargs="+")
    options = parser.parse_args()
    if options.command == "draw":
        draw(
            options.release,
            options.work,
            options.config,
            options.language,
            options.rows,
            options.plants,
            options.seed,
        )
    else:
        count(options.work, options.config, options.readers)


if __name__ == "__main__":
    main()
