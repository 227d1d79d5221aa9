"""Every picture of a run with its prompt and all that the judges said, and what to filter by.

Thumbnails are files named by the picture's hash, not data URIs in the page: the browser loads those
in view only, so 1,700 rows in both orders stay a page of 3 MB that opens at once; runs share them;
and a report that is written again makes no thumbnail twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from ...images import ImageError, open_image
from ...storage import write_whole
from ..core import BOTH, ORIGINAL, Case, is_failure
from ..engine.run import MadeImage
from ..results.contents import RunContents
from ..suites.asking import INVALID

Progress = Callable[[str, int, int], None]
"""Told stage, done and total."""

THUMBNAILS = "thumbnails"
LONGEST_SIDE = 256
"""Of a thumbnail, pixels."""
QUALITY = 60
"""WebP's, 0 to 100: some 5 kB a picture."""
LONGEST_ANSWER = 600
"""Characters of an answer that are shown."""

FILTERS = {
    "disagreement": "judges disagree",
    "flipped": "a probe changed the answer",
    "invalid": "invalid",
    "failure": "no answer or no picture",
}
"""Flag of a picture -> what the page calls it."""

Record = Mapping[str, Any]


def gallery(contents: RunContents, thumbnails: Mapping[str, str]) -> dict[str, Any]:
    """What the gallery's page holds, in JSON: judges, filters with their counts, pictures.

    thumbnails: SHA-256 of a picture -> file in the site.
    """
    images = contents.run.images()
    folders = list(contents.run.judges())
    answers = [answers_by_case(folder.verdicts(), images) for folder in folders]
    pictures = [
        _picture(case, images.get(case.id), [a.get(case.id, []) for a in answers], thumbnails)
        for case in contents.run.cases()
    ]
    groups = {f"{name}: {value}" for p in pictures for name, values in p["groups"].items()
              for value in values}  # fmt: skip
    return {
        "judges": [folder.name for folder in folders],
        "variants": sorted({p["variant"] for p in pictures}),
        "groups": sorted(groups),
        "filters": [
            {"flag": flag, "name": name, "count": sum(flag in p["flags"] for p in pictures)}
            for flag, name in FILTERS.items()
        ],
        "pictures": pictures,
    }


def flags(answers: Sequence[Sequence[Record]], made: bool) -> list[str]:
    """Which of `FILTERS` a picture is found by, from every judge's answers about it.

    Two judges disagree where their labels of one question differ and neither is a failure. Without
    any answer it is a failure too: it was not judged.
    """
    found = set()
    said: dict[str, set[str]] = {}
    if not made or not any(answers):
        found.add("failure")
    for part in answers:
        original = {r["question"]: r["label"] for r in part if r["probe"] == ORIGINAL}
        for record in part:
            question, label = record["question"], record["label"]
            if is_failure(label):
                found.add("failure")
            elif record["probe"] == ORIGINAL:
                said.setdefault(question, set()).add(label)
                if label == INVALID:
                    found.add("invalid")
            elif not is_failure(original.get(question, "missing")) and label != original[question]:
                found.add("flipped")
    if any(len(labels) > 1 for labels in said.values()):
        found.add("disagreement")
    return [flag for flag in FILTERS if flag in found]


def answers_by_case(
    verdicts: Iterable[Record], images: Mapping[str, MadeImage]
) -> dict[str, list[Record]]:
    """Case -> its newest answers about the picture that it has now, in the order asked."""
    newest: dict[str, dict[tuple[str, str], Record]] = {}
    for record in verdicts:
        made = images.get(record["case"])
        if made is not None and record["image"] == made.sha256:
            of_case = newest.setdefault(record["case"], {})
            of_case[record["question"], record["probe"]] = record
    return {case: list(records.values()) for case, records in newest.items()}


def make_thumbnails(runs: Sequence[RunContents], site: Path, progress: Progress) -> dict[str, str]:
    """The thumbnail of every picture and source that can be read, made where it isn't there.

    Returns SHA-256 of the picture -> path in the site. One that can't be read has none.
    """
    wanted = {
        image.sha256: run.run.image_path(image)
        for run in runs
        for image in run.run.images().values()
        if image.status == "made"
    }
    wanted |= {
        Path(case.source).stem: run.run.root / case.source
        for run in runs
        for case in run.run.cases()
        if case.source
    }
    folder = site / THUMBNAILS
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for number, (digest, path) in enumerate(sorted(wanted.items())):
        progress("thumbnails", number, len(wanted))
        name = f"{digest[:24]}.webp"
        if not (folder / name).exists():
            try:
                picture = open_image(path)
            except ImageError:
                continue
            write_whole(folder / name, thumbnail(picture))
        found[digest] = f"{THUMBNAILS}/{name}"
    progress("thumbnails", len(wanted), len(wanted))
    return found


def thumbnail(picture: Image.Image) -> bytes:
    """The picture as a small WebP; the same bytes for the same pixels under one Pillow."""
    small = picture.copy()
    small.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    buffer = BytesIO()
    small.save(buffer, "WEBP", quality=QUALITY, method=4)
    return buffer.getvalue()


def _picture(
    case: Case,
    made: MadeImage | None,
    answers: Sequence[Sequence[Record]],
    thumbnails: Mapping[str, str],
) -> dict[str, Any]:
    status = made.status if made else "not generated"
    return {
        "id": case.id,
        "prompt": case.prompt,
        "variant": case.variant,
        "seed": case.seed,
        "groups": {name: values.split(BOTH) for name, values in case.groups.items()},
        "status": status,
        "thumbnail": thumbnails.get(made.sha256, "") if made else "",
        "edit": bool(case.source),
        "source": thumbnails.get(Path(case.source).stem, ""),
        "flags": flags(answers, status == "made"),
        "answers": [[_answer(record) for record in part] for part in answers],
    }


def _answer(record: Record) -> dict[str, Any]:
    raw = str(record["raw"])
    plain: dict[str, Any] = {
        "question": record["question"],
        "probe": record["probe"],
        "label": record["label"],
        "raw": raw if len(raw) <= LONGEST_ANSWER else raw[:LONGEST_ANSWER] + "…",
    }
    if record.get("probabilities"):
        plain["probability"] = record["probabilities"].get(record["label"])
    return plain
