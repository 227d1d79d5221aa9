"""The README of a publication, rendered from what `publication.json` holds."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from itertools import zip_longest
from pathlib import Path
from string import Template
from typing import Any

import yaml

from ...printable import printable
from ...release import CHECKSUMS, Problem, sha256_file
from ...schema import CANARY, SPLIT
from ...storage import write_json, write_whole
from ..results.marks import MARKS, legends, signs
from ..stats.intervals import wilson
from ..suites import open_suite
from .publication import (
    CONFIGS,
    PUBLICATION,
    Publication,
    PublishedHeadline,
    PublishedRun,
)

CARD = "README.md"
WRITTEN = (CARD, PUBLICATION, CHECKSUMS)
"""Files that state the version and so are written anew by the stamp."""
SUMMARIES = {
    "images": "every case with its image or text, or why there is none",
    "verdicts": "what each judge said of each image, word for word",
    "scores": "every score with n, 95 % interval, and what was excluded",
}


def write_card(
    publication: Publication, folder: Path, unchanged: dict[str, Any] | None = None
) -> None:
    """Writes the card and the checksums of a folder after all other files.

    unchanged: entries of `checksums.json` for unchanged files, which are not read again.
    """
    write_whole(folder / CARD, render_card(publication))
    files = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if name != CHECKSUMS:
            entry = {"sha256": sha256_file(path), "bytes": path.stat().st_size}
            files[name] = entry if name in WRITTEN else (unchanged or {}).get(name) or entry
    write_json(folder / CHECKSUMS, {"version": publication.version, "files": files})


def card_problems(root: Path, publication: Publication) -> Iterator[Problem]:
    """Yields the first line of the card that differs from the rendered one."""
    lines = (root / CARD).read_text("utf-8", "replace").splitlines()
    for number, (line, rendered) in enumerate(
        zip_longest(lines, render_card(publication).splitlines()), 1
    ):
        if line != rendered:
            yield Problem(CARD, f"is not what {PUBLICATION} renders", field=f"line {number}")
            return


def render_card(publication: Publication) -> str:
    """The README with its YAML: the same facts always give the same text."""
    template = resources.files(__package__).joinpath("card.md")
    text = Template(template.read_text("utf-8")).substitute(_values(publication))
    return printable(f"---\n{_front_matter(publication)}---\n\n{text}")


def count_text(publication: Publication) -> str:
    """How many images and texts a publication holds, in words."""
    texts = sum(run.texts for run in publication.runs)
    images = sum(run.images.get("made", 0) for run in publication.runs) - texts
    return f"{images:,} images" + (f" and {texts:,} texts" if texts else "")


def _values(publication: Publication) -> dict[str, str]:
    runs = publication.runs
    where = publication.repo_id or "FOLDER"
    return {
        "title": publication.repo_id.rpartition("/")[2] or "counterprior results",
        "version": publication.version,
        "repo_id": where,
        "revision": f', revision="{publication.tag}"' if publication.changes else "",
        "spec": publication.address or where,
        "made": count_text(publication),
        "cases": f"{sum(run.cases for run in runs):,}",
        "generators": str(len({run.generator for run in runs})),
        "suites": ", ".join(f"`{suite}`" for suite in sorted({run.suite for run in runs})),
        "results": _results(publication),
        "format": _format(publication),
        "license": publication.license,
        "runs": _runs(publication),
        "judges": _judges(publication),
        "changes": _changes(publication),
        "suite": runs[0].suite,
        "generator": runs[0].generator,
        "canary": CANARY,
        "made_with": ", ".join(f"{n} {v}" for n, v in sorted(publication.made_with.items())),
    }


def _results(publication: Publication) -> str:
    """The headline score of every run under every judge, a table a suite."""
    tables = []
    for suite in sorted({run.suite for run in publication.runs}):
        header = ["generator", "judge", "score", "value", "95 % CI", "n", "excluded"]
        rows = [
            [plain_cell(run.generator), plain_cell(judge.name), *headline_cells(judge.headline)]
            for run in publication.runs
            if run.suite == suite
            for judge in run.judges
        ]
        better = next(
            j.headline for run in publication.runs if run.suite == suite for j in run.judges
        )
        marks = [
            name
            for run in publication.runs
            if run.suite == suite
            for judge in run.judges
            for name in judge.headline.marks
        ]
        texts = [
            f"### {suite}",
            f"`{better.score}`, {better.better} is better; 95 % for other "
            f"{open_suite(suite).population}.",
            table(header, rows),
            *legends(name for name in marks if name in MARKS),
        ]
        tables.append("\n\n".join(texts))
    return "\n\n".join(tables)


def _format(publication: Publication) -> str:
    has_clips = any(run.clips for run in publication.runs)
    has_texts = any(run.texts for run in publication.runs)
    additions = (CLIPS if has_clips else "") + (TEXTS if has_texts else "")
    return _image_format(publication) + additions


CLIPS = (
    " Clips are in `video`, as MP4: judged MP4 files byte for byte, others encoded anew, which "
    "their `sha256` then tells. `frames` and `rate` are of the judged clip; `frame` in verdicts "
    'counts from 0. To load them without a decoder: `images.cast_column("video", '
    "Video(decode=False))`."
)


TEXTS = (
    " Texts that were made in place of images are in `text`, word for word: `sha256` is the digest "
    "of their UTF-8. `right_labels` is a JSON text: question -> its right answer."
)


def _image_format(publication: Publication) -> str:
    if publication.image_format == "png":
        return (
            "The images are the judged files, byte for byte: `sha256` is the digest of the bytes "
            "in `image`, and the one that verdicts refer to."
        )
    if not publication.lossy:
        return (
            "The images are lossless WebP: every pixel is the judged one. `sha256` is the digest "
            "of the judged file, which verdicts refer to; `pixels_sha256` that of its pixels, "
            "which the published image must give too."
        )
    return (
        f"**The images are lossy: WebP of quality {publication.quality}.** They are not the pixels "
        f"that were judged, and another judge may see other things. `sha256` and `pixels_sha256` "
        f"are of the judged file, which verdicts refer to, and not of the published one."
    )


def _runs(publication: Publication) -> str:
    header = ["generator", "suite", "identity", "rows", "seeds", "images", "release"]
    return table(header, [_run(run) for run in publication.runs])


def _run(run: PublishedRun) -> list[str]:
    release = run.data or " ".join(v[:12] for v in run.release.values()) or "a local build"
    rows = f"{run.rows:,}" + (f" (of --limit {run.limit:,})" if run.limit else "")
    rows += f", {plain_cell(run.where)}" if run.where else ""
    return [
        plain_cell(run.generator),
        f"`{run.suite}`",
        _identity(run.identity),
        rows,
        str(run.seeds),
        ", ".join(f"{n:,} {status}" for status, n in run.images.items()),
        f"{plain_cell(release)}, rows {run.rows_sha256[:12]}",
    ]


def _judges(publication: Publication) -> str:
    header = ["judge", "identity", "run", "asked", "no label", "parsed", "first named"]
    rows = []
    for run in publication.runs:
        for judge in run.judges:
            card = judge.card
            failures = ", ".join(f"{n:,} {label}" for label, n in card["failures"].items())
            shares = [
                "undefined" if card[name] is None else f"{card[name]:.3f}"
                for name in ("parse_rate", "first_named")
            ]
            start = [plain_cell(judge.name), _identity(judge.identity), f"`{run.name}`"]
            rows.append([*start, f"{card['asked']:,}", failures or "none", *shares])
    return table(header, rows)


def _changes(publication: Publication) -> str:
    if not publication.changes:
        return "Not released yet."
    lines = []
    for change in publication.changes:
        lines.append(
            f"* {change.version} ({change.date}): " + " ".join(map(plain_cell, change.notes))
        )
    return "\n".join(lines)


def _identity(identity: dict[str, str]) -> str:
    return plain_cell(", ".join(f"{name}={value}" for name, value in identity.items()))


def _front_matter(publication: Publication) -> str:
    """What the Hub reads of the card, in YAML; without sizes, as in the card of a release."""
    name = publication.repo_id.rpartition("/")[2] or "counterprior results"
    data = {
        "pretty_name": name,
        "language": ["en"],
        "license": publication.license,
        "task_categories": ["text-to-image", "image-to-image"],
        "tags": ["benchmark-results", "counterprior", "synthetic"],
        "size_categories": [size_category(sum(run.cases for run in publication.runs))],
        "configs": [_config(publication, config) for config in CONFIGS],
    }
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)


def _config(publication: Publication, config: str) -> dict[str, Any]:
    files = [file.file for file in publication.of(config)]
    entry: dict[str, Any] = {
        "config_name": config,
        "data_files": [{"split": SPLIT, "path": files}],
        "version": publication.version,
        # `datasets` keys its cache of a local folder on this text, not on the data.
        "description": f"{SUMMARIES[config]}; made from {publication.made_from[:16]}",
    }
    return entry | ({"default": True} if config == "images" else {})


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def headline_cells(h: PublishedHeadline) -> list[str]:
    """Score, value, 95 % interval, n, and what was excluded, as cells of a table."""
    ends = "-" if h.low is None else f"{_number(h.low, h.unit)} to {_number(h.high, h.unit)}"
    left_out = ", ".join(f"{n:,} {label}" for label, n in sorted(h.excluded.items()) if n)
    value = f"{_number(h.value, h.unit)}{' %' if h.unit == '%' and h.value is not None else ''}"
    value += signs(name for name in h.marks if name in MARKS)
    return [f"`{h.score}`", value, ends, f"{h.n:,}", left_out or "nothing"]


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "undefined"
    return f"{value:.1f}" if unit == "%" else f"{value:.3f}"


def plain_cell(text: str) -> str:
    """A text that can't leave its cell of a table, nor become markup."""
    plain = " ".join(printable(text).split())
    for sign in "\\`|<>[]*_$!":
        plain = plain.replace(sign, f"\\{sign}" if sign not in "<>" else f"&#{ord(sign)};")
    return plain


def share_cell(part: int, whole: int) -> str:
    """A percentage with Wilson's 95 % interval, e.g. `0.0 % [0.0, 8.8]`; `whole` is not 0."""
    low, high = wilson(part, whole)
    return f"{100 * part / whole:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def size_category(rows: int) -> str:
    """The Hub's name for a number of rows."""
    bounds = [(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")]
    return next((name for bound, name in bounds if rows < bound), "100K<n<1M")
