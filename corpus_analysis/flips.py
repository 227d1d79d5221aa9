"""The set against the prior: verified pictures and their mirror images under the same caption.

A model that is tuned on it sees each caption with either thing on the left, equally often, so the
order of mention tells it nothing. Pictures that a mirror makes wrong are left out: those that bear
text, those of things with a fixed handedness, and captions that speak of left and right.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from PIL import ImageOps
from PIL.Image import Image

from ..eval.core import ORIGINAL, PROBES, Judge, Question
from ..images import ImageError, open_image
from ..progress import Progress
from .alignment import SIDES
from .captions.ontology import FOLDER, OntologyError
from .dataset import FOLDER as DATASET
from .errors import CorpusError
from .images.retrieve import picture_path, url_key
from .layout import read_prompt
from .run import IMAGES

COUNT = 2_000
"""Pairs wherever no number is given, as in the paper; each gives two pictures."""

REASONS = (
    "not_verified",
    "inconsistent",
    "sides_in_caption",
    "text",
    "handed",
    "text_seen",
    "not_judged",
    "unreadable",
    "same_picture",
    "not_needed",
)
"""Why a pair is not in the set."""

_WRITING = re.compile(
    r"(?i)\b(?:text|sign|signs|logo|poster|quote|quotes|letters?|lettering|typography|screenshot|"
    r"cover|label|banner|billboard|newspaper|headline|words|written|writing|slogan|jersey|map|"
    r"chart|diagram|infographic|number|numbers|menu|calendar|invitation|card|t-shirt)\b"
)
"""Words of captions whose pictures often bear writing."""

_HANDED = re.compile(r"(?i)\b(?:(?:left|right)-?hand(?:ed|er)?|southpaw|clockwise|asl|salut\w+)\b")


@dataclass(frozen=True)
class FlipSettings:
    """Which pairs are taken."""

    count: int = COUNT
    """Pairs at most."""
    seed: int = 0
    """Of the choice among equals."""


@dataclass(frozen=True)
class FlipSet:
    """What was written."""

    pairs: int
    """Each with two pictures."""
    dropped: dict[str, int]
    """Pairs that are not in it, by reason."""
    categories: dict[str, int]
    """Pairs by their two categories."""


def make_flips(
    mined: Path, out: Path, settings: FlipSettings, judge: Judge | None, progress: Progress
) -> FlipSet:
    """Writes the set of a run that has its layout; it appears in `out` whole or not at all.

    A judge that answers free questions is asked of each picture whether it bears text. Raises
    CorpusError where the run has no layout yet, `out` is not empty or no pair is left.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CorpusError(f"{out} is there already; give another --out")
    dropped: Counter[str] = Counter()
    usable = []
    handed = read_handed()
    for pair in _read(mined):
        reason = excluded(pair, handed)
        if reason:
            dropped[reason] += 1
        else:
            usable.append(pair)
    staging = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    staging.parent.mkdir(parents=True, exist_ok=True)
    for leftover in staging.parent.glob(f".{out.name}.*.tmp"):
        shutil.rmtree(leftover)  # of a run that was killed
    try:
        (staging / "train").mkdir(parents=True)
        taken: list[dict[str, Any]] = []
        order = list(balanced(usable, settings.seed))
        dropped["same_picture"] = len(usable) - len(order)
        with (staging / "train" / "metadata.jsonl").open("w", encoding="utf-8") as metadata:
            for pair in order:
                if len(taken) == settings.count:
                    dropped["not_needed"] += 1
                    continue
                picture, reason = _picture(mined, pair, judge)
                if picture is None:
                    dropped[reason] += 1
                    continue
                for row in _write(picture, pair, staging / "train"):
                    metadata.write(json.dumps(row, ensure_ascii=False) + "\n")
                taken.append(pair)
                progress("flips", len(taken), min(settings.count, len(order)))
        found = FlipSet(
            len(taken),
            {reason: dropped[reason] for reason in REASONS},
            dict(sorted(Counter(_group(pair) for pair in taken).items())),
        )
        if not taken:
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in found.dropped.items() if n)
            raise CorpusError(
                f"{mined}: no pair is left ({reasons or 'the run has none'}); nothing was written"
            )
        (staging / "README.md").write_text(_card(found), encoding="utf-8")
        if out.exists():
            out.rmdir()
        os.replace(staging, out)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return found


