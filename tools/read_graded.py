"""Shows drawn gold of rising difficulty to a reader who must not know its truth, and keeps answers.

    python tools/read_graded.py sheets WORK ann 1         # -> WORK/ann_1/, WORK/key_ann_1.json
    python tools/read_graded.py record WORK ann 1 human   # -> builders/bank/real/graded.jsonl
    python tools/read_graded.py mistakes                  # share of images misread, by level

The sheets have 20 images of each level, in random order, no scene twice, twelve a sheet, 256 pixels
wide, with the names of two things in random order. The number is the seed of the draw: 0 draws
among the scenes that judges are asked about, any other among as many of its own, which nobody has
seen. The reader writes a line `NUMBER ANSWER` for each into WORK/answers_ann_1.txt; ANSWER is one
of `ANSWERS`. Keep the key away from the reader. A reader may read several draws. Readings of
earlier versions of the drawings are kept.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.eval.stats.estimate import Estimate, share_of
from counterprior.eval.studies.graded_gold import IMAGES, VERSION, graded_scene
from counterprior.parsing import read_rows, write_rows
from counterprior.scenes.graded import LEVELS

EACH = 20
"""Images of a level on the sheets of a reader."""
FILE = DEFAULT_BANK / "real" / "graded.jsonl"
ANSWERS: Mapping[str, str] = {
    "l": "A left",
    "r": "B left",
    "u": "A above",
    "d": "B above",
    "a": "only A",
    "b": "only B",
    "m": "merged",
    "n": "neither",
}
"""Letter -> what the image shows: both, and how they lie; one of them, with or without a third
thing; both fused into one thing; none."""
TURNED: Mapping[str, str] = dict(zip("lrudabmn", "rldubamn", strict=True))
"""Letter -> the letter with A and B exchanged."""
SHOWN: Mapping[str, str] = {
    **{shown: letter for letter, shown in ANSWERS.items()},
    "A, other": "a",
    "B, other": "b",
}
"""What a scene shows -> right letter."""
WIDTH, HEIGHT, GAP, CAPTION = 256, 192, 8, 26
ACROSS, DOWN = 4, 3


KINDS = ("model", "human")
"""Kinds of readers."""


def sheets(work: Path, reader: str, seed: int) -> int:
    """Draws a reader's sheets and writes the key; returns the number of images."""
    name = f"{reader}_{seed}"
    rng = random.Random(f"graded sheets/{seed}")
    first = seed * IMAGES
    numbers = rng.sample(range(first, first + IMAGES), EACH * LEVELS)
    shown = [(number, place % LEVELS) for place, number in enumerate(numbers)]
    rng.shuffle(shown)
    (work / name).mkdir(parents=True, exist_ok=True)
    font, key = ImageFont.load_default(14), []
    for start in range(0, len(shown), ACROSS * DOWN):
        sheet = Image.new("RGB", (ACROSS * (WIDTH + GAP), DOWN * (HEIGHT + CAPTION)), "white")
        draw = ImageDraw.Draw(sheet)
        for place, (number, level) in enumerate(shown[start : start + ACROSS * DOWN]):
            scene = graded_scene(number, level)
            turned = rng.random() < 0.5
            a, b = (scene.b, scene.a) if turned else (scene.a, scene.b)
            x = place % ACROSS * (WIDTH + GAP) + GAP // 2
            y = place // ACROSS * (HEIGHT + CAPTION)
            draw.text((x, y + 4), f"#{start + place}  A: {a} | B: {b}", fill="black", font=font)
            image = scene.draw().resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
            sheet.paste(image, (x, y + CAPTION - 2))
            key.append({"scene": number, "level": level, "turned": turned})
        sheet.save(work / name / f"sheet_{start // (ACROSS * DOWN):02}.png")
    (work / f"key_{name}.json").write_text(json.dumps(key))
    return len(shown)


def record(work: Path, reader: str, seed: int, kind: str, file: Path) -> int:
    """Adds a reader's answers to a draw, in place of earlier ones to its images; returns how many.

    kind: one of `KINDS`. Ends the program at a missing answer.
    """
    name = f"{reader}_{seed}"
    key = json.loads((work / f"key_{name}.json").read_text())
    said = dict(line.split() for line in (work / f"answers_{name}.txt").read_text().splitlines())
    rows = []
    for place, entry in enumerate(key):
        letter = said.get(str(place), "")
        if letter not in ANSWERS:
            raise SystemExit(f"{name}: #{place}: {letter!r} is none of {', '.join(ANSWERS)}")
        answer = TURNED[letter] if entry.pop("turned") else letter
        about = {"reader": reader, "kind": kind, "version": VERSION}
        rows.append({**about, **entry, "answer": ANSWERS[answer]})
    known = {_place(row): row for _, row in read_rows(file)} if file.exists() else {}
    known |= {_place(row): row for row in rows}
    write_rows(file, known.values())
    return len(rows)


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("reader", "version", "scene", "level"))


def misread(
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, str, list[Estimate]]]:
    """Version of the drawings, reader, and share of each level that this reader took for something
    else.

    What a scene shows is the same at all levels, and in all versions.
    """
    for version, reader in sorted({(row["version"], row["reader"]) for row in rows}):
        wrong: list[list[bool]] = [[] for _ in range(LEVELS)]
        for row in rows:
            if (row["version"], row["reader"]) == (version, reader):
                shown = graded_scene(row["scene"], row["level"]).shown
                wrong[row["level"]].append(row["answer"] != ANSWERS[SHOWN[shown]])
        yield version, reader, [share_of(sum(of), len(of)).scaled(100) for of in wrong]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    drawn = commands.add_parser("sheets")
    drawn.add_argument("work", type=Path)
    drawn.add_argument("reader")
    drawn.add_argument("seed", type=int)
    recorded = commands.add_parser("record")
    recorded.add_argument("work", type=Path)
    recorded.add_argument("reader")
    recorded.add_argument("seed", type=int)
    recorded.add_argument("kind", choices=KINDS)
    commands.add_parser("mistakes")
    options = parser.parse_args()
    if options.command == "sheets":
        print(sheets(options.work, options.reader, options.seed), "images")
    elif options.command == "record":
        draw = options.work, options.reader, options.seed
        print(record(*draw, options.kind, FILE), "answers")
    else:
        for version, reader, shares in misread([row for _, row in read_rows(FILE)]):
            for level, share in enumerate(shares):
                text = f"{share.text('%')} of {share.n} images misread"
                print(f"version {version}, {reader}, level {level}: {text}")


if __name__ == "__main__":
    main()
