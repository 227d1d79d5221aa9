"""Shows gold images to a reader who must not know which of them are swapped, and keeps the answers.

    python tools/look_blind.py sheets dist/counterprior blind    # sheets to look at, key.json
    python tools/look_blind.py record blind answers.csv          # -> builders/bank/gold_looks.yaml
    python tools/look_blind.py confusion dist/counterprior       # what was taken for what

Images that were looked at are not shown again, but for those of pairs that are named after the
folder, e.g. because a tell is another one. A sheet has twelve numbered images. Its text names for
each the two things, in random order, as A and B. The reader writes a line `number,answer` for each
image: A or B for the one further left, `?` where that can't be told. Keep `key.json` away from the
reader.
"""

from __future__ import annotations

import csv
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Collection
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from PIL import Image, ImageDraw

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.depictions import read_looks
from counterprior.release import parquet_path

SIZE, CAPTION = 384, 18
ACROSS, DOWN = 4, 3
ONCE = ("right", "swapped")


def sheets(release: Path, out: Path, again: Collection[str] = ()) -> None:
    """Draws sheets of one right and one swapped image of each pair, in random order.

    Those that were looked at are left out, but for those of the pairs `again`.
    """
    out.mkdir(parents=True, exist_ok=True)
    rng = random.Random(out.name)
    looks = read_looks(DEFAULT_BANK)
    shown = read_gold(release)
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


def read_gold(release: Path) -> list[dict[str, Any]]:
    """The rows of a release's gold images."""
    rows: list[dict[str, Any]] = pq.read_table(
        release / parquet_path("t2i_correctness_gold")
    ).to_pylist()
    return rows


def confusion(release: Path) -> None:
    """Prints for each domain how many images of a layout were taken for which."""
    looks = read_looks(DEFAULT_BANK)
    names = [f"{layout} as {said}" for layout in ONCE for said in (*ONCE, "unsure")]
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    pairs: defaultdict[str, dict[tuple[str, str], bool]] = defaultdict(dict)
    for row in read_gold(release):
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
        case ["sheets", release, out, *again]:
            sheets(Path(release), Path(out), again)
        case ["confusion", release]:
            confusion(Path(release))
        case ["record", folder, *answers] if answers:
            record(Path(folder), list(map(Path, answers)))
        case _:
            sys.exit(__doc__)
