"""`evaluate` and `prompts`: the Python API behind `counterprior.evaluate`."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..agents.budget import Spending
from ..errors import UsageError
from ..images import encode_png
from ..parsing import write_rows
from ..progress import Progress, silent
from ..storage import write_whole
from .clips.frames import USUAL
from .core import ALL, Case, Generator, Judge, Outcome, Question, Score, describe
from .engine.costs import Cost
from .engine.data import RowChoice, only_cases, read_rows, sample_rows
from .engine.evaluation import RunSettings, source_image
from .engine.steps import JudgeSettings, evaluate_run
from .generators import as_generator
from .judges import as_judge
from .results.judge_card import JudgeCard
from .results.marks import MARKS
from .results.scoring import JudgedRun, ScoreSettings, score_run
from .results.tables import score_rows, score_table
from .studies.judge_check import FOLDER, CheckFirst
from .suites import open_suite

if TYPE_CHECKING:
    import pandas as pd
    from PIL.Image import Image

DATA = "dist/counterprior"
"""Where `counterprior build` puts a release, unless told otherwise."""
SEEDS = 4
"""Seeds of a row."""


@dataclass(frozen=True)
class PromptCase:
    """An image to make elsewhere."""

    id: str
    """Id of the case: what a manifest or mapping names it by."""
    prompt: str
    """Text to draw, or edit instruction."""
    seed: int
    """Seed to generate with."""
    file: str
    """File name that `folder:` looks for."""
    row: str
    """Id of the row."""
    variant: str
    """Name of the row's prompt."""
    source: Image | None = field(default=None, repr=False, compare=False)
    """Image to edit; None for text-to-image."""


def prompts(
    suite: str,
    *,
    data: str = DATA,
    revision: str | None = None,
    limit: int | None = None,
    only: str | Path | Sequence[str] | None = None,
    seeds: int = 1,
    variants: Sequence[str] = (),
) -> list[PromptCase]:
    """Lists every image that a suite asks for, in the order of the config, to be made anywhere.

    Rows whose seed image is missing from the release are left out.

    Give the images back to `evaluate` as a mapping from `id`, or as a folder of files named `file`.
    only: `FIELD=VALUE` of the rows, e.g. ``pair_type=A-A``, or a file of the prompts to list, one
    id a line, e.g. a short form; or several of these. variants: only these of each row. Raises
    UsageError for an unknown suite, field or variant, a limit below 1 or seeds outside 1 to 4,
    ReleaseError for data that can't be read.
    """
    _check_sample(limit, seeds)
    opened = open_suite(suite)
    opened.check_variants(variants)
    sampled = read_rows(data, suite, revision)
    sources = {}
    cases: list[Case] = []
    chosen = RowChoice.of(_texts(only))
    for row in sample_rows(chosen.rows(sampled), limit, opened.together):
        if not row.lacks_source:
            sources[row.id] = source_image(row)
            cases += (c for c in opened.cases(row, seeds) if opened.draws(c.variant, variants))
    if chosen.file is not None:
        cases = only_cases(chosen.file, limit, cases)
    return [
        PromptCase(
            case.id,
            case.prompt,
            seed=case.seed,
            file=case.file,
            row=case.row,
            variant=case.variant,
            source=sources[case.row],
        )
        for case in cases
    ]


def write_prompts(out: Path, suite: str, **choice: Any) -> str:
    """Writes the cases of a suite as JSONL, and source images beside it; returns a summary.

    Takes the arguments of `prompts`. A source is `sources/SHA256.png`, relative to the file.
    """
    rows = []
    prompt_cases = prompts(suite, **choice)
    for case in prompt_cases:
        row = {name: value for name, value in vars(case).items() if name != "source"}
        if case.source is not None:
            data = encode_png(case.source)
            name = f"sources/{hashlib.sha256(data).hexdigest()}.png"
            if not (out.parent / name).exists():
                write_whole(out.parent / name, data)
            row["source"] = name
        rows.append(row)
    write_rows(out, rows)
    return f"{len(rows):,} images to make, listed in {out}"


