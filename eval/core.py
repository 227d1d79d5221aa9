"""The nouns of an evaluation, on one page. Read this first.

A **suite** turns each row of a config into **cases**. A **generator** makes the image of a case. A
**judge** answers the suite's **questions** about that image, each with a **verdict**. A case with
its verdicts is an **outcome**, and the suite turns outcomes into **scores**.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, runtime_checkable

from ..errors import RunFailed, UsageError
from .stats.estimate import Estimate
from .stats.intervals import NOTHING, Interval

if TYPE_CHECKING:
    from PIL.Image import Image

    from ..clip_files import Clip

ORIGINAL = "original"
CONTROLS = ("mirror", "swap")
"""Controls of a judge: the mirrored image, and the subjects named in the other order.

A judge that looks at the image gives the same answer about the world under both.
"""
MIRROR_SWAP = "mirror_swap"
PROBES = (ORIGINAL, *CONTROLS, MIRROR_SWAP)
"""The full 2 x 2 of both controls: as is, mirrored, names exchanged, both."""

FAILURES = ("unparsed", "refused", "error", "missing")
"""Failures in place of a label: an answer outside the allowed ones; a refusal; an error of judge,
generator or file; a missing image or verdict. Never scored, never dropped, never merged."""

KNOWN_TRUTH = ("human", "scene")
"""Kinds of judges that gold images don't check: people, and the renderer's record."""

INVALID = "invalid"
"""Label of an image in which none of a question's statements holds: a judgment, not a failure."""

ALL = "all"
BOTH = " + "
"""Joins the two groups of one kind that a row is in, e.g. the categories of its entities."""


def probes_of(controls: Iterable[str]) -> tuple[str, ...]:
    """Returns the probes of some controls; both controls make the full 2 x 2.

    Raises UsageError for an unknown control.

    >>> probes_of(["mirror"]), probes_of(["swap", "mirror"])[-1]
    (('original', 'mirror'), 'mirror_swap')
    """
    wanted = set(controls)
    if unknown := sorted(wanted - set(CONTROLS)):
        raise UsageError(
            f"no probe {unknown[0]!r}: choose from {', '.join(CONTROLS)}", code="unknown-name"
        )
    return tuple(p for p in PROBES if all(c in wanted for c in CONTROLS if c in p.split("_")))


def is_mirrored(name: str) -> bool:
    """Whether a probe of a judge, or a variant of a suite, shows the mirrored image."""
    return name.startswith("mirror")


def names_exchanged(probe: str) -> bool:
    """Whether a probe names the subjects in the other order."""
    return probe.endswith("swap")


Cluster = str | tuple[str, str]
"""Name of what items share, or of both members of a pair, which vary each on their own."""


def cluster_of(clusters: Sequence[str]) -> Cluster:
    """Both members of a pair where members recur, else the narrowest cluster; see
    `Case.clusters`."""
    return (clusters[1], clusters[2]) if len(clusters) == 3 else clusters[0]


@dataclass(frozen=True, slots=True)
class Case:
    """One image to make: a row of a config in one of its variants, with one seed."""

    row: str
    """Id of the row."""
    variant: str
    """Name of the row's prompt, e.g. `swapped`; the suite defines the names."""
    seed: int
    """Seed to generate with."""
    number: int
    """Number of the seed among the row's, from 0."""
    prompt: str
    """Text to draw, or edit instruction."""
    clusters: tuple[str, ...]
    """Clusters of the item: the unordered pair first, then its two members if they recur."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Values to break scores down by, e.g. `pair_type`; two of one kind are joined by `BOTH`."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Question -> weight, if a score weighs its questions."""
    source: str = ""
    """Image to edit, relative to the run; its stem is its SHA-256. Empty for text-to-image."""
    fields: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """The row's values by name, for generators that need more than a prompt; not recorded."""
    key: Mapping[str, str] = field(default_factory=dict)
    """Question -> its right label, if the row has it; no judge sees it."""

    @property
    def id(self) -> str:
        """Unique in a suite."""
        return f"{self.item}-{self.seed}"

    @property
    def item(self) -> str:
        """Its prompt, whatever the seed; unique in a suite."""
        return f"{self.row}-{self.variant}"

    @property
    def cluster(self) -> Cluster:
        """Both members of its pair where members recur, else its narrowest cluster."""
        return cluster_of(self.clusters)

    @property
    def file(self) -> str:
        """File name that `folder:` tries first."""
        return f"{self.id}.png"


