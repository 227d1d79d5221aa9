"""Shows gold images to a reader who must not know which of them are swapped, and keeps the answers.

    python tools/look_blind.py sheets dist/counterprior blind    # sheets to look at, key.json
    python tools/look_blind.py record blind answers.csv          # -> builders/bank/gold_looks.yaml

A sheet has twelve numbered images. Its text names for each the two things, in random order, as A
and B. The reader writes a line `number,answer` for each image: A or B for the one further left, `?`
where that can't be told. Keep `key.json` away from the reader.
"""

from __future__ import annotations

import csv
import json
import random
import sys
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq
from PIL import Image, ImageDraw

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.depictions import read_looks
from counterprior.release import parquet_path

SIZE, CAPTION = 384, 18
ACROSS, DOWN = 4, 3
ONCE = ("right", "swapped")


def sheets(release: Path, out: Path) -> None:
    """Draws sheets of one right and one swapped image of each pair, in random order."""
    out.mkdir(parents=True, exist_ok=True)
    rng = random.Random(out.name)
    shown = pq.read_table(release / parquet_path("t2i_correctness_gold")).to_pylist()
    rng.shuffle(shown)
    first = {(row["source_id"], row["layout"]): row for row in shown if row["layout"] in ONCE}
    rows = sorted(first.values(), key=lambda row: rng.random())
    key = {}
    for start in range(0, len(rows), ACROSS * DOWN):
        sheet = Image.new("RGB", (ACROSS * SIZE, DOWN * (SIZE + CAPTION)), "white")
        pen, lines = ImageDraw.Draw(sheet), []
        for place, row in enumerate(rows[start : start + ACROSS * DOWN]):
            x, y = place % ACROSS * SIZE, place // ACROSS * (SIZE + CAPTION)
            with Image.open(BytesIO(row["image"]["bytes"])) as image:
                sheet.paste(image, (x, y + CAPTION))
            pen.text((x + 4, y + 3), f"#{start + place}", fill="black")
            things = [(row[side], row[f"tell_{side}"]) for side in ("left", "right")]
            turned = rng.random() < 0.5
            a, b = things[::-1] if turned else things
            named = f"A = {a[0]} ({a[1]}) | B = {b[0]} ({b[1]}) | {row['context']}"
            lines.append(f"#{start + place}: {named}\n")
            key[start + place] = {
                "image": row["image_sha256"],
                "pair": row["provenance"]["entry"],
                "layout": row["layout"],
                "leftmost": "A" if turned == (row["layout"] == "swapped") else "B",
            }
        name = f"sheet{start // (ACROSS * DOWN):02d}"
        sheet.save(out / f"{name}.png")
        (out / f"{name}.txt").write_text("".join(lines))
    (out / "key.json").write_text(json.dumps(key))


def record(folder: Path, answers: list[Path]) -> None:
    """Adds the answers to the bank's looks, and prints each that was wrong or unsure."""
    looks = read_looks(DEFAULT_BANK)
    key = json.loads((folder / "key.json").read_text())
    for file in answers:
        for number, answer, *_ in csv.reader(file.open()):
            shown = key[number.strip()]
            one, other = ONCE if shown["layout"] == "right" else ONCE[::-1]
            said = {"?": "unsure", shown["leftmost"]: one}.get(answer.strip().upper(), other)
            looks[shown["image"]] = said
            if said != shown["layout"]:
                print(f"{number}: {shown['pair']}, {shown['layout']}: taken for {said}")
    lines = [f"- {{image: {image}, said: {said}}}\n" for image, said in sorted(looks.items())]
    head = "# What a model took gold images for that it saw without their key; see docs/gold.md.\n"
    (DEFAULT_BANK / "gold_looks.yaml").write_text(head + "".join(lines))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["sheets", release, out]:
            sheets(Path(release), Path(out))
        case ["record", folder, *answers] if answers:
            record(Path(folder), list(map(Path, answers)))
        case _:
            sys.exit(__doc__)
