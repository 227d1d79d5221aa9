"""Shows real images to readers who must not know their prompts, and keeps what they saw.

    python tools/read_real.py sheets IMAGES WORK ann            # -> WORK/ann/, WORK/key_ann.json
    python tools/read_real.py differences WORK ann bo           # -> WORK/disagreements.json
    python tools/read_real.py sheets IMAGES WORK cy --open      # only images that they differ about
    python tools/read_real.py record IMAGES WORK ann bo cy      # -> builders/bank/real/labels.jsonl
    python tools/read_real.py manifest IMAGES m.jsonl           # for counterprior spatial detect
    python tools/read_real.py detections IMAGES d.jsonl NAME    # -> builders/bank/real/NAME.jsonl

IMAGES is the folder `images` of VISOR's repository, with a folder for each model, or a part of it.

A sheet has twelve numbered images in random order, each 256 pixels wide, with the names of two
things in random order, A and B, and neither prompt nor model. The reader writes a line for each
image into one of the files WORK/labels_NAME*.jsonl; `readings.py` says what the words mean:

    {"n": 36, "a": "whole", "b": "part", "left": "A", "upper": "none", "front": "B", "sure": 3}

Keep the keys away from readers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.real import FILE, ImageReadings
from counterprior.builders.suite import SHIPPED
from counterprior.builders.suites.spatial_visor import published_row
from counterprior.eval.geometry.checker.decide import check
from counterprior.eval.geometry.checker.recorded import CheckerSample, read_samples
from counterprior.eval.geometry.checker.rules import CheckerRules
from counterprior.eval.judges.checker.run import PUBLISHED_SIZE
from counterprior.images import open_image
from counterprior.parsing import parse, read_rows, write_rows
from counterprior.readings import ImageReading, settle
from counterprior.release import sha256_file
from counterprior.schema import SpatialVISOR

SIZE, GAP, CAPTION = 256, 8, 30
ACROSS, DOWN = 4, 3
EACH = ACROSS * DOWN
OPEN = "disagreements.json"


@lru_cache
def prompt_of(file: str) -> SpatialVISOR:
    """The prompt of an image, MODEL/PROMPT_NUMBER.png. Ends the program for any other name."""
    number = Path(file).stem.partition("_")[0]
    row = published_row(SHIPPED, int(number)) if number.isdigit() else None
    if row is None:
        raise SystemExit(f"{file}: is not named by a two-object prompt of VISOR")
    return row


def images_in(folder: Path) -> list[str]:
    """Names of the images below a folder, MODEL/PROMPT_NUMBER.png, sorted."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob("*/*_*.png"))


def sheets(folder: Path, work: Path, reader: str, only_open: bool) -> int:
    """Draws a reader's sheets and writes the key; returns the number of images."""
    files = images_in(folder)
    if only_open:
        files = sorted(json.loads((work / OPEN).read_text())["images"])
    random.Random(f"sheets/{reader}").shuffle(files)
    (work / reader).mkdir(parents=True, exist_ok=True)
    key = []
    font = ImageFont.load_default(15)
    for start in range(0, len(files), EACH):
        size = ACROSS * (SIZE + GAP), DOWN * (SIZE + CAPTION)
        sheet = Image.new("RGB", size, "white")
        draw = ImageDraw.Draw(sheet)
        for place, file in enumerate(files[start : start + EACH]):
            prompt = prompt_of(file)
            a, b = sorted((prompt.object_a, prompt.object_b))
            if random.Random(f"swap/{reader}/{file}").random() < 0.5:
                a, b = b, a
            x = place % ACROSS * (SIZE + GAP) + GAP // 2
            y = place // ACROSS * (SIZE + CAPTION)
            draw.text((x, y + 6), f"#{start + place}  A: {a} | B: {b}", fill="black", font=font)
            cell = open_image(folder / file).resize((SIZE, SIZE), Image.Resampling.LANCZOS)
            sheet.paste(cell, (x, y + CAPTION - 4))
            key.append({"number": start + place, "file": file, "A": a, "B": b})
        sheet.save(work / reader / f"sheet_{start // EACH:03}.png")
    (work / f"key_{reader}.json").write_text(json.dumps(key))
    return len(files)


def read(work: Path, reader: str) -> dict[str, ImageReading]:
    """Image -> what a reader saw, with A for the thing that the prompt mentions first.

    Ends the program at a line that can't be used, and for a number twice or missing.
    """
    key = {
        entry["number"]: entry for entry in json.loads((work / f"key_{reader}.json").read_text())
    }
    seen: dict[str, ImageReading] = {}
    for path in sorted(work.glob(f"labels_{reader}*.jsonl")):
        for line, row in read_rows(path):
            entry = key.get(row.pop("n", None))
            if entry is None or entry["file"] in seen:
                raise SystemExit(f"{path}:{line}: n: not in the key, or labeled twice")
            reading = parse(ImageReading, row, path, line)
            first = prompt_of(entry["file"]).object_a
            seen[entry["file"]] = reading if entry["A"] == first else reading.swapped()
    if missing := [number for number, entry in key.items() if entry["file"] not in seen]:
        raise SystemExit(f"{reader}: {len(missing)} images without a line, e.g. #{missing[0]}")
    return seen


def together(work: Path, readers: Sequence[str]) -> Iterator[tuple[str, dict[str, ImageReading]]]:
    """Each image of the first reader with all readings of it, sorted."""
    seen = {reader: read(work, reader) for reader in readers}
    for file in sorted(seen[readers[0]]):
        yield file, {reader: of[file] for reader, of in seen.items() if file in of}


def differences(work: Path, readers: Sequence[str]) -> dict[str, Any]:
    """The questions of each image that these readers leave open, and how many of each kind."""
    images = {
        file: settled.open
        for file, readings in together(work, readers)
        if (settled := settle(list(readings.values()))).open
    }
    counts = Counter(name for questions in images.values() for name in questions)
    report = {"readers": list(readers), "counts": dict(sorted(counts.items())), "images": images}
    (work / OPEN).write_text(json.dumps(report, indent=1) + "\n")
    return {"images": len(images), **report["counts"]}


def record(folder: Path, work: Path, readers: Sequence[str], bank: Path) -> int:
    """Writes all readings into a bank; the same files always give the same bytes."""
    lines = []
    for file, readings in together(work, readers):
        digest = hashlib.sha256((folder / file).read_bytes()).hexdigest()
        entry = ImageReadings(image=file, sha256=digest, readings=readings)
        lines.append(json.dumps(entry.model_dump()) + "\n")
    (bank / FILE).parent.mkdir(parents=True, exist_ok=True)
    (bank / FILE).write_text("".join(lines))
    return len(lines)


def manifest(folder: Path, out: Path) -> int:
    """Writes the images with what their prompts state, for `spatial detect`."""
    files = images_in(folder)
    stated = {"relation", "object_a", "object_b"}
    write_rows(
        out,
        (
            {
                "sample_id": file,
                "prompt_id": Path(file).stem.partition("_")[0],
                "image_path": str((folder / file).resolve()),
                **prompt_of(file).model_dump(include=stated),
            }
            for file in files
        ),
    )
    return len(files)


def detections(folder: Path, recorded: Path, name: str, bank: Path) -> int:
    """Keeps what `spatial detect` recorded of the images, with their digests, in a bank.

    Boxes are rounded to hundredths of a pixel and scores to four places. Ends the program where
    that changes a verdict.
    """
    rules, rows = CheckerRules(), []
    for sample, size in sorted(
        read_samples(recorded, PUBLISHED_SIZE), key=lambda s: s[0].sample_id
    ):
        found = [
            {
                "label": d.label,
                "score": round(d.score, 4),
                "box_xyxy": [round(side, 2) for side in d.box_xyxy],
            }
            for d in sample.detectors.primary.detections
        ]
        row = {
            "sample_id": sample.sample_id,
            "image_sha256": sha256_file(folder / sample.sample_id),
            "prompt_id": sample.prompt_id,
            "relation": sample.relation,
            "object_a": sample.object_a,
            "object_b": sample.object_b,
            **size._asdict(),
            "detectors": {"primary": {"type": sample.detectors.primary.type, "detections": found}},
            "verdict_raw": sample.verdict_raw,
            "verdict_reason": sample.verdict_reason,
            "conf_components": {"stability": sample.conf_components.stability},
        }
        kept = CheckerSample.model_validate(row)
        if check(kept, size, rules).verdict != check(sample, size, rules).verdict:
            raise SystemExit(f"{sample.sample_id}: rounding changes its verdict")
        rows.append(row)
    write_rows(bank / "real" / f"{name}.jsonl", rows)
    return len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    drawn = commands.add_parser("sheets")
    drawn.add_argument("images", type=Path)
    drawn.add_argument("work", type=Path)
    drawn.add_argument("reader")
    drawn.add_argument("--open", action="store_true", help="only images that are not settled")
    compared = commands.add_parser("differences")
    compared.add_argument("work", type=Path)
    compared.add_argument("readers", nargs="+")
    recorded = commands.add_parser("record")
    recorded.add_argument("images", type=Path)
    recorded.add_argument("work", type=Path)
    recorded.add_argument("readers", nargs="+")
    recorded.add_argument("--bank", type=Path, default=DEFAULT_BANK)
    listed = commands.add_parser("manifest")
    listed.add_argument("images", type=Path)
    listed.add_argument("out", type=Path)
    kept = commands.add_parser("detections")
    kept.add_argument("images", type=Path)
    kept.add_argument("recorded", type=Path)
    kept.add_argument("name")
    kept.add_argument("--bank", type=Path, default=DEFAULT_BANK)
    options = parser.parse_args()
    if options.command == "sheets":
        print(sheets(options.images, options.work, options.reader, options.open), "images")
    elif options.command == "differences":
        print(json.dumps(differences(options.work, options.readers)))
    elif options.command == "manifest":
        print(manifest(options.images, options.out), "images")
    elif options.command == "detections":
        kept_rows = detections(options.images, options.recorded, options.name, options.bank)
        print(kept_rows, "images")
    else:
        print(record(options.images, options.work, options.readers, options.bank), "images")


if __name__ == "__main__":
    main()
