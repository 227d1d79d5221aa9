"""`report`: the site, which can be written over by the next report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from itertools import chain
from pathlib import Path
from typing import Any

from ...progress import Progress, silent
from ...storage import write_json, write_whole
from ..core import without_nan
from ..engine.run import RunError
from ..publishing.scrubbing import Scrubber
from ..results.changes import reported_quality
from ..results.contents import RunContents, read_contents
from ..results.leaderboard import Leaderboard, leaderboards
from ..results.scoring import ScoreSettings
from .exports import FOLDER, check_forms, export
from .exports import REPORT as MANIFEST
from .gallery import FEW_IMAGES, THUMBNAILS, WHOLE, comparison, gallery, make_thumbnails
from .pages import by_suite, public, render_pages
from .players import CLIPS, copy_clips

FORMAT = "counterprior report 1"


def write_report(
    runs: Sequence[Path],
    out: Path,
    score: ScoreSettings | None = None,
    title: str = "counterprior",
    exports: Sequence[str] = (),
    dataset: str = "",
    progress: Progress = silent,
    bases: Mapping[Path, Path] | None = None,
    full_size: bool | None = None,
    margins: Mapping[str, float] | None = None,
    judge_names: Mapping[str, str] | None = None,
) -> Path:
    """Scores judged runs and writes the site to a folder; returns its first page.

    exports: names of `exports.FORMS` to write as well; dataset: NAMESPACE/NAME@vX.Y.Z of the
    benchmark on the Hub, for the form `hub`; bases, margins: as in `read_contents`; full_size:
    whether to include images at full size, None for at most `FEW_IMAGES`; judge_names: description
    of a judge -> its name in the study's file. An existing report is written over, its thumbnails
    are reused. The same runs give the same bytes. Raises RunError for a folder with anything else,
    and for runs that can't be compared.
    """
    score = score or ScoreSettings()
    hub = check_forms(exports, dataset)
    _claim(out)
    contents = read_contents(runs, score, bases, margins, progress)
    boards = leaderboards(contents, score.across_judges)
    if full_size is None:
        full_size = sum(len(run.run.cases()) for run in contents) <= FEW_IMAGES
    thumbnails = make_thumbnails(contents, out, progress, full_size)
    full_images = [name.replace(THUMBNAILS, WHOLE) for name in thumbnails.values() if full_size]
    clips = copy_clips(contents, out)
    galleries = {run.slug: gallery(run, thumbnails, clips, full_size) for run in contents}
    for suite, members in by_suite(contents).items():
        if len(members) > 1:
            galleries[suite] = comparison(members, [galleries[run.slug] for run in members])
    written = {*thumbnails.values(), *full_images, *clips.values()}
    scrubber = Scrubber(runs)
    pages = render_pages(title, contents, boards, galleries, judge_names)
    scrubbed = ((name, scrubber.page(text)) for name, text in pages.items())
    files = {digest: out / name for digest, name in thumbnails.items()}
    for name, text in chain(scrubbed, export(exports, contents, hub, files)):
        write_whole(out / name, text)
        written.add(name)
    _remove_stale(out, written)
    write_json(out / MANIFEST, scrubber.value(without_nan(_manifest(title, contents, boards))))
    return out / "index.html"


def _claim(out: Path) -> None:
    """Marks a new folder as a report, so that an interrupted command can continue."""
    if (out / MANIFEST).exists():
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError(
            f"{out} has other files and is not a report: choose another --out",
            code="folder-not-empty",
        )
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / MANIFEST, json.dumps({"format": FORMAT}) + "\n")


def _remove_stale(out: Path, written: Set[str]) -> None:
    """Deletes pages, thumbnails, clips and exports of runs that are no longer reported."""
    of_images = [path for folder in (THUMBNAILS, WHOLE, CLIPS) for path in out.glob(f"{folder}/*")]
    for path in (*out.glob("*.html"), *of_images, *out.glob(f"{FOLDER}/**/*")):
        if path.is_file() and path.relative_to(out).as_posix() not in written:
            path.unlink()


def _manifest(
    title: str, runs: Sequence[RunContents], boards: Sequence[Leaderboard]
) -> dict[str, Any]:
    """The report's numbers for a machine."""
    return {
        "format": FORMAT,
        "title": title,
        "results": [public(judged.result, run.name) for run in runs for judged in run.judged],
        "quality": [
            report.to_json()
            for suite in sorted({run.suite.name for run in runs})
            for report in reported_quality([run for run in runs if run.suite.name == suite])
        ],
        "leaderboards": [
            {
                "suite": board.suite,
                "judge": board.judge,
                "score": board.headline.score,
                "better": board.headline.better,
                "standings": [
                    {"name": s.name, "value": s.score.value, "groups": s.groups.split()}
                    for s in board.standings
                ],
                "comparisons": [pair.to_json() for pair in board.comparisons],
            }
            for board in boards
        ],
    }
