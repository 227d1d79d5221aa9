"""Shows gold images to a reader who must not know what they show, and keeps the answers.

    python tools/look_blind.py sheets dist/counterprior blind  # sheets of pairs, key.json
    python tools/look_blind.py worlds dist/counterprior blind  # the same of altered worlds
    python tools/look_blind.py record blind answers.csv        # -> gold_looks or world_looks.yaml
    python tools/look_blind.py confusion dist/counterprior     # what was taken for what

Images that were looked at are not shown again, but for those of pairs or groups that are named
after the folder, e.g. because a tell is another one. A sheet has twelve numbered images. Keep
`key.json` away from the reader.

Of pairs, a sheet has right and swapped images. Its text names for each the two things, in random
order, as A and B. The reader writes a line `number,answer` for each image: A or B for the one
further left, `?` where that can't be told.

Of altered worlds, a sheet has images of twelve groups, real and altered ones. Its text has five
questions for each, in random order. The reader writes a line `number,answers` for each image, one
letter a question: y, n, or u where it can't be told, e.g. `7,yynny`.
"""

from __future__ import annotations

import csv
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from PIL import Image, ImageDraw

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.depictions import read_looks
from counterprior.builders.world_drawings import DRAWN
from counterprior.builders.world_looks import (
    ALL,
    ANSWERS,
    ASKED,
    WorldLook,
    answers_of,
    asked_digest,
    discriminations,
    keyed_answer,
    question_text,
    read_world_looks,
)
from counterprior.release import has_config, parquet_path
from counterprior.schema import AlteredWorldGold

SIZE, CAPTION = 384, 18
ACROSS, DOWN = 4, 3
EACH = ACROSS * DOWN
ONCE = ("right", "swapped")
PAIRS, WORLDS = "t2i_correctness_gold", "altered_worlds_gold"
LETTERS = {answer[0]: answer for answer in ANSWERS}
Shown = tuple[bytes, str, dict[str, Any]]
"""An image, what its sheet says of it, and what the key says."""


def sheets(release: Path, out: Path, again: Collection[str] = ()) -> None:
    """Draws sheets of one right and one swapped image of each pair, in random order.

    Those that were looked at are left out, but for those of the pairs `again`.
    """
    rng = random.Random(out.name)
    looks = read_looks(DEFAULT_BANK)
    shown = read_gold(release, PAIRS)
    rng.shuffle(shown)
    seen = {
        (row["source_id"], row["layout"])
        for row in shown
        if row["image_sha256"] in looks and row["provenance"]["entry"] not in again
    }
    first = {(row["source_id"], row["layout"]): row for row in shown if row["layout"] in ONCE}
    rows = sorted(
        (row for key, row in first.items() if key not in seen), key=lambda row: rng.random()
    )
    _draw(out, (_pair(row, turned=rng.random() < 0.5) for row in rows))


def _pair(row: dict[str, Any], turned: bool) -> Shown:
    things = [(row[side], row[f"tell_{side}"]) for side in ("left", "right")]
    a, b = things[::-1] if turned else things
    key = {
        "image": row["image_sha256"],
        "pair": row["provenance"]["entry"],
        "layout": row["layout"],
        "leftmost": "A" if turned == (row["layout"] == "swapped") else "B",
    }
    text = f"A = {a[0]} ({a[1]}) | B = {b[0]} ({b[1]}) | {row['context']}"
    return row["image"]["bytes"], text, key


def world_sheets(
    release: Path, out: Path, again: Collection[str] = (), bank: Path = DEFAULT_BANK
) -> None:
    """Draws sheets of one real and one altered image of each group, in random order.

    The two differ in style and seed and are never on one sheet, so that nobody can compare them.
    Those that were looked at are left out, but for those of the groups `again`.
    """
    rng = random.Random(out.name)
    looks = read_world_looks(bank)
    groups: defaultdict[str, list[AlteredWorldGold]] = defaultdict(list)
    for row in read_worlds(release):
        groups[row.group].append(row)
    halves: tuple[list[AlteredWorldGold], ...] = ([], [])
    for group, rows in groups.items():
        first = rng.randrange(2)
        for half, world in zip(halves, rng.sample(DRAWN, 2), strict=True):
            of_world = sorted((r for r in rows if r.world == world), key=lambda r: r.drawn_seed)
            if group in again or not any(answers_of(row, looks) for row in of_world):
                half.append(of_world[first])
            first = 1 - first
    for half in halves:
        rng.shuffle(half)
        # The second half begins on a sheet of its own.
    shown: list[AlteredWorldGold | None] = [*halves[0], *[None] * (-len(halves[0]) % EACH)]
    _draw(out, (row and _world(row, rng) for row in [*shown, *halves[1]]))


