"""`score`: scores of a generator from a run's verdicts, with everything that qualifies them.

Only `write_results` writes; the command `score` calls it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import DataError
from ...human_labels import (
    Label,
    check_labels,
    draw_note,
    labels_of_images,
    read_some_labels,
    single_labels,
)
from ...printable import reasons, shortened
from ...storage import write_whole
from ..clips.frames import USUAL, FrameChoice
from ..core import ALL, FAILURES, KNOWN_TRUTH, ORIGINAL, Case, Outcome, Score, describe, without_nan
from ..engine.evaluation import outcomes_of
from ..engine.run import CaseResult, Run, RunError, RunHeader
from ..methods.candidates import chose
from ..stats.agreement import krippendorff_alpha
from ..stats.comparison import false_discovery
from ..stats.estimate import value_text
from ..store.verdicts import Answered, VerdictLog, check_silence, silence
from ..suites import SUITES, open_gold, open_suite
from ..suites.base import Suite
from ..suites.scoring import factor_of
from ..suites.spatial import SpatialSuite
from .clips import clip_scores
from .corrected import (
    YOUDEN,
    corrected_by_card,
    corrected_by_gold,
    corrected_by_labels,
    corrected_by_real,
    read_cards,
)
from .detectability import corrected_if_seen, read_detector_check
from .judge_card import (
    HumanAgreement,
    JudgeCard,
    Labels,
    comparable_of,
    judge_card,
    prompt_versions,
)
from .judge_check import JudgeCheck, check_for, check_marks, exclude_misjudged, find_check
from .latent import LatentTruth, latent_truth
from .marks import JUDGE_CHOSE, UNCHECKED, marks_of

SCORES = "scores.json"
SAME_ANSWERS = 0.9
"""Share of same answers under a control below which a note says that scores are attenuated."""


@dataclass(frozen=True)
class ScoreSettings:
    """How runs are scored."""

    labels: Path | None = None
    """Human labels of some of the cases."""
    card: Path | None = None
    """scores.json of another run, whose labels give the same judge's error rates."""
    gold: Path | None = None
    """Folder of `judge-check`: items that misled a judge there are left out, e.g. pairs, and scores
    are corrected for what a detector missed there. None for the run's own check, which `eval` and
    studies write."""
    judges: tuple[str, ...] = ()
    """Only these judges, see `Run.chosen_judges`; all where empty."""
    across_judges: bool = False
    """Compare runs in one table even if their judges differ."""
    partial: bool = False
    """Score runs that are not judged completely, too."""
    latent: bool = False
    """Also estimate scores from all judges and people together, see `latent`."""
    groups: bool = True
    """Also score the groups of each run's cases, which takes most of the time."""


@dataclass(frozen=True)
class Result:
    """The scores of one run under one judge."""

    run: RunHeader
    folder: str
    judge: str
    """Short name of the judge; unique in the run."""
    card: JudgeCard
    """Identity and behaviour of the judge."""
    scores: Sequence[Score]
    """All of them, the whole config first."""
    cases: int
    """Number of images that the run plans."""
    alpha: Mapping[str, float]
    """Question -> Krippendorff's alpha of all judges of the run, and of people if labeled;
    only where two or more answered it."""
    notes: tuple[str, ...] = ()
    """Caveats for the reader of the scores."""
    doubts: tuple[str, ...] = ()
    """Notes that say why nothing of this judge can be believed; each is among the notes, too."""

    @property
    def marks(self) -> tuple[str, ...]:
        """Marks of its scores, each once."""
        return marks_of(self.scores)

    def check_answered(self) -> None:
        """Raises JudgeFailed where the judge was asked and gave no answer that counts."""
        check_silence(f"{self.folder}: {self.judge}", self.card.failures, self.card.asked)

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        plain: dict[str, Any] = without_nan(vars(self))
        return plain


@dataclass(frozen=True)
class JudgedRun:
    """One run under one judge: its result and the outcomes behind it."""

    result: Result
    outcomes: Sequence[Outcome]
    """Every case with the judge's verdicts, by case id."""
    log: VerdictLog
    name: str = ""
    """Name of the run, unique in a report."""
    slug: str = ""
    """The same for file names and fragments."""
    check: JudgeCheck | None = None
    """Check of the judge on gold images; None if it was not checked."""

    @property
    def whole(self) -> dict[str, Score]:
        """The scores of the whole config, by name."""
        return {score.name: score for score in self.result.scores if score.group == ALL}


