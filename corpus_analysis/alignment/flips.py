"""The flip set against the prior: verified images and their mirror images under the same caption.

A model tuned on it sees each caption equally often with either thing on the left, so mention order
carries no information. Images that mirroring makes wrong are left out: those with text, those of
things with a fixed handedness, and those whose caption says left or right.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from PIL import ImageOps
from PIL.Image import Image

from ...errors import UsageError
from ...eval.core import ORIGINAL, PROBES, Judge, Question
from ...images import ImageError, open_image
from ...parsing import load_yaml, write_rows
from ...progress import Progress
from ...storage import whole_folder, write_whole
from ..captions.ontology import FOLDER, OntologyError
from ..errors import CorpusError
from ..images.retrieve import ImageSource, image_path
from ..pipeline import IMAGES
from .dataset import FOLDER as DATASET
from .layout_judge import read_prompt
from .rates import SIDES

COUNT = 2_000
"""Default number of pairs, as in the paper; each gives two images."""

REASONS = (
    "not_verified",
    "inconsistent",
    "sides_in_caption",
    "text",
    "handed",
    "text_seen",
    "not_judged",
    "unreadable",
    "same_image",
    "not_needed",
)
"""Reasons to leave a pair out of the set."""

_WRITING = re.compile(
    r"(?i)\b(?:text|sign|signs|logo|poster|quote|quotes|letters?|lettering|typography|screenshot|"
    r"cover|label|banner|billboard|newspaper|headline|words|written|writing|slogan|jersey|map|"
    r"chart|diagram|infographic|number|numbers|menu|calendar|invitation|card|t-shirt)\b"
)
"""Words of captions whose images often contain writing."""

_HANDED = re.compile(r"(?i)\b(?:(?:left|right)-?hand(?:ed|er)?|southpaw|clockwise|asl|salut\w+)\b")


@dataclass(frozen=True)
class FlipSet:
    """Counts of the set that was written."""

    pairs: int
    """Pairs in the set, each with two images."""
    dropped: dict[str, int]
    """Pairs left out, by reason."""
    categories: dict[str, int]
    """Pairs by their two categories."""


def make_flips(
    mined: Path,
    out: Path,
    judge: Judge | None,
    progress: Progress,
    *,
    count: int = COUNT,
    seed: int = 0,
) -> FlipSet:
    """Writes the flip set of a run that has its layout; `out` appears whole or not at all.

    judge: asked whether an image contains text; None for no check. count: maximum number of pairs.
    seed: of the choice among equal pairs. Raises UsageError if `out` is not empty, InUseError if
    another process writes it, and CorpusError if the run has no layout yet or no pair remains.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty; choose another --out", code="folder-not-empty")
    handed = read_handed()
    pairs = _read(mined)
    reasons = [excluded(pair, handed) for pair in pairs]
    dropped = Counter(reason for reason in reasons if reason)
    usable = [pair for pair, reason in zip(pairs, reasons, strict=True) if not reason]
    order = list(balanced(usable, seed))
    dropped["same_image"] = len(usable) - len(order)
    with whole_folder(out) as staging:
        (staging / "train").mkdir()
        chosen: list[dict[str, Any]] = []
        rows: list[dict[str, Any]] = []
        for pair in order:
            if len(chosen) == count:
                dropped["not_needed"] += 1
                continue
            image, reason = _image(mined, pair, judge)
            if image is None:
                dropped[reason] += 1
                continue
            rows += _write(image, pair, staging / "train")
            chosen.append(pair)
            progress("flips", len(chosen), min(count, len(order)))
        flip_set = _count(chosen, dropped, mined)
        write_rows(staging / "train" / "metadata.jsonl", rows)
        write_whole(staging / "README.md", _card(flip_set))
    return flip_set


def _count(chosen: Sequence[dict[str, Any]], dropped: Counter[str], mined: Path) -> FlipSet:
    """Counts the set. Raises CorpusError, with the reasons, if it is empty."""
    if not chosen:
        reasons = ", ".join(
            f"{reason} {dropped[reason]:,}" for reason in REASONS if dropped[reason]
        )
        raise CorpusError(
            f"{mined}: no pair is left ({reasons or 'the run has none'}); nothing was written",
            code="nothing-to-do",
        )
    return FlipSet(
        pairs=len(chosen),
        dropped={reason: dropped[reason] for reason in REASONS},
        categories=dict(sorted(Counter(_group(pair) for pair in chosen).items())),
    )