@dataclass(frozen=True)
class ImageRequest:
    """Input of a generator: prompt, seed and images to edit."""

    prompt: str
    """Text to draw, or edit instruction."""
    seed: int
    """Non-negative; the same request gives the same pixels if the backend allows it."""
    source: Image | None = None
    """RGB image to edit; None for text-to-image."""
    case: Case | None = None
    """The case, for generators that look an image up, or need more of the row than its prompt."""
    references: tuple[Image, ...] = ()
    """Further RGB images that an edit refers to, if the generator takes several."""
    fields: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """The row's values by name, as in the case, for methods."""
    grade: Callable[[Image, Judge], float] | None = field(default=None, compare=False, repr=False)
    """Grades an image of this case by a judge, in [0, 1], NaN if undecided. Every verdict is
    recorded, and asked for once."""


class GeneratorError(RunFailed):
    """An image could not be made."""

    def __init__(
        self,
        message: str,
        status: Literal["refused", "error"] = "error",
        lost_attempts: int = 0,
        *,
        code: str = "",
    ) -> None:
        super().__init__(message, code=code)
        self.status = status
        """`refused` if the model declined: the request is not repeated."""
        self.lost_attempts = lost_attempts
        """Attempts before the last that may have been billed."""
        self.usd = ""
        """Cost of the attempt, US dollars; empty if it was free or its price is unknown."""
        self.ends_run = False
        """Whether every other image would fail likewise, and be paid for: the run ends with this
        one."""


@runtime_checkable
class Generator(Protocol):
    """Makes or finds one image, or one clip, for one request."""

    def generate(self, request: ImageRequest) -> Image | Clip | Path:
        """Returns the image or clip, or the path of its file.

        Raises GeneratorError or ValueError for a request that it can't draw, and FileNotFoundError
        if it looks images up and has none.
        """
        ...

    def identity(self) -> dict[str, str]:
        """Kind, model, revision and settings; part of every record."""
        ...


@dataclass(frozen=True)
class GeneratedText:
    """A text in place of an image: a caption."""

    content: str
    """Text; empty if a captioner wrote nothing."""
    report: str = ""
    """Backend metadata as JSON, if any."""


@runtime_checkable
class CaseGenerator(Protocol):
    """Makes the image or text of a case: a generator an image, a round trip either."""

    def generate(self, request: ImageRequest) -> Image | Clip | Path | GeneratedText:
        """As `Generator.generate`."""
        ...

    def identity(self) -> dict[str, str]:
        """As `Generator.identity`."""
        ...


Task = Literal["order", "arrangement", "actor", "binding", "gate", "mention", "yes_no"]
"""Kind of a question, for judges that measure instead of reading the prompt.

order: which of two subjects is on the left; arrangement: the same, decided by a fact;
actor: which subject of an edited image acts; binding: who does which of two actions;
gate: are two subjects present, apart and side by side; mention: which of two subjects a text names
first; yes_no: any yes/no question.
"""


@dataclass(frozen=True)
class Question:
    """One question about one image; an edit shows its source first."""

    case: str
    """Id of the case."""
    name: str
    """Name in the suite, e.g. `order`."""
    probe: str
    """One of `PROBES`."""
    task: Task
    """Kind of the question."""
    subjects: tuple[str, ...]
    """Names of the things asked about, in the order of the prompt; empty for a free yes/no."""
    labels: tuple[str, ...]
    """Meaning if it is the first subject, the second, or neither; for yes_no `yes` and `no`."""
    prompt: str
    """Prompt of a language model, with the allowed answers."""
    answers: Mapping[str, str]
    """Answer as it must be written (`"1"`) -> one of `labels`."""
    images: tuple[Image, ...]
    """RGB; the image to judge comes last. Empty if a text is judged."""
    prior: str = ""
    """Label that follows from the prior alone; empty without a prior."""
    digest: str = ""
    """SHA-256 of the file of the image to judge; empty if unknown."""
    frame: int | None = None
    """Number of the judged frame of a clip, from 0; None for an image."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Facts for a judge that measures: actions of the `first` and `second` subject, their `axis`,
    the relation that the prompt states (`a`, `relation`, `b`; in a mirror image, the mirrored one),
    and all `objects` that the prompt names, separated by `|`."""
    text: str = ""
    """Text to judge in place of an image; shown before the prompt."""
    scale: str = ""
    """Prompt that asks for a number from 0 (no) to 10 (yes) in place of an answer; empty for a
    question without degrees."""

    @property
    def id(self) -> str:
        """Unique in a run: case, name, probe and frame; also the id of a judge's logical call."""
        frame = "" if self.frame is None else f"/{self.frame}"
        return f"{self.case}/{self.name}/{self.probe}{frame}"

    @property
    def full_prompt(self) -> str:
        """Text that a model gets besides the images: the text to judge, then the prompt."""
        return f"<text>\n{self.text}\n</text>\n\n{self.prompt}" if self.text else self.prompt