def score_run(
    root: Path,
    settings: ScoreSettings,
    several: bool = False,
    run: Run | None = None,
    known_answers: dict[Path, list[Answered]] | None = None,
) -> list[JudgedRun]:
    """The result of every judge of a run.

    several: whether the labels are of several runs. run: the same, where it is held already.
    known_answers: folder of a judge -> its answers about the present images, where they are read
    already; they are taken out. Raises RunError if it has no verdicts or is not complete, DataError
    for bad labels and for a card of none of its judges.
    """
    run = run or Run.open(root).held()
    logs = run.chosen_judges(settings.judges)
    if not settings.partial:
        run.check_complete()
    labels = run_labels(run, settings.labels, several)
    present, cases = run.present(), _cases(run, settings.groups)
    judged, cards = dict[Path, list[Outcome]](), dict[Path, JudgeCard]()
    for log in logs:
        answers = (known_answers or {}).pop(log.root, None) or log.present(present)
        judged[log.root] = outcomes_of(run, answers, present, cases)
        cards[log.root] = judge_card(log.identity, _suite_of(run, log), answers, labels)
        del answers  # the next judge's take their place
    if not settings.partial:
        replaced = len(run.replaced())
        for log in logs:
            choice = FrameChoice(log.identity.get("frames", USUAL))
            images = run.images()
            waiting = [
                o.case
                for o in judged[log.root]
                if o.image == "made"
                and (
                    not o.verdicts or (o.frames and len(o.frames) < _due(images[o.case.id], choice))
                )
            ]
            if replaced or waiting:  # e.g. after a kill of `judge`
                problem = (
                    f"{len(waiting):,} of {len(judged[log.root]):,} images are not judged"
                    f"{run.lacking(waiting, log)}"
                )
                if replaced:
                    problem = f"{replaced:,} images were replaced since they were judged"
                raise RunError(
                    f"{run.root}, {log.name}: {problem}; run `counterprior judge` again, or score "
                    f"the judged images with --partial",
                    code="incomplete-run",
                )
    alpha = _alpha(list(judged.values()), labels)
    run_notes = _run_notes(run, cases)
    latent = LatentTruth()
    if settings.latent:
        latent = _latent(run, logs, judged, labels, settings)
    scored = [
        _score(
            run,
            log,
            card=cards[log.root],
            judged=judged[log.root],
            labels=labels,
            alpha=alpha,
            latent=latent,
            run_notes=run_notes,
            settings=settings,
        )
        for log in logs
    ]
    return _with_differences(scored, alpha)


def _cases(run: Run, groups: bool) -> Sequence[Case]:
    """The cases to score, without their groups where no score needs them."""
    if groups or SUITES[run.header.suite].scores_by_group:
        return run.cases()
    return [replace(case, groups={}) for case in run.cases()]


class Believed(NamedTuple):
    """What the check of a judge on gold images leaves of its outcomes."""

    outcomes: Sequence[Outcome]
    note: str = ""
    """What is left out and why; empty if nothing is."""
    check: JudgeCheck | None = None
    """None if the judge was not checked."""


def believe(
    run: Run, log: VerdictLog, outcomes: Sequence[Outcome], gold: Path | None = None
) -> Believed:
    """Leaves out the outcomes of a run on which its judge can't be believed.

    gold: as in `ScoreSettings`. Raises DataError for a judge that is not in it, and for a suite
    without gold images.
    """
    suite = _suite_of(run, log)
    check, checking = _check_of(run, suite, log, gold), open_gold(suite.name)
    if check is None or checking is None:
        return Believed(outcomes)
    return Believed(*exclude_misjudged(outcomes, check, type(checking)), check)


def believed_outcomes(
    run: Run,
    log: VerdictLog,
    settings: ScoreSettings = ScoreSettings(),
    cases: Sequence[Case] | None = None,
) -> Sequence[Outcome]:
    """The outcomes behind the scores of a run under a judge, without scoring.

    run: held. cases: only these; all where None.
    """
    present = run.present()
    if cases is None:
        cases = _cases(run, settings.groups)
    else:
        wanted = {case.id for case in cases}
        present = {case: digest for case, digest in present.items() if case in wanted}
    outcomes = outcomes_of(run, log.present(present), present, cases)
    return believe(run, log, outcomes, settings.gold).outcomes


