"""`report`: the site, written so that it can be written again."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...progress import Progress, silent
from ...storage import write_whole
from ..core import without_nan
from ..engine.run import RunError
from ..results.contents import RunContents, read_contents
from ..results.leaderboard import Leaderboard, leaderboards
from ..results.risk import risk_curves
from ..results.scoring import ScoreSettings
from .exports import FOLDER, Dataset, check_forms, export
from .gallery import THUMBNAILS, gallery, make_thumbnails
from .pages import Site, public, render_pages

MANIFEST = "report.json"
FORMAT = "counterprior report 1"


@dataclass(frozen=True)
class ReportSettings:
    """What to report."""

    runs: tuple[Path, ...]
    """Folders of judged runs."""
    out: Path
    """Folder of the site."""
    score: ScoreSettings = field(default_factory=ScoreSettings)
    """How the runs are scored."""
    title: str = "counterprior"
    """Of the site."""
    export: tuple[str, ...] = ()
    """Forms of others to write as well, of `exports.FORMS`."""
    dataset: str = ""
    """NAMESPACE/NAME@vX.Y.Z of the benchmark on the Hub, for its form."""


def write_report(settings: ReportSettings, progress: Progress = silent) -> Path:
    """Scores the runs and writes the site; returns its first page.

    A site that is there is written over, thumbnails that are there are kept. The same runs give the
    same bytes. Raises RunError for a folder that is no site of ours, and for runs that can't be
    compared.
    """
    dataset = Dataset.parse(settings.dataset) if settings.dataset else None
    check_forms(settings.export, dataset)
    _claim(settings.out)
    runs = read_contents(settings.runs, settings.score)
    boards = leaderboards(runs, settings.score.across_judges)
    thumbnails = make_thumbnails(runs, settings.out, progress)
    report = Site(
        title=settings.title,
        runs=runs,
        boards=boards,
        curves={
            suite: risk_curves([run for run in runs if run.suite.name == suite])
            for suite in {run.suite.name for run in runs}
        },
        galleries={run.slug: gallery(run, thumbnails) for run in runs},
    )
    files = render_pages(report) | export(settings.export, runs, dataset)
    for name, text in files.items():
        (settings.out / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(settings.out / name, text)
    _remove_stale(settings.out, {*files, *thumbnails.values()})
    write_whole(settings.out / MANIFEST, _manifest(settings.title, runs, boards))
    return settings.out / "index.html"


def _claim(out: Path) -> None:
    """Marks a new folder as a site, so that a run that is killed can go on."""
    if (out / MANIFEST).exists():
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError(f"{out} is not empty and no report: choose another --out")
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / MANIFEST, json.dumps({"format": FORMAT}) + "\n")


def _remove_stale(out: Path, kept: Set[str]) -> None:
    """Pages, thumbnails and exports of runs that are no longer reported."""
    for path in (*out.glob("*.html"), *out.glob(f"{THUMBNAILS}/*"), *out.glob(f"{FOLDER}/**/*")):
        if path.is_file() and path.relative_to(out).as_posix() not in kept:
            path.unlink()


def _manifest(title: str, runs: Sequence[RunContents], boards: Sequence[Leaderboard]) -> str:
    """The report's numbers for a machine; undefined ones are null."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "title": title,
        "results": [public(judged.result, run.name) for run in runs for judged in run.judged],
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
                "comparisons": [comparison.to_json() for comparison in board.comparisons],
            }
            for board in boards
        ],
    }
    return json.dumps(without_nan(content), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
