"""Every image of a run, or of all runs of a suite beside each other, with its prompt, the judges'
answers, and filters.

Thumbnails are files named by the image's hash, not data URIs in the page: the browser loads those
in view only, so 1,700 rows in both orders stay a page of 3 MB that opens at once; runs share them;
and a report that is written again makes no thumbnail twice. Full-size images are
added if there are few, or on request, encoded anew so that only pixels are published.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from ...cpus import available_cpus
from ...images import ImageError
from ...progress import Progress
from ...storage import write_whole
from ..core import BOTH, FAILURES, INVALID, ORIGINAL, Case
from ..engine.run import CaseResult
from ..results.contents import RunContents
from ..results.names import brief
from ..store.verdicts import Answered
from ..workers.farm import Scale, farm
from ..workers.tasks import Numbered
from .players import still_of

THUMBNAILS = "thumbnails"
WHOLE = "images"
"""Folder of the images at their full size; files are named as their thumbnails."""
FEW_IMAGES = 2_000
"""Largest number of images that a report includes at full size by default: some 100 ms and 150 kB
each at a megapixel."""
LONGEST_SIDE = 256
"""Longest side of a thumbnail, pixels."""
QUALITY, WHOLE_QUALITY = 60, 90
"""WebP's, 0 to 100: some 5 kB a thumbnail."""
METHOD = 2
"""WebP's effort, 0 to 6: 4 takes twice the time and saves 6 % of the bytes."""
ENOUGH_FOR_WORKERS = 400
"""Missing thumbnails from which worker processes are worth their start."""
LONGEST_ANSWER = 600
"""Characters of an answer that are shown."""

FILTERS = {
    "disagreement": "judges disagree",
    "flipped": "a probe changed the answer",
    "invalid": "invalid",
    "failure": "no answer or no image",
}
"""Flag of an image -> its name on the page."""
WORDS = frozenset({"raw", "key"})
"""Fields of an answer that say how it was written."""
APART = {"apart": "generators differ"}
"""The same for images of several generators."""


def gallery(
    contents: RunContents,
    thumbnails: Mapping[str, str],
    clips: Mapping[str, str],
    full_size: bool = False,
) -> dict[str, Any]:
    """Returns the gallery's data as JSON values: judges, filters with their counts, images.

    thumbnails: SHA-256 of an image -> file in the site; clips: that of a clip -> file; full_size:
    whether images are included at full size.
    """
    results = contents.run.images()
    answers = [answers_by_case(judged.log.present(contents.present)) for judged in contents.judged]
    images: list[dict[str, Any]] = []
    keys: dict[tuple[tuple[str, str], ...], int] = {}
    for case in contents.run.cases():
        image, by_judge = (
            results.get(case.id),
            [judge_answers.get(case.id, []) for judge_answers in answers],
        )
        clip = clips.get(image.sha256, "") if image else ""
        entry = _image(case, image, by_judge, thumbnails)
        entry["answers"] = [
            [_answer(answered, keys) for answered in judge_answers] for judge_answers in by_judge
        ]
        images.append(entry | ({"clip": clip} if clip else {}))
    return {
        "judges": [judged.result.judge for judged in contents.judged],
        "runs": [],
        "keys": [dict(pairs) for pairs in keys],
        "whole": WHOLE if full_size else "",
        **_found_in(images, FILTERS),
    }