def with_outcomes(run: Run, results: Sequence[Result], settings: ScoreSettings) -> list[JudgedRun]:
    """Puts outcomes to the results of an earlier `score_run`; they are read when asked for.

    run: held.
    """
    logs = run.chosen_judges(settings.judges)
    return [
        JudgedRun(
            result,
            ReadLater(partial(believed_outcomes, run, log, settings)),
            log,
            check=_check_of(run, _suite_of(run, log), log, settings.gold),
        )
        for result, log in zip(results, logs, strict=True)
    ]


class ReadLater(Sequence[Outcome]):
    """The outcomes behind kept scores, read when somebody looks at them."""

    def __init__(self, read: Callable[[], Sequence[Outcome]]) -> None:
        self._read = read

    @cached_property
    def _outcomes(self) -> Sequence[Outcome]:
        return self._read()

    def __getitem__(self, place: Any) -> Any:
        return self._outcomes[place]

    def __len__(self) -> int:
        return len(self._outcomes)


LARGE = 10.0
"""Points of percent by which judges of the same images differ by a lot."""
FEW = 10
"""Images below which a difference of judges is not worth a note."""


def _with_differences(scored: Sequence[JudgedRun], alpha: Mapping[str, float]) -> list[JudgedRun]:
    """The judged runs, with a note in each of two whose headlines differ by a lot.

    Both are of the same images, so the difference is theirs, without any sampling error.
    """
    notes: dict[str, list[str]] = {}
    alphas = ", ".join(f"{name} {value_text(value, '1')}" for name, value in alpha.items())
    for first, second in combinations([run.result for run in scored], 2):
        name = open_suite(first.run.suite).headline.score
        values = [
            score
            for result in (first, second)
            for score in result.scores
            if (score.name, score.group) == (name, ALL)
        ]
        points = 100 / factor_of(values[0].unit) * abs(values[0].value - values[1].value)
        if not points >= LARGE or min(score.n for score in values) < FEW:
            continue
        note = (
            f"{first.judge} and {second.judge} differ on the same images by {points:.1f} points: "
            f"{name} is {' and '.join(value_text(s.value, s.unit) for s in values)} "
            f"(Krippendorff's alpha of all who answered: {alphas})"
        )
        for result in (first, second):
            notes.setdefault(result.judge, []).append(note)
    return [
        replace(
            run,
            result=replace(run.result, notes=(*run.result.notes, *notes.get(run.result.judge, ()))),
        )
        for run in scored
    ]


def score_runs(roots: Sequence[Path], settings: ScoreSettings) -> list[JudgedRun]:
    """The results of several runs, which must have been judged alike to stand in one table.

    Raises RunError if their rows differ, or, unless `across_judges`, their judges or prompts.
    """
    several = len(roots) > 1
    judged_runs = [judged for root in roots for judged in score_run(root, settings, several)]
    check_comparable([judged.result for judged in judged_runs], settings.across_judges)
    return judged_runs


def write_results(results: Sequence[Result]) -> None:
    """Writes each run's results into it, as scores.json."""
    for folder in dict.fromkeys(result.folder for result in results):
        of_folder = [result for result in results if result.folder == folder]
        write_whole(Path(folder) / SCORES, results_json(of_folder) + "\n")


def results_json(results: Sequence[Result]) -> str:
    """Results for a machine; undefined numbers are null."""
    return json.dumps([result.to_json() for result in results], indent=2, sort_keys=True)


def _due(image: CaseResult, choice: FrameChoice) -> int:
    """How many frames of a clip are judged; 0 of an image."""
    return len(choice.of(image.frames, image.fps)) if image.frames else 0


def run_labels(run: Run, labels: Path | None, several: bool) -> Labels:
    """Reads the labels that human annotators gave to the images of a run.

    Raises DataError for a case, question or label that the run doesn't have, by name, and for a
    file without labels.
    """
    return {} if labels is None else labels_of_run(run, read_some_labels(labels), several)


def labels_of_run(run: Run, labels: Sequence[Label], several: bool) -> Labels:
    """Of the labels of human annotators, those of a run's images. Raises as `run_labels`."""
    suite = open_suite(run.header.suite)
    answers = {
        question: [*worth.values, *worth.unscored, *FAILURES]
        for question, worth in suite.worths.items()
    }
    answers |= {question: list(allowed) for question, allowed in suite.human_questions.items()}
    images = {case: image.sha256 for case, image in run.images().items()}
    if several:  # runs of other suites have other cases
        labels = labels_of_images(labels, images, several)
    checked = check_labels(labels, {case.id for case in run.cases()}, answers)
    return single_labels(labels_of_images(checked, images, several))


