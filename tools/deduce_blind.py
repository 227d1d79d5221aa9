"""Asks a reader what follows from scene and law alone, and compares with the keys.

    python tools/deduce_blind.py sheet dist/counterprior FOLDER [GROUPS]  # sheet.txt, key.json
    python tools/deduce_blind.py grade FOLDER answers.txt                 # what came out otherwise

The sheet has two items for each group, far apart: what L1 asks for (our world) and what L3 asks
for (the altered one). Both leave the outcome to be deduced. The five questions follow in random
order. The reader, who must not see `key.json`, writes a line for each item, one letter a question:
y, n, or ? where two competent illustrators could differ. Reasons may follow after a bar:

    17: yynny
    18: ynn?y | where the wind blows from is not told

GROUPS is a file with an id in each line, to ask about these only.
"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

import pyarrow.parquet as pq

from counterprior.builders.world_looks import ASKED, PRESENCE, question_text
from counterprior.release import parquet_path
from counterprior.schema import AlteredWorld

WORLDS = {"L1": "real", "L3": "altered"}


def sheet(release: Path, out: Path, groups: frozenset[str] | None = None) -> None:
    """Writes the sheet and its key. The two items of a group are in different halves."""
    rng = random.Random(out.name)
    table = pq.read_table(release / parquet_path("altered_worlds")).to_pylist()
    rows = {
        (row.group, row.level): row
        for row in map(AlteredWorld.model_validate, table)
        if row.level in WORLDS and (groups is None or row.group in groups)
    }
    names = sorted({group for group, _ in rows})
    halves: tuple[list[AlteredWorld], ...] = ([], [])
    for group in names:
        for half, level in zip(halves, rng.sample(list(WORLDS), 2), strict=True):
            half.append(rows[group, level])
    for half in halves:
        rng.shuffle(half)
    lines, key = [], {}
    for number, row in enumerate([*halves[0], *halves[1]], 1):
        asked = rng.sample(ASKED, len(ASKED))
        texts = [question_text(row, name) for name in asked]
        lines.append(f"[{number}] {row.prompt}\n")
        lines += [f"  {n} {text}\n" for n, text in enumerate(texts, 1)]
        key[number] = {
            "group": row.group,
            "world": WORLDS[row.level],
            "questions": texts,
            "right": "".join("ny"[_is_yes(row, name)] for name in asked),
        }
    out.mkdir(parents=True, exist_ok=True)
    (out / "sheet.txt").write_text("".join(lines))
    (out / "key.json").write_text(json.dumps(key))


def _is_yes(row: AlteredWorld, name: str) -> bool:
    return name == PRESENCE or getattr(row, name).world == WORLDS[row.level]


def grade(folder: Path, answers: Path) -> int:
    """Prints every answer that is not the key's, and the totals; returns how many there are.

    Ends the program if an item has no line, or a line is none.
    """
    key = json.loads((folder / "key.json").read_text())
    said: dict[str, tuple[str, str]] = {}
    for line in filter(str.strip, answers.read_text().splitlines()):
        found = re.fullmatch(r"\s*(\d+)\s*:\s*([yn?]{5})\s*(?:\|\s*(.*))?", line)
        if found is None or found[1] not in key:
            sys.exit(f"{answers}: not an answer: {line!r}")
        said[found[1]] = found[2], found[3] or ""
    if missing := [number for number in key if number not in said]:
        sys.exit(f"{answers}: no line for item {missing[0]} and {len(missing) - 1} more")
    otherwise, groups = 0, set()
    for number, item in key.items():
        letters, reason = said[number]
        for letter, right, text in zip(letters, item["right"], item["questions"], strict=True):
            if letter != right:
                otherwise += 1
                groups.add(item["group"])
                print(f"{item['group']}, {item['world']}: {right} but {letter}: {text} {reason}")
    print(f"{otherwise} of {5 * len(key)} answers otherwise, in {len(groups)} groups")
    return otherwise


def main() -> None:
    match sys.argv[1:]:
        case ["sheet", release, out]:
            sheet(Path(release), Path(out))
        case ["sheet", release, out, groups]:
            sheet(Path(release), Path(out), frozenset(Path(groups).read_text().split()))
        case ["grade", folder, answers]:
            grade(Path(folder), Path(answers))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