def _world(row: AlteredWorldGold, rng: random.Random) -> Shown:
    asked = rng.sample(ASKED, len(ASKED))
    text = "".join(f"\n  {n}. {question_text(row, q)}" for n, q in enumerate(asked, 1))
    key = {
        "image": row.image_sha256,
        "group": row.group,
        "world": row.world,
        "asked": asked_digest(row),
        "questions": asked,
        "right": [keyed_answer(row, name) for name in asked],
    }
    return row.image.bytes, text, key


def _draw(out: Path, shown: Iterator[Shown | None]) -> None:
    """Writes the sheets, their texts and the key; a place without an image stays empty."""
    out.mkdir(parents=True, exist_ok=True)
    listed = list(shown)
    key = {number: one[2] for number, one in enumerate(listed) if one}
    for start in range(0, len(listed), EACH):
        sheet = Image.new("RGB", (ACROSS * SIZE, DOWN * (SIZE + CAPTION)), "white")
        pen, lines = ImageDraw.Draw(sheet), []
        for place, one in enumerate(listed[start : start + EACH]):
            if one is None:
                continue
            x, y = place % ACROSS * SIZE, place // ACROSS * (SIZE + CAPTION)
            with Image.open(BytesIO(one[0])) as image:
                sheet.paste(image, (x, y + CAPTION))
            pen.text((x + 4, y + 3), f"#{start + place}", fill="black")
            lines.append(f"#{start + place}: {one[1]}\n")
        name = f"sheet{start // EACH:02d}"
        sheet.save(out / f"{name}.png")
        (out / f"{name}.txt").write_text("".join(lines))
    (out / "key.json").write_text(json.dumps(key))


def read_gold(release: Path, config: str) -> list[dict[str, Any]]:
    """The rows of a release's gold images."""
    rows: list[dict[str, Any]] = pq.read_table(release / parquet_path(config)).to_pylist()
    return rows


def read_worlds(release: Path) -> list[AlteredWorldGold]:
    """The gold images of altered worlds."""
    return [AlteredWorldGold.model_validate(record) for record in read_gold(release, WORLDS)]


def confusion(release: Path) -> None:
    """Prints for each domain how many images of a layout were taken for which."""
    looks = read_looks(DEFAULT_BANK)
    names = [f"{layout} as {said}" for layout in ONCE for said in (*ONCE, "unsure")]
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    pairs: defaultdict[str, dict[tuple[str, str], bool]] = defaultdict(dict)
    for row in read_gold(release, PAIRS):
        if row["layout"] in ONCE:
            said = looks.get(row["image_sha256"])
            key = row["source_id"], row["layout"]
            for domain in (row["domain"], "all"):
                pairs[domain][key] = pairs[domain].get(key, False) or said is not None
                if said is not None:
                    found[domain][f"{row['layout']} as {said}"] += 1
    print(f"{'domain':<36} " + " ".join(f"{name:>18}" for name in (*names, "not looked at")))
    for domain in [*sorted(set(pairs) - {"all"}), "all"]:
        missing = sum(not done for done in pairs[domain].values())
        counts = [*(found[domain][name] for name in names), missing]
        print(f"{domain:<36} " + " ".join(f"{count:>18}" for count in counts))