def check_same_rows(folder: str, run: RunHeader, other_folder: str, other: RunHeader) -> None:
    """Raises RunError if two runs of a suite have other rows."""
    if run.rows_sha256 != other.rows_sha256:
        raise RunError(f"{folder} and {other_folder} are of different rows", code="different-rows")


def check_comparable(results: Sequence[Result], across_judges: bool = False) -> None:
    """Raises RunError if two runs of a suite have other rows or, unless `across_judges`, judges."""
    first: dict[str, tuple[Result, list[str]]] = {}
    for folder in dict.fromkeys(result.folder for result in results):
        of_run = [result for result in results if result.folder == folder]
        run = of_run[0].run
        judges = sorted(json.dumps(dict(r.card.comparable), sort_keys=True) for r in of_run)
        reference, expected = first.setdefault(run.suite, (of_run[0], judges))
        check_same_rows(folder, run, reference.folder, reference.run)
        if judges != expected and not across_judges:
            theirs = [r.judge for r in results if r.folder == reference.folder]
            raise RunError(
                f"{folder} was judged by {' and '.join(r.judge for r in of_run)} and "
                f"{reference.folder} by {' and '.join(theirs)}: their scores can't be "
                f"compared. Judge them alike, choose a judge with --judge, or pass --across-judges",
                code="different-judges",
            )


def _score(
    run: Run,
    log: VerdictLog,
    *,
    card: JudgeCard,
    judged: Sequence[Outcome],
    labels: Labels,
    alpha: Mapping[str, float],
    latent: LatentTruth,
    run_notes: Sequence[str],
    settings: ScoreSettings,
) -> JudgedRun:
    suite = _suite_of(run, log)
    notes, cases = _notes(run, log, judged, card, run_notes), len(judged)
    checking = open_gold(suite.name)
    believed, left_out, check = believe(run, log, judged, settings.gold)
    marks: tuple[str, ...] = ()
    if check is not None:
        marks = check_marks(judged, check)
        card = replace(card, gold={ALL: check.confusion, **check.parts})
    elif checking is not None and log.identity["kind"] not in KNOWN_TRUTH:
        notes.insert(0, "the judge was not checked on gold images")
        marks = (UNCHECKED,)
    scores = suite.score(believed)
    if 0 < len(believed) < len(judged):
        with_all, without = (_headline(suite, s) for s in (suite.score(judged), scores))
        left_out += f" ({suite.headline.score} {with_all} with all of them, {without} without)"
    notes += [left_out] if left_out else []
    doubts = [left_out] if check is not None and check.failed else []
    if doubt := silence(log.name, card.failures, card.asked):
        doubts.append(doubt)
        notes.append(doubt)
    if labels and settings.labels and (note := draw_note(settings.labels)):
        notes.append(note)
    scores += [*clip_scores(suite, believed), *corrected_by_labels(suite, believed, labels)]
    scores += latent.scores
    notes += latent.notes
    card = replace(card, latent=latent.recognized.get(log.name, {}))
    if check is not None and checking is not None:
        scores += corrected_by_gold(suite, judged, checking, check)
    if settings.card is not None:
        agreement = _card_of(run, log, card, settings.card)
        by_card = corrected_by_card(suite, believed, agreement)
        if by_card:
            notes.append(
                f"the error rates of {settings.card.name} are those of this run if the judge errs "
                f"as often on both, and the images labeled there are a uniform draw"
            )
        else:
            notes.append(
                f"{settings.card.name} corrects no score: its labels are all alike, or sensitivity "
                f"+ specificity - 1 of the judge is below {YOUDEN}"
            )
        scores += by_card
    if chose(run.root, run.header.generator, log):
        marks = (*marks, JUDGE_CHOSE)
    real = None
    if settings.gold is not None and suite.real_gold:
        real = settings.gold / suite.real_gold
    if real is not None and (real / SCORES).is_file():
        scores += corrected_by_real(suite, believed, _on_real(real, card))
        note = (
            f"scores `..._by_gold`: errors of {log.name} on the real images of {real} taken out, "
            f"misses included; right if it errs on these images as often"
        )
        if others := len(believed) - len(suite.asked_of_real_gold(believed)):
            note += (
                f"; of the {len(believed) - others:,} images whose prompt says only that one thing "
                f"is left of, right of, above or below another, and not of {others:,} more"
            )
        notes.append(note)
    elif real is not None and not _is_composed(suite):
        raise DataError(
            f"{settings.gold}: has no check on real images, which the scores of {suite.name} need",
            "create it with `counterprior judge-check --images DIR`",
            code="no-gold",
        )
    elif settings.gold is not None and _is_composed(suite):
        detector = read_detector_check(settings.gold / suite.name, card.comparable)
        if_seen, rates_note = corrected_if_seen(believed, detector, run)
        scores, notes = [*scores, *if_seen], [*notes, rates_note]
    result = Result(
        run=run.header,
        folder=str(run.root),
        judge=log.name,
        card=card,
        scores=[replace(score, marks=marks) for score in with_q_values(scores)],
        cases=cases,
        alpha=alpha,
        notes=tuple(notes),
        doubts=tuple(doubts),
    )
    return JudgedRun(result, believed, log, check=check)