def excluded(pair: Mapping[str, Any], handed: Mapping[str, str]) -> str:
    """Why a pair can't be in the set by what is known of it; empty where it can."""
    if not pair["valid"]:
        return "not_verified"
    labels = {pair[f"order_{probe}"] for probe in PROBES}
    if pair["aligned"] is None or len(labels) != 1:
        return "inconsistent"
    if SIDES & set(pair["spatial_words"]):
        return "sides_in_caption"
    if _HANDED.search(pair["text"]):
        return "handed"
    reasons = {
        handed[pair[half]["name"]] for half in ("first", "second") if pair[half]["name"] in handed
    }
    if "text" in reasons or _WRITING.search(pair["text"]):
        return "text"
    return "handed" if reasons else ""


def balanced(pairs: Sequence[dict[str, Any]], seed: int) -> Iterator[dict[str, Any]]:
    """The pairs in turns over their two categories, so that any beginning is balanced.

    One pair a picture. Within two categories aligned and reversed pictures take turns too: their
    mirror images make up for the rest.
    """
    groups: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    seen: set[str] = set()
    for pair in sorted(pairs, key=lambda p: str(p["id"])):
        if pair["url"] not in seen:
            seen.add(pair["url"])
            groups.setdefault((_group(pair), pair["aligned"]), []).append(pair)
    for (name, aligned), group in groups.items():
        random.Random(f"{seed}/{name}/{aligned}").shuffle(group)
    while groups:
        for key in sorted(groups):
            yield groups[key].pop()
            if not groups[key]:
                del groups[key]


def read_handed(path: Path = FOLDER / "handed.yaml") -> dict[str, str]:
    """Entity -> why its mirror image is wrong. Raises OntologyError for a file that isn't right."""
    try:
        entries = yaml.safe_load(path.read_text("utf-8"))
        found = {str(e["name"]): str(e["reason"]) for e in entries}
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise OntologyError(f"{path}: not a list of names and reasons ({error})") from None
    if wrong := {r for r in found.values() if r not in ("text", "handed")}:
        raise OntologyError(f"{path}: reason {sorted(wrong)[0]!r} is neither text nor handed")
    return found


def _read(mined: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    folder = mined / DATASET / "pairs"
    if not folder.is_dir():
        raise CorpusError(f"{mined} has no layout yet: run `counterprior mine … --stage layout`")
    rows: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
    return rows


def _group(pair: Mapping[str, Any]) -> str:
    return " + ".join(sorted((pair["first"]["category"], pair["second"]["category"])))


def _picture(mined: Path, pair: Mapping[str, Any], judge: Judge | None) -> tuple[Image | None, str]:
    """The picture, or why it can't be taken."""
    try:
        picture = open_image(picture_path(mined / IMAGES, url_key(pair["url"])))
    except ImageError:
        return None, "unreadable"
    if judge is None:
        return picture, ""
    question = Question(
        case=pair["id"],
        name="text",
        probe=ORIGINAL,
        task="yes_no",
        subjects=(),
        labels=("yes", "no"),
        prompt=read_prompt("text").fill(answers="1: yes\n2: no"),
        answers={"1": "yes", "2": "no"},
        images=(picture,),
    )
    (_, verdict), *_ = judge.judge([question])
    if verdict.label == "no":
        return picture, ""
    return None, "text_seen" if verdict.label == "yes" else "not_judged"


def _write(picture: Image, pair: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """Both pictures, encoded alike: a model must not tell them apart by their compression."""
    left, right = (pair["first"], pair["second"])[:: 1 if pair["aligned"] else -1]
    name = str(pair["id"]).removeprefix("pair-")
    for mirrored in (False, True):
        image = ImageOps.mirror(picture) if mirrored else picture
        file = f"{name}-{'mirrored' if mirrored else 'original'}.jpg"
        image.save(folder / file, "JPEG", quality=95, subsampling=0)
        yield {
            "file_name": file,
            "text": pair["text"],
            "mirrored": mirrored,
            "first": pair["first"]["name"],
            "second": pair["second"]["name"],
            "left": (right if mirrored else left)["name"],
            "right": (left if mirrored else right)["name"],
            "pair": pair["id"],
            "url": pair["url"],
        }


def _card(found: FlipSet) -> str:
    rows = "\n".join(f"| {name} | {count} |" for name, count in found.categories.items())
    dropped = ", ".join(f"{name} {count}" for name, count in found.dropped.items() if count)
    return f"""---
configs:
- config_name: default
  data_files:
  - split: train
    path: train/**
---
# Flip pairs against the order-to-space prior

{found.pairs} captions with two named things, each with a picture that shows them side by side and
with its mirror image. `image` and `text` are what diffusers' trainers read (`--train_data_dir`);
`left` and `right` say what is where.

| categories | pairs |
| --- | --- |
{rows}

Not taken: {dropped or "none"}. Pictures belong to their owners; for research on them only.
"""