def world_confusion(release: Path, bank: Path = DEFAULT_BANK) -> None:
    """Prints for each discipline and question what was answered where the key says yes and where
    it says no, and in how many groups the question told the worlds apart."""
    looks, rows = read_world_looks(bank), read_worlds(release)
    found: Counter[tuple[str, str, str]] = Counter()
    seen: defaultdict[str, dict[tuple[str, str], bool]] = defaultdict(dict)
    for row in rows:
        said = answers_of(row, looks)
        for part in (row.discipline, ALL):
            image = row.group, row.world
            seen[part][image] = seen[part].get(image, False) or bool(said)
            for question, answer in said.items():
                found[part, question, f"{keyed_answer(row, question)} as {answer}"] += 1
    told = {
        (part, one.question): f"{one.told} of {one.groups}"
        for part, listed in discriminations(rows, looks).items()
        for one in listed
    }
    names = [f"{key} as {answer}" for key in ("yes", "no") for answer in ANSWERS]
    titles = (*names, "groups told")
    print(f"{'discipline':<14} {'question':<22} " + " ".join(f"{name:>13}" for name in titles))
    for part in [*sorted(set(seen) - {ALL}), ALL]:
        for question in ASKED:
            counts = [found[part, question, name] for name in names]
            values = [*counts, told.get((part, question), "0 of 0")]
            line = " ".join(f"{value:>13}" for value in values)
            print(f"{part:<14} {question:<22} {line}")
        print(f"{part:<14} images not looked at: {sum(not one for one in seen[part].values())}")


def record(folder: Path, answers: list[Path], bank: Path = DEFAULT_BANK) -> None:
    """Adds the answers to the bank's looks, and prints each that was wrong or unsure."""
    key = json.loads((folder / "key.json").read_text())
    lines = [
        (number.strip(), answer.strip())
        for file in answers
        for number, answer, *_ in csv.reader(file.read_text().splitlines())
    ]
    if unknown := [number for number, _ in lines if number not in key]:
        sys.exit(f"{folder}: shows no image {unknown[0]}")
    worlds = any("group" in shown for shown in key.values())
    (_record_worlds if worlds else _record_pairs)(key, lines, bank)


def _record_pairs(key: dict[str, Any], lines: list[tuple[str, str]], bank: Path) -> None:
    looks = read_looks(bank)
    for number, answer in lines:
        shown = key[number]
        one, other = ONCE if shown["layout"] == "right" else ONCE[::-1]
        said = {"?": "unsure", shown["leftmost"]: one}.get(answer.upper(), other)
        looks[shown["image"]] = said
        if said != shown["layout"]:
            print(f"{number}: {shown['pair']}, {shown['layout']}: taken for {said}")
    text = [f"- {{image: {image}, said: {said}}}\n" for image, said in sorted(looks.items())]
    head = "# What a model took gold images for that it saw without their key; see docs/gold.md.\n"
    (bank / "gold_looks.yaml").write_text(head + "".join(text))


def _record_worlds(key: dict[str, Any], lines: list[tuple[str, str]], bank: Path) -> None:
    looks = read_world_looks(bank)
    for number, answer in lines:
        shown = key[number]
        if not re.fullmatch(f"[{''.join(LETTERS)}]{{{len(ASKED)}}}", answer.lower()):
            sys.exit(f"{number}: {answer!r} is not one of {', '.join(LETTERS)} for each question")
        said = [LETTERS[letter] for letter in answer.lower()]
        about = {name: shown[name] for name in ("image", "group", "world", "asked")}
        look = WorldLook(**about, **dict(zip(shown["questions"], said, strict=True)))
        same = (look.group, look.world)  # what was seen of it before has had its day
        looks = {i: one for i, one in looks.items() if (one.group, one.world) != same}
        looks[look.image] = look
        for question, one, right in zip(shown["questions"], said, shown["right"], strict=True):
            if one != right:
                print(f"{number}: {shown['group']}, {question}: {one}, should be {right}")
    text = [
        f"- {{group: {look.group}, world: {look.world}, asked: '{look.asked}', "
        + ", ".join(f"{question}: '{getattr(look, question)}'" for question in ASKED)
        + f", image: {look.image}}}\n"
        for look in sorted(looks.values(), key=lambda look: (look.group, look.world))
    ]
    head = (
        "# What a model answered about gold images that it saw without their key; docs/gold.md.\n"
    )
    (bank / "world_looks.yaml").write_text(head + "".join(text))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["sheets", release, out, *again]:
            sheets(Path(release), Path(out), again)
        case ["worlds", release, out, *again]:
            world_sheets(Path(release), Path(out), again)
        case ["confusion", release]:
            if has_config(Path(release), PAIRS):
                confusion(Path(release))
            if has_config(Path(release), WORLDS):
                world_confusion(Path(release))
        case ["record", folder, *answers] if answers:
            record(Path(folder), list(map(Path, answers)))
        case _:
            sys.exit(__doc__)