def _suite_of(run: Run, log: VerdictLog) -> Suite[Any]:
    """The suite of a run, with the prompts of a judge's persona."""
    return open_suite(run.header.suite, log.identity.get("persona", "standard"))


def _latent(
    run: Run,
    logs: Sequence[VerdictLog],
    judged: Mapping[Path, Sequence[Outcome]],
    labels: Labels,
    settings: ScoreSettings,
) -> LatentTruth:
    """Scores from all models that judge, and people: by their labels, or as a judge of the run."""
    models = [log for log in logs if log.identity["kind"] != "human"]
    if not labels:
        labels = {
            (outcome.case.id, question): verdict.label
            for log in logs
            if log not in models
            for outcome in judged[log.root]
            for (question, probe), verdict in outcome.verdicts.items()
            if probe == ORIGINAL and not verdict.failed
        }
    checks = {}
    for log in models:
        suite = _suite_of(run, log)
        check = _check_of(run, suite, log, settings.gold)
        if check is not None:
            checks[log.name] = check
    suite = open_suite(run.header.suite)
    return latent_truth(suite, {log.name: judged[log.root] for log in models}, labels, checks)


def with_q_values(scores: Sequence[Score]) -> list[Score]:
    """Scores of groups with q-values: each over the groups of one column, e.g. all languages."""
    columns: dict[tuple[str, str], list[int]] = {}
    for place, score in enumerate(scores):
        if "=" in score.group:
            columns.setdefault((score.name, score.group.partition("=")[0]), []).append(place)
    adjusted = list(scores)
    for places in columns.values():
        q_values = false_discovery([scores[place].p_value for place in places])
        for place, q_value in zip(places, q_values, strict=True):
            adjusted[place] = replace(scores[place], q_value=q_value)
    return adjusted


def _headline(suite: Suite[Any], scores: Sequence[Score]) -> str:
    """Value of the headline of the whole config, as text."""
    (score,) = (s for s in scores if (s.name, s.group) == (suite.headline.score, ALL))
    return value_text(score.value, score.unit)


def _check_of(run: Run, suite: Suite[Any], log: VerdictLog, gold: Path | None) -> JudgeCheck | None:
    """Reads the check of the judge on gold images. Raises DataError for a judge that is not in
    `gold`, and for a suite without gold images."""
    if gold is not None and suite.real_gold:
        return None
    if gold is not None and not suite.gold:
        raise DataError(
            f"{suite.name} has no gold images that check its judges: leave out --gold",
            code="no-gold",
        )
    if not suite.gold:
        return None
    comparable = comparable_of(log.identity, prompt_versions(suite))
    if gold is not None:
        return check_for(gold / suite.gold, comparable)
    return find_check(run.root, comparable)


def _on_real(root: Path, card: JudgeCard) -> list[Outcome]:
    """Outcomes of the same judge on real images that readers labeled. Raises DataError if it was
    not asked about them with the same prompts."""
    run = Run.open(root).held()
    present, logs = run.present(), run.chosen_judges(())
    suite = open_suite(run.header.suite)
    for log in logs:
        # A suite may have prompts of further questions.
        if judge_card(log.identity, suite, ()).comparable.items() <= card.comparable.items():
            return outcomes_of(run, log.present(present), present)
    raise DataError(
        f"{root}: the judge was not asked about these images: run `counterprior judge-check "
        f"--images DIR` with it (asked: {', '.join(log.name for log in logs)})",
        code="judge-unchecked",
    )