def excluded(pair: Mapping[str, Any], handed: Mapping[str, str]) -> str:
    """Reason to exclude a pair, judging by its row; empty for a pair to keep."""
    if not pair["valid"]:
        return "not_verified"
    labels = {pair[f"order_{probe}"] for probe in PROBES}
    if pair["aligned"] is None or len(labels) != 1:
        return "inconsistent"
    if SIDES & set(pair["spatial_words"]):
        return "sides_in_caption"
    if _HANDED.search(pair["text"]):
        return "handed"
    entities = (pair["first"]["name"], pair["second"]["name"])
    reasons = {handed[name] for name in entities if name in handed}
    if "text" in reasons or _WRITING.search(pair["text"]):
        return "text"
    return "handed" if reasons else ""


def balanced(pairs: Sequence[dict[str, Any]], seed: int) -> Iterator[dict[str, Any]]:
    """Yields the pairs, alternating over their two categories, so that every prefix is balanced.

    One pair per image. Aligned and reversed images of two categories alternate too; mirror images
    make up for any that remain.
    """
    groups: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    used_images: set[str] = set()
    for pair in sorted(pairs, key=lambda p: str(p["id"])):
        if (image := _key(pair)) not in used_images:
            used_images.add(image)
            groups.setdefault((_group(pair), pair["aligned"]), []).append(pair)
    for (name, aligned), group in groups.items():
        random.Random(f"{seed}/{name}/{aligned}").shuffle(group)
    while groups:
        for key in sorted(groups):
            yield groups[key].pop()
            if not groups[key]:
                del groups[key]


def read_handed(path: Path = FOLDER / "handed.yaml") -> dict[str, str]:
    """Maps entities to the reason that mirroring makes them wrong.

    Raises OntologyError for an invalid file.
    """
    try:
        entries = load_yaml(path.read_text("utf-8"), str(path))
        reasons = {str(e["name"]): str(e["reason"]) for e in entries}
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise OntologyError(
            f"{path}: not a list of names and reasons ({error})", code="bad-format"
        ) from None
    if wrong := {r for r in reasons.values() if r not in ("text", "handed")}:
        raise OntologyError(
            f"{path}: reason {sorted(wrong)[0]!r} is neither text nor handed", code="unknown-name"
        )
    return reasons


def _read(mined: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    folder = mined / DATASET / "pairs"
    if not folder.is_dir():
        raise CorpusError(
            f"{mined} has no layout yet; run `counterprior corpus mine … --stage layout`",
            code="stage-missing",
        )
    rows: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
    return rows


def _key(pair: Mapping[str, Any]) -> str:
    """Key of the pair's image; empty if the pair has none."""
    source = ImageSource.of(pair)
    return source.key if source else ""


def _group(pair: Mapping[str, Any]) -> str:
    return " + ".join(sorted((pair["first"]["category"], pair["second"]["category"])))


def _image(mined: Path, pair: Mapping[str, Any], judge: Judge | None) -> tuple[Image | None, str]:
    """Returns the image, or None and the reason to leave it out."""
    try:
        image = open_image(image_path(mined / IMAGES, _key(pair)))
    except ImageError:
        return None, "unreadable"
    if judge is None:
        return image, ""
    question = Question(
        case=pair["id"],
        name="text",
        probe=ORIGINAL,
        task="yes_no",
        subjects=(),
        labels=("yes", "no"),
        prompt=read_prompt("text").fill(answers="1: yes\n2: no"),
        answers={"1": "yes", "2": "no"},
        images=(image,),
    )
    (_, verdict), *_ = judge.judge([question])
    if verdict.label == "no":
        return image, ""
    return None, "text_seen" if verdict.label == "yes" else "not_judged"


def _write(image: Image, pair: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """Writes both images, encoded alike so that compression can't tell them apart; yields rows."""
    left, right = (pair["first"], pair["second"])[:: 1 if pair["aligned"] else -1]
    name = str(pair["id"]).removeprefix("pair-")
    for mirrored in (False, True):
        variant = ImageOps.mirror(image) if mirrored else image
        file = f"{name}-{'mirrored' if mirrored else 'original'}.jpg"
        variant.save(folder / file, "JPEG", quality=95, subsampling=0)
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


def _card(flip_set: FlipSet) -> str:
    rows = "\n".join(f"| {name} | {count} |" for name, count in flip_set.categories.items())
    dropped = ", ".join(f"{name} {count}" for name, count in flip_set.dropped.items() if count)
    return f"""---
configs:
- config_name: default
  data_files:
  - split: train
    path: train/**
---
# Flip pairs against the order-to-space prior

{flip_set.pairs} captions that name two things, each with an image that shows them side by side and
with its mirror image. The trainers of diffusers read `image` and `text` (`--train_data_dir`);
`left` and `right` name the thing on each side.

| categories | pairs |
| --- | --- |
{rows}

Excluded: {dropped or "none"}. The images belong to their owners; use them for research only.
"""