def comparison(
    runs: Sequence[RunContents], galleries: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns the same of several runs of one suite, from the data of their galleries.

    Answers are labels alone, of the question itself. An image has the flag of `APART` where a
    judge's labels of its case differ between runs.
    """
    judges = list(dict.fromkeys(judge for data in galleries for judge in data["judges"]))
    images: list[dict[str, Any]] = []
    for number, data in enumerate(galleries):
        for image in data["images"]:
            by_judge = dict(zip(data["judges"], image["answers"], strict=True))
            labels = [
                [
                    {name: value for name, value in answer.items() if name not in WORDS}
                    for answer in by_judge.get(judge, ())
                    if answer["probe"] == ORIGINAL
                ]
                for judge in judges
            ]
            images.append({**image, "answers": labels, "run": number})
    _flag_apart(images)
    return {
        "judges": judges,
        "runs": [{"name": brief(run.name, run.suite.name), "slug": run.slug} for run in runs],
        "keys": [],
        "whole": galleries[0]["whole"],
        **_found_in(images, APART | FILTERS),
    }


def _found_in(images: Sequence[dict[str, Any]], filters: Mapping[str, str]) -> dict[str, Any]:
    """The images, and what they can be filtered by."""
    groups = {
        f"{name}: {value}"
        for image in images
        for name, values in image["groups"].items()
        for value in values
    }
    labels = {
        a["label"] for image in images for judge_answers in image["answers"] for a in judge_answers
    }
    return {
        "labels": sorted(labels),
        "variants": sorted({image["variant"] for image in images}),
        "groups": sorted(groups),
        "filters": [
            {"flag": flag, "name": name, "count": sum(flag in image["flags"] for image in images)}
            for flag, name in filters.items()
        ],
        "images": images,
    }


def _flag_apart(images: Sequence[dict[str, Any]]) -> None:
    """Flags the images of a case that a judge labels otherwise in two runs, failures apart."""
    by_case: dict[str, list[dict[str, Any]]] = {}
    for image in images:
        by_case.setdefault(image["id"], []).append(image)
    for alike in by_case.values():
        labels: dict[tuple[Any, ...], set[str]] = {}
        for image in alike:
            for judge, of_judge in enumerate(image["answers"]):
                for answer in of_judge:
                    if answer["label"] not in FAILURES:
                        place = (judge, answer["question"], answer.get("frame"))
                        labels.setdefault(place, set()).add(answer["label"])
        if any(len(some) > 1 for some in labels.values()):
            for image in alike:
                image["flags"] = [*APART, *image["flags"]]


def flags(answers: Sequence[Sequence[Answered]], exists: bool) -> list[str]:
    """Keys of the `FILTERS` that match an image, from every judge's answers about it.

    Two judges disagree where their labels of one question differ and neither is a failure. Without
    any answer it is a failure too: it was not judged.
    """
    raised = set()
    labels_by_question: dict[tuple[str, int | None], set[str]] = {}
    if not exists or not any(answers):
        raised.add("failure")
    for judge_answers in answers:
        original = {(a.question, a.frame): a.verdict for a in judge_answers if a.probe == ORIGINAL}
        for a in judge_answers:
            plain = original.get((a.question, a.frame))
            if a.verdict.failed:
                raised.add("failure")
            elif a.probe == ORIGINAL:
                labels_by_question.setdefault((a.question, a.frame), set()).add(a.verdict.label)
                if a.verdict.label == INVALID:
                    raised.add("invalid")
            elif plain and not plain.failed and plain.label != a.verdict.label:
                raised.add("flipped")
    if any(len(labels) > 1 for labels in labels_by_question.values()):
        raised.add("disagreement")
    return [flag for flag in FILTERS if flag in raised]


def answers_by_case(answers: Sequence[Answered]) -> dict[str, list[Answered]]:
    """Case -> the answers about its present image, in the order asked."""
    by_case: dict[str, list[Answered]] = {}
    for answered in answers:
        by_case.setdefault(answered.case, []).append(answered)
    return by_case


def make_thumbnails(
    runs: Sequence[RunContents], site: Path, progress: Progress, full_size: bool = False
) -> dict[str, str]:
    """The thumbnail of every image and source that can be read, made if missing.

    Returns SHA-256 of the image -> path in the site, without images that can't be read. Many are
    made by a process for each core; thumbnails of an interrupted report are reused. full_size:
    whether the image itself is written too.
    """
    wanted = _images_of(runs)
    folder, full_folder = site / THUMBNAILS, site / WHOLE
    file_names = {digest: f"{digest[:24]}.webp" for digest in sorted(wanted)}
    there = _files(folder)
    ready = there & _files(full_folder) if full_size else there
    missing = [
        (wanted[digest], folder / name, full_folder / name if full_size else None)
        for digest, name in file_names.items()
        if name not in ready
    ]
    there &= ready
    workers = available_cpus() if len(missing) >= ENOUGH_FOR_WORKERS else 1
    done = len(wanted) - len(missing)
    progress("thumbnails", done, len(wanted))
    with closing(_make_missing(missing, workers)) as finished:
        for number, (target, is_made) in enumerate(finished, done + 1):
            progress("thumbnails", number, len(wanted))
            if is_made:
                there.add(target.name)
    return {digest: f"{THUMBNAILS}/{name}" for digest, name in file_names.items() if name in there}


def _images_of(runs: Sequence[RunContents]) -> dict[str, Path]:
    """SHA-256 of every image and source of the runs that is still the recorded one -> its file."""
    files = {
        image.sha256: run.run.image_path(image)
        for run, recorded in ((run, run.run.replacement()) for run in runs)
        for image in run.run.images().values()
        if image.status == "made" and not image.is_text and recorded.may_show(image)
    }
    return files | {
        Path(case.source).stem: run.run.root / case.source
        for run in runs
        for case in run.run.cases()
        if case.source
    }


def _files(folder: Path) -> set[str]:
    """Names of a folder's files, but of those that a power cut left empty."""
    entries = os.scandir(folder) if folder.exists() else ()
    return {entry.name for entry in entries if entry.stat().st_size}


Thumbnail = tuple[Path, Path, Path | None]
"""An image, the thumbnail to make of it, and its copy at full size if one is to be made."""


@dataclass(frozen=True)
class MakeThumbnails:
    """The task of workers that make thumbnails."""

    bundle: int = 16

    def open(self) -> MakeThumbnails:
        return self

    def do(self, work: Sequence[Numbered[Thumbnail]]) -> Iterator[Numbered[bool]]:
        """Whether each could be made."""
        for number, (path, target, full_size) in work:
            try:
                image = still_of(path)
                # Waiting for the disk each time takes as long as the rest; see `_files`.
                if full_size is not None:
                    write_whole(full_size, as_webp(image, WHOLE_QUALITY), sync=False)
                write_whole(target, thumbnail(image), sync=False)
            except ImageError:
                yield number, False
            else:
                yield number, True

    def finish(self) -> Iterator[Numbered[bool]]:
        yield from ()

    def lost(self, piece: Thumbnail, deaths: int) -> bool:
        return False


def _make_missing(
    missing: Sequence[Thumbnail], workers: int
) -> Generator[tuple[Path, bool], None, None]:
    """Each thumbnail with whether it could be made."""
    task = MakeThumbnails()
    if workers == 1:
        for number, is_made in task.do(list(enumerate(missing))):
            yield missing[number][1], is_made
        return
    with closing(farm(task, missing, Scale(workers))) as finished:
        for (_, target, _), is_made in finished:
            yield target, is_made


def thumbnail(image: Image.Image) -> bytes:
    """The image as a small WebP; the same bytes for the same pixels under one Pillow."""
    small = image.copy()
    # Whole factors are taken by a plain mean: several times as fast, and nobody sees it.
    size = (LONGEST_SIDE, LONGEST_SIDE)
    small.thumbnail(size, Image.Resampling.LANCZOS, reducing_gap=1.0)
    return as_webp(small, QUALITY)


def as_webp(image: Image.Image, quality: int) -> bytes:
    """The pixels as WebP, and nothing else of the image."""
    buffer = BytesIO()
    image.save(buffer, "WEBP", quality=quality, method=METHOD, exif=b"", xmp=b"", icc_profile=b"")
    return buffer.getvalue()


def _image(
    case: Case,
    result: CaseResult | None,
    answers: Sequence[Sequence[Answered]],
    thumbnails: Mapping[str, str],
) -> dict[str, Any]:
    status = result.status if result else "not generated"
    return {
        "id": case.id,
        "item": f"{case.row}, seed {case.seed}",
        "prompt": case.prompt,
        "variant": case.variant,
        "seed": case.seed,
        "groups": {name: values.split(BOTH) for name, values in case.groups.items()},
        "status": status,
        "thumbnail": thumbnails.get(result.sha256, "") if result else "",
        "edit": bool(case.source),
        "source": thumbnails.get(Path(case.source).stem, ""),
        "flags": flags(answers, status == "made"),
    }


def _answer(answered: Answered, keys: dict[tuple[tuple[str, str], ...], int]) -> dict[str, Any]:
    """An answer as JSON values. keys: allowed answers as written, with their labels -> number."""
    verdict = answered.verdict
    allowed = tuple(answered.answers.items())
    cut = "…" if len(verdict.raw) > LONGEST_ANSWER else ""
    share = verdict.share(verdict.label)
    return {
        "question": answered.question,
        "probe": answered.probe,
        **({} if answered.frame is None else {"frame": answered.frame}),
        "label": verdict.label,
        "key": keys.setdefault(allowed, len(keys)),
        "raw": verdict.raw[:LONGEST_ANSWER] + cut,
        **({} if share is None else {"probability": share}),
    }