def _is_composed(suite: Suite[Any]) -> bool:
    """Whether judges of the suite are checked on composed images, in place of gold images."""
    return isinstance(suite, SpatialSuite) and suite.can_be_composed


def _card_of(
    run: Run, log: VerdictLog, card: JudgeCard, path: Path
) -> Mapping[str, HumanAgreement]:
    """The agreement with people of the same judge, with the same prompts."""
    for comparable, agreement in read_cards(path):
        if comparable == card.comparable:
            return agreement
    raise DataError(
        f"{path}: no card of {log.name} with the prompts of {run.root}", code="nothing-judged"
    )


def _run_notes(run: Run, cases: Sequence[Case]) -> list[str]:
    """Notes about the images, whoever judged them."""
    notes = []
    if added := run.header.added:
        notes.append(
            f"{added:,} of {run.header.rows:,} rows: added to the release after v1, in all scores; "
            f"a run with `--where release=v1` is without"
        )
    notes += run.notes(sorted(cases, key=lambda case: case.id))
    if unmade := run.unmade():
        notes.append(unmade)
    return notes


def _notes(
    run: Run,
    log: VerdictLog,
    judged: Sequence[Outcome],
    card: JudgeCard,
    run_notes: Sequence[str],
) -> list[str]:
    notes = []
    for role, identity in (("generator", run.header.generator), ("judge", log.identity)):
        if identity["kind"] == "python" and identity.get("version") == "unversioned":
            spec = ":" in identity["name"]  # else a value that was passed in Python
            remedy = (
                "let its factory return an object with `identity`" if spec else "pass identity="
            )
            notes.append(f"the {role} is code without a version ({describe(identity)}): {remedy}")
    notes += run_notes
    errors = Counter(v.raw for o in judged for v in o.verdicts.values() if v.label == "error")
    notes += reasons(errors, " of the judge")
    unread = [
        (outcome.case.id, question, verdict)
        for outcome in judged
        for (question, _), verdict in outcome.verdicts.items()
        if verdict.label == "unparsed"
    ]
    if unread:
        case, question, first = unread[0]
        labels = next(a.labels for a in log.of(case).values() if a.question == question)
        notes.append(
            f"{len(unread):,} answers could not be read as a label of their question, the first: "
            f"{shortened(first.raw)} (labels of {question}: {', '.join(labels)})"
        )
    notes += [
        f"{probe}: the judge gives the same answer {report.consistency:.1%} of {report.n:,} times. "
        f"Its errors pull averages of answers toward what guessing gives, also over probes"
        for probe, report in card.probes.items()
        if report.consistency < SAME_ANSWERS
    ]
    unjudged = sum(o.image == "made" and not o.verdicts for o in judged)
    if unjudged:
        notes.append(f"{unjudged:,} of {len(judged):,} images are not judged yet")
    return notes


def _alpha(judged: Sequence[Sequence[Outcome]], labels: Labels) -> dict[str, float]:
    """Question -> alpha over all cases; an answer that is a failure counts as missing."""
    if len(judged) + bool(labels) < 2:
        return {}
    # Judges have the same cases, in the same order.
    labels_by_judge = [_labels_by_question(outcomes) for outcomes in judged]
    people: dict[str, dict[str, str]] = {}
    for (case, question), label in labels.items():
        people.setdefault(question, {})[case] = label
    alphas = {}
    for question in sorted({*people}.union(*labels_by_judge)):
        raters = [of_judge[question] for of_judge in labels_by_judge if question in of_judge]
        if question in people:
            raters.append([people[question].get(outcome.case.id) for outcome in judged[0]])
        if len(raters) > 1:
            alphas[question] = krippendorff_alpha(raters)
    return alphas


def _labels_by_question(outcomes: Sequence[Outcome]) -> dict[str, list[str | None]]:
    """Question -> label of each outcome, None for a failure; only of questions with a label."""
    labels: dict[str, list[str | None]] = {}
    for place, outcome in enumerate(outcomes):
        for (question, probe), verdict in outcome.verdicts.items():
            if probe == ORIGINAL and not verdict.failed:
                if question not in labels:
                    labels[question] = [None] * len(outcomes)
                labels[question][place] = verdict.label
    return labels