@dataclass(frozen=True)
class Verdict:
    """Evidence about one image of one case: a label or a failure."""

    label: str
    """A label of the question, or one of `FAILURES`."""
    raw: str = ""
    """The judge's answer, verbatim; for `error` the message."""
    number: float | None = None
    """Measurement in [0, 1], e.g. a PSE, or a tenth of a number from 0 to 10; None unless the judge
    measures or answers on a scale."""
    probabilities: Mapping[str, float] | None = None
    """Label -> probability, summing to 1 over the question's labels, if the backend has them."""
    mass: float | None = None
    """Probability of all allowed answers together in the whole vocabulary, in [0, 1]."""
    usd: str = ""
    """Cost, US dollars; empty if it was free or its price is unknown."""

    @property
    def failed(self) -> bool:
        """Whether there is no judgment."""
        return self.label in FAILURES

    def share(self, label: str) -> float | None:
        """Probability of a label, in [0, 1]; None for a failure or without probabilities."""
        if self.failed or self.probabilities is None:
            return None
        return self.probabilities.get(label)

    def to_record(self) -> dict[str, Any]:
        """Plain values without empty ones."""
        plain = {k: v for k, v in vars(self).items() if v is not None and v != ""}
        if self.probabilities is not None:
            plain["probabilities"] = dict(self.probabilities)
        return {"raw": "", **plain}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Verdict:
        """Inverse of `to_record`; ignores other keys."""
        return cls(**{name: record[name] for name in cls.__dataclass_fields__ if name in record})


@runtime_checkable
class Judge(Protocol):
    """Answers questions about images: a model, a person, a measurement."""

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        """Yields every question with its verdict as soon as it is there, in any order.

        Questions hold images, so they are taken as they are needed. A question that fails has the
        verdict `error`. Raises only errors that end the run: BudgetError at a cap, LedgerError for
        a damaged ledger, LoadError for a model that can't be loaded.
        """
        ...

    def identity(self) -> dict[str, str]:
        """Kind, model, server, revision and settings; part of every record."""
        ...


@dataclass(frozen=True)
class CaptionRequest:
    """An image to caption, or a text to edit."""

    id: str
    """Unique in a run."""
    instruction: str
    """Full text for the captioner."""
    image: Image | None
    """RGB; None if the instruction holds a text to edit."""


@dataclass(frozen=True)
class Caption:
    """A captioner's text, or its failure."""

    text: str
    """Text without the model's thoughts; for `refused` and `error` the message."""
    status: Literal["ok", "refused", "error"] = "ok"
    """`refused` if the captioner declined: the request is not repeated."""
    cut: bool = False
    """Whether the text was cut at the allowed number of tokens."""


@runtime_checkable
class Captioner(Protocol):
    """Captions images: a model, a person, a script."""

    def caption(
        self, requests: Iterable[CaptionRequest]
    ) -> Iterator[tuple[CaptionRequest, Caption]]:
        """Yields every request with its caption as soon as it is there, in any order.

        Requests hold images, so they are taken as they are needed. A request that fails has the
        status `error`. Raises only errors that end the run, as `Judge.judge`.
        """
        ...

    def identity(self) -> dict[str, str]:
        """Kind, model, server, revision and settings; part of every record."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case with all verdicts of one judge about its current image."""

    case: Case
    """The case."""
    verdicts: Mapping[tuple[str, str], Verdict] = field(default_factory=dict)
    """(question, probe) -> verdict, for a clip the majority of its frames; no entry for a question
    that was not asked."""
    image: str = "made"
    """`made`, or the reason of a missing image: `missing`, `refused` or `error`."""
    frames: Mapping[int, Mapping[tuple[str, str], Verdict]] = field(default_factory=dict)
    """Number of each judged frame of a clip -> its verdicts; empty for an image."""

    def verdict(self, question: str, probe: str = ORIGINAL) -> Verdict:
        """Returns the verdict; the image's failure without an image, `missing` if the question was
        never asked."""
        verdict = self.verdicts.get((question, probe))
        return verdict if verdict and self.image == "made" else Verdict(self.label(question, probe))

    def label(self, question: str, probe: str = ORIGINAL) -> str:
        """Returns the label of a verdict, as `verdict`."""
        if self.image != "made":
            return self.image
        verdict = self.verdicts.get((question, probe))
        return verdict.label if verdict else "missing"


def count_excluded(labels: Iterable[str], scored: Iterable[str]) -> dict[str, int]:
    """Counts labels outside the scored ones, by label, sorted."""
    scored_labels = set(scored)
    counts: dict[str, int] = {}
    for label in labels:
        if label not in scored_labels:
            counts[label] = counts.get(label, 0) + 1
    return dict(sorted(counts.items()))