class Evaluated:
    """Result of an evaluation; shows as a table in a terminal and in a notebook.

    With several judges, `scores`, `outcomes` and `card` are of the first; `judge` chooses another.
    """

    def __init__(
        self,
        judged: Sequence[JudgedRun],
        settings: ScoreSettings,
        spending: Spending,
        keep: object = None,
    ) -> None:
        """settings: settings of its scores. keep: object to keep alive, e.g. a temporary folder."""
        self._judged = list(judged)
        self._settings = settings
        self.spending = spending
        """Total cost of paid calls."""
        self._keep = keep

    @property
    def judges(self) -> list[str]:
        """Names of the judges."""
        return [judged.result.judge for judged in self._judged]

    def judge(self, name: str) -> Evaluated:
        """The result of one judge, by name, kind or ``kind:model``.

        Raises UsageError for an unknown name, or one that fits several judges.
        """
        chosen = [judged for judged in self._judged if name in judged.log.names]
        if len(chosen) != 1:
            problem = "several judges are" if chosen else "no judge is"
            raise UsageError(
                f"{problem} {name!r}: choose from {', '.join(self.judges)}", code="unknown-name"
            )
        settings = replace(self._settings, judges=(chosen[0].log.root.name,))
        return Evaluated(chosen, settings, self.spending, self._keep)

    @property
    def folder(self) -> Path:
        """The run's folder; a temporary folder is deleted with this object."""
        return Path(self._judged[0].result.folder)

    @property
    def scores(self) -> dict[str, Score]:
        """The scores of the whole suite, by name."""
        return self._judged[0].whole

    @property
    def card(self) -> JudgeCard:
        """Identity and behavior of the judge."""
        return self._judged[0].result.card

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """Every case with its verdicts, by case id."""
        return self._judged[0].outcomes

    @property
    def failures(self) -> dict[str, dict[str, int]]:
        """Counts by reason: images that were not made, and questions without a label, by judge."""
        images = Counter(o.image for o in self.outcomes if o.image != "made")
        by_reason = {"images": dict(sorted(images.items()))}
        return by_reason | {j.result.judge: dict(j.result.card.failures) for j in self._judged}

    @property
    def notes(self) -> list[str]:
        """Reservations about the scores, e.g. code without a version or repeated images."""
        return list(dict.fromkeys(note for j in self._judged for note in j.result.notes))

    def to_pandas(self) -> pd.DataFrame:
        """One line a score, group and judge; undefined numbers are NaN."""
        import pandas as pd

        return pd.DataFrame(score_rows([judged.result for judged in self._judged]))

    def report(self, out: str | Path) -> Path:
        """Writes a static site with tables, plots and every image; returns its first page."""
        from .report.site import write_report

        return write_report([self.folder], Path(out), self._settings)

    def __repr__(self) -> str:
        return score_table([judged.result for judged in self._judged])

    def _repr_html_(self) -> str:
        columns = ["score", "value", "low", "high", "n", "excluded", "judge"]
        scores = self.to_pandas()
        results = [judged.result for judged in self._judged]
        marks = [name for result in results for name in result.marks]
        if marks:
            columns.insert(2, "marks")
        table: str = scores[scores.group == ALL][columns].to_html(index=False, na_rep="undefined")
        return table + "".join(
            f"<p>{name}: {MARKS[name].legend}</p>" for name in dict.fromkeys(marks)
        )


def evaluate(
    suite: str,
    generator: str | Generator | Callable[..., Any] | Mapping[Any, Any],
    judge: str | Judge | Callable[[Question], Any] | Sequence[Any],
    *,
    data: str = DATA,
    revision: str | None = None,
    limit: int | None = None,
    only: str | Path | Sequence[str] | None = None,
    seeds: int = 1,
    probes: Sequence[str] = (),
    persona: str = "standard",
    frames: str = USUAL,
    out: str | Path | None = None,
    gold: str | Path | None = None,
    unchecked: bool = False,
    identity: str | Mapping[str, str] = "",
    labels: str | Path | None = None,
    concurrency: int = 8,
    max_usd: float | None = None,
    retry_failed: bool = False,
    prices: str | Path | None = None,
    progress: Progress = silent,
) -> Evaluated:
    """Makes the images of a suite, asks a judge about each, and scores the generator.

    suite: a config, e.g. ``t2i_correctness``. generator: a spec, a function ``(prompt, seed)`` or
    ``(prompt, seed, source)`` that returns a PIL image or a path, a mapping from case id to image
    or path, or an object of the protocol `Generator`. judge: a spec, a function of a `Question`, an
    object of the protocol `Judge`, or several of these. identity: version of such functions and
    mappings, one text for all or ``{"generator": ..., "judge": ...}``; without it the result notes
    that they have no version.

    only: `FIELD=VALUE` of the rows that are used, e.g. ``pair_type=A-A``, or a file of the prompts,
    one id a line, e.g. a short form of `study items`; or several of these.

    out: folder of the run, where the same call resumes; None for a temporary one, which is deleted
    with the result. probes: controls of the judge, of ``mirror`` and ``swap``. frames: which frames
    of a clip are judged, e.g. ``rate=2``. gold: folder of `judge-check`, None for ``out/gold``:
    judges are checked there on gold images before they judge, unless `unchecked`. labels: file of
    human labels. max_usd: cap on all costs. retry_failed: whether calls are made once more whose
    rejection by a server is recorded.

    Raises CounterpriorError for problems that the caller can mend: UsageError for a bad argument,
    RunFailed if not one image could be made, JudgeFailed if every call of a judge failed.
    """
    _check_sample(limit, seeds)
    versions = _versions(identity)
    judges = _opened(judge, versions["judge"])
    keep = _Temporary() if out is None else None
    root = keep.root if keep else Path(out or ".")
    judge_settings = JudgeSettings(
        (probes,) if isinstance(probes, str) else tuple(probes), persona, revision, frames
    )
    check = CheckFirst(Path(gold or root / FOLDER), judges, judge_settings, progress)
    done = evaluate_run(
        RunSettings(
            suite,
            data,
            out=root,
            revision=revision,
            seeds=seeds,
            limit=limit,
            only=_texts(only),
        ),
        as_generator(generator, versions["generator"]),
        judges=judges,
        settings=judge_settings,
        cost=Cost(concurrency, max_usd, Path(prices) if prices else None, retry_failed),
        progress=progress,
        before=None if unchecked else check,
    )
    done.run.check_made()
    judge_names = tuple(log.root.name for log, _ in done.judged)
    settings = ScoreSettings(labels=Path(labels) if labels else None, judges=judge_names)
    return Evaluated(score_run(root, settings), settings, done.spending, keep)


class _Temporary:
    """A temporary folder that is deleted with the last result that holds this object."""

    def __init__(self) -> None:
        # Not TemporaryDirectory: it warns unless it is closed, and nobody closes a result.
        self.root = Path(tempfile.mkdtemp(prefix="counterprior-"))
        weakref.finalize(self, shutil.rmtree, self.root, ignore_errors=True)


def _texts(only: str | Path | Sequence[str] | None) -> list[str]:
    return [str(only)] if isinstance(only, str | Path) else list(only or ())


def _check_sample(limit: int | None, seeds: int) -> None:
    if limit is not None and limit < 1:
        raise UsageError(
            f"limit={limit}: give at least 1 row, or None for all", code="out-of-range"
        )
    if not 1 <= seeds <= SEEDS:
        raise UsageError(
            f"seeds={seeds}: a row has {SEEDS} seeds, give 1 to {SEEDS}", code="out-of-range"
        )


def _versions(identity: str | Mapping[str, str]) -> Mapping[str, str]:
    kinds = ("generator", "judge")
    if isinstance(identity, str):
        return dict.fromkeys(kinds, identity)
    if unknown := sorted(set(identity) - set(kinds)):
        raise UsageError(
            f"identity: unknown key {unknown[0]!r}: choose from {', '.join(kinds)}",
            code="unknown-name",
        )
    return {name: identity.get(name, "") for name in kinds}


def _opened(judge: Any, version: str) -> list[str | Judge]:
    """Opens judges that are values; specs stay, because paid judges need the run's cap."""
    judges = list(judge) if isinstance(judge, (list, tuple)) else [judge]
    if not judges:
        raise UsageError("no judge: give at least one", code="missing-option")
    opened = [
        value if isinstance(value, str) else as_judge(value, identity=version) for value in judges
    ]
    identities: list[str | dict[str, str]] = []
    for value in opened:
        identity = value if isinstance(value, str) else value.identity()
        if identity in identities:
            name = identity if isinstance(identity, str) else describe(identity)
            raise UsageError(
                f"two judges are {name}, so their verdicts would be mixed up; give functions "
                f"other names, and objects another identity()",
                code="duplicate-id",
            )
        identities.append(identity)
    return opened