@dataclass(frozen=True, kw_only=True)
class Score(Estimate):
    """One estimate about one generator under one judge, with its name, unit and group."""

    name: str
    """Metric, e.g. `hom`."""
    unit: str
    """`%` (0 to 100, or -100 to 100 if signed), `1` (0 to 1, or any number), `log odds`, or the
    things counted, e.g. `images`."""
    group: str = ALL
    """`all`, or `column=value`."""
    wide: Interval = NOTHING
    """95 % for other entities, where `interval` is for other images of these entities (mining,
    captions)."""
    these_items: Interval = NOTHING
    """95 % for new images of the same items, while `interval` is for other items of their kind."""
    effective: float = math.nan
    """Independent items whose interval would be as wide as that of the `n` clustered ones, at most
    `n`."""
    null: int | float = math.nan
    """Value expected without any effect, if that isn't 0; a whole number is written as one."""
    bounds: Interval = NOTHING
    """95 % over all items: from the worst case of everything excluded to the best, each with its
    sampling error; only if something is excluded."""
    q_value: float = math.nan
    """The p-value of a group, adjusted over all groups of its column (false discovery rate)."""
    marks: tuple[str, ...] = ()
    """Reservations about the whole run under its judge, names of `results.marks.MARKS`."""

    @classmethod
    def of(cls, estimate: Estimate, **facts: Any) -> Self:
        """Returns a score from an estimate in its unit, without the estimate's p-value: a score has
        a p-value only of a test that its metric names."""
        return super().of(estimate, **{"p_value": math.nan, **facts})

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        return {name: without_nan(getattr(self, name)) for name in _WRITTEN}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Score:
        """The inverse of `to_json`."""
        values: dict[str, Any] = {
            name: math.nan if value is None else value for name, value in record.items()
        }
        for name in ("interval", "wide", "these_items", "bounds"):
            # Scores of before 2026-12 have no interval for these items.
            ends = record.get(name, [None, None])
            values[name] = Interval(*(math.nan if end is None else end for end in ends))
        values["marks"] = tuple(record.get("marks", ()))
        return cls(**values)


_WRITTEN = (
    "name",
    "value",
    "interval",
    "n",
    "unit",
    "excluded",
    "group",
    "wide",
    "these_items",
    "effective",
    "null",
    "bounds",
    "p_value",
    "q_value",
    "warning",
    "marks",
)
"""Fields of a score in scores.json and other files, in their order."""


def without_nan(value: Any) -> Any:
    """Converts dataclasses, mappings and sequences to plain values, with None for NaN, which JSON
    lacks. A dataclass with a `to_json` is converted by it."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        if hasattr(value, "to_json"):
            return value.to_json()
        return {field.name: without_nan(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: without_nan(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [without_nan(item) for item in value]
    return value


OBSERVED = "served_"
"""Prefix of an identity's names that a server reports about itself. The identity stays the same if
the server is down, or lists nothing."""


def identity_digest(identity: Mapping[str, str]) -> str:
    """Digest of an identity, eight digits.

    >>> identity_digest({"kind": "render"})
    'b3252e04'
    """
    return hashlib.sha256(json.dumps(dict(identity), sort_keys=True).encode()).hexdigest()[:8]


def describe(identity: Mapping[str, str]) -> str:
    """Describes a generator or judge in a few words.

    >>> describe({"kind": "openai", "model": "qwen", "server": "localhost:8000", "logprobs": "5"})
    'openai:qwen @ localhost:8000'
    >>> describe({"kind": "render", "version": "1", "order_bias": "0.4"})
    'render order_bias=0.4'
    >>> describe({"kind": "python", "name": "mine.flux", "version": "2026-11"})
    'python:mine.flux 2026-11'
    >>> describe({"kind": "render", "order_bias": "2", "method": "switch:a2b?at=1"})
    'render order_bias=2 + switch:a2b?at=1'
    >>> describe({"kind": "faulty", "name": "0.1", "side": "0", "inner_kind": "pixels"})
    'faulty of pixels name=0.1'
    """
    inner = {n.removeprefix("inner_"): v for n, v in identity.items() if n.startswith("inner_")}
    head = identity["kind"]
    named = identity.get("name") if identity["kind"] != "faulty" else ""  # there a fault's share
    if model := identity.get("model") or named:
        head += f":{model}"
    if server := identity.get("server"):
        head += f" @ {server}"
    if inner:
        head += f" of {describe(inner)}"
    if identity["kind"] == "python" and (version := identity.get("version", "unversioned")):
        head = head if version == "unversioned" else f"{head} {version}"
    if identity["kind"] in ("render", "faulty", "spoiled"):
        hidden = {
            "kind",
            "version",
            "atlas",
            "method",
            "persona",
            *(f"inner_{name}" for name in inner),
        }
        options = (f"{n}={v}" for n, v in identity.items() if n not in hidden and v != "0")
        head = " ".join([head, *options])
    return f"{head} + {identity['method']}" if "method" in identity else head
