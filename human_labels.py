"""Labels that human annotators gave to images: the form of a row, its reader and its checks.

Files are CSV, JSON or JSONL. A row has

    case       id of what was labeled (also `sample_id`)
    question   which question about it; may be missing where the file is about one question
    label      the answer (also `human_verdict`, `verdict`)
    annotator  who answered; needed where several people label one case
    image      SHA-256 of the labeled image; needed where several runs share their cases
    clicked    when; an annotator's later click replaces the earlier one
    draw       `uniform` if the labeled images were drawn at random, as `audit merge` writes it

Other columns are ignored. `docs/agreement.md` shows an example.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from .errors import DataError
from .parsing import MALFORMED, SHA256, RowError, parse, read_rows


class _LabelRow(BaseModel):
    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True, str_strip_whitespace=True)

    case: str = Field(min_length=1, validation_alias=AliasChoices("case", "sample_id"))
    question: str = ""
    label: str = Field(
        min_length=1, validation_alias=AliasChoices("label", "human_verdict", "verdict")
    )
    annotator: str = ""
    image: str = ""
    clicked: str = ""


LabeledImage = tuple[str, str, str]
"""Case, question, and SHA-256 of the image; empty if the file has none."""


@dataclass(frozen=True)
class Label:
    """One person's answer to one question about one image."""

    case: str
    """Id of the case, or of the checker's sample."""
    label: str
    """The answer."""
    question: str = ""
    """Id of the question; empty if the file has none."""
    annotator: str = ""
    """Name of the annotator; empty if the file has none."""
    image: str = ""
    """SHA-256 of the labeled image; empty if the file has none."""
    place: str = field(default="", compare=False)
    """``FILE:LINE``, for messages."""

    @property
    def key(self) -> tuple[str, str]:
        """Case and question."""
        return self.case, self.question

    @property
    def about(self) -> LabeledImage:
        """The labeled image by case, question and digest: runs of one suite share their cases."""
        return self.case, self.question, self.image


def read_labels(path: Path) -> list[Label]:
    """The labels of a file, an annotator's latest click in place of earlier ones.

    Raises RowError for a row that does not fit, and for two rows of one annotator on the same
    case, question and image unless both have `clicked`; DataError for labels of a sample
    that was drawn with unequal chances.
    """
    _check_draw(path.parent / "sample.json")
    labels: dict[tuple[str, ...], Label] = {}
    clicks: dict[tuple[str, ...], str] = {}
    for number, row in read_rows(path):
        fields = {name: value for name, value in row.items() if value is not None}
        label = parse(_LabelRow, fields, path, number)
        key = (label.case, label.question, label.image, label.annotator)
        if key in labels and not (label.clicked and clicks[key]):
            who = f" by {label.annotator!r}" if label.annotator else ""
            remedy = "keep one" if who else "keep one, or name the `annotator` of each"
            raise RowError(
                f"{path}:{number}: case: {label.case!r} is labeled twice{who}: {remedy}",
                code="duplicate-id",
            )
        if key in labels and click_time(label.clicked) < click_time(clicks[key]):
            continue
        clicks[key] = label.clicked
        labels[key] = Label(place=f"{path}:{number}", **label.model_dump(exclude={"clicked"}))
    return list(labels.values())


def read_some_labels(path: Path) -> list[Label]:
    """As `read_labels`; also raises DataError for a file without labels."""
    labels = read_labels(path)
    if not labels:
        raise DataError(f"{path}: no label: write one a row", code="nothing-to-do")
    return labels


def click_time(text: str) -> tuple[float, str]:
    """Sorts times of clicks: ISO 8601, in UTC unless they say otherwise; other texts before them.

    >>> click_time("2026-11-24T10:00:00+02:00") < click_time("2026-11-24T09:00:00Z")
    True
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return -math.inf, text
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp(), ""


def _check_draw(sample: Path) -> None:
    """Raises DataError if the sample beside the labels took answers of a judge in equal shares."""
    try:
        items = json.loads(sample.read_text("utf-8"))["items"]
        weights = {item["weight"] for item in items if "weight" in item}
    except (OSError, *MALFORMED):
        return
    if len(weights) > 1:
        raise DataError(
            f"{sample}: its {len(items)} items were drawn in equal shares of the judge's answers: "
            "kappa and corrected scores of the run can't come from them",
            "Draw again into another folder with `counterprior audit`, which draws all images "
            "alike, and label those.",
            code="unequal-draw",
        )


UNIFORM = "uniform"
"""Value of `draw`: each image had the same chance to be labeled."""
SAMPLE = "sample.json"
"""File beside labels of the images that were drawn to be labeled."""


def is_uniform_draw(path: Path) -> bool:
    """Whether a file of labels, or the sample beside it, says that its images are a uniform draw.

    Raises RowError for a file that can't be read.
    """
    try:
        items = json.loads(path.with_name(SAMPLE).read_text("utf-8"))["items"]
        return all("weight" not in item for item in items)
    except (OSError, *MALFORMED):
        return all(row.get("draw") == UNIFORM for _, row in read_rows(path))


def draw_note(path: Path) -> str:
    """What numbers from a file of labels assume; empty if the draw is known."""
    if is_uniform_draw(path):
        return ""
    return (
        f"{path.name} doesn't say how its images were drawn: agreement, confusion and corrections "
        f"take them as a uniform draw of all images that it has labels of"
    )


def check_labels(
    labels: Iterable[Label],
    cases: Collection[str],
    answers: Mapping[str, Collection[str]] | None = None,
) -> list[Label]:
    """The labels, each with its question.

    cases: known ids. answers: question -> labels it allows, None for any question and label. A
    label without a question belongs to the only one there is. Raises RowError, naming file, line
    and what is allowed, for an unknown case, question or label.
    """
    return [_checked(label, cases, answers) for label in labels]


def _checked(
    label: Label, cases: Collection[str], answers: Mapping[str, Collection[str]] | None
) -> Label:
    if label.case not in cases:
        choices = f"there are {len(cases)}, e.g. {min(cases)!r}" if cases else "there are none"
        raise RowError(
            f"{label.place}: case: no case {label.case!r}: {choices}", code="unknown-reference"
        )
    if answers is None:
        return label
    question = label.question or (next(iter(answers)) if len(answers) == 1 else "")
    if question not in answers:
        problem = f"no question {question!r}" if question else "missing"
        raise RowError(
            f"{label.place}: question: {problem}: choose from {', '.join(answers)}",
            code="unknown-name",
        )
    if label.label not in answers[question]:
        choices = ", ".join(answers[question])
        raise RowError(
            f"{label.place}: label: no label {label.label!r}: choose from {choices}",
            code="unknown-name",
        )
    return replace(label, question=question)


def labels_of_images(
    labels: Iterable[Label], images: Mapping[str, str], several: bool = False
) -> list[Label]:
    """The labels of a run's images; labels that name another image are left out.

    images: case -> SHA-256 of its image. Runs of one suite share their cases, so with `several`
    runs each row must name its image. Raises RowError for a row that does not, and for an `image`
    that is no SHA-256.
    """
    matching = []
    for label in labels:
        if label.image and not SHA256.fullmatch(label.image):
            raise RowError(
                f"{label.place}: image: {label.image!r} is not the SHA-256 of an image",
                code="bad-value",
            )
        if several and not label.image:
            raise RowError(
                f"{label.place}: has no `image`: write the SHA-256 of the labeled image, or give "
                f"the labels with one run at a time",
                code="missing-field",
            )
        if not label.image or images.get(label.case) == label.image:
            matching.append(label)
    return matching


def single_labels(labels: Iterable[Label]) -> dict[tuple[str, str], str]:
    """(case, question) -> label, of one image each.

    Raises RowError if two labels of one question differ, and for labels of two images.
    """
    labels_by_key: dict[tuple[str, str], str] = {}
    for label in of_one_run(labels):
        first_label = labels_by_key.setdefault(label.key, label.label)
        if first_label != label.label:
            raise RowError(
                f"{label.place}: label: {label.case!r} has two labels, {first_label!r} and "
                f"{label.label!r}: merge them with `counterprior audit merge`, or keep one",
                code="duplicate-id",
            )
    return labels_by_key


def of_one_run(labels: Iterable[Label]) -> list[Label]:
    """The labels by their cases alone, without images.

    Raises RowError for labels of two images of one case: runs share their cases.
    """
    images: dict[str, str] = {}
    without_images = []
    for label in labels:
        if label.image and images.setdefault(label.case, label.image) != label.image:
            raise RowError(
                f"{label.place}: image: {label.case!r} is labeled on two images: give the labels "
                f"of one run",
                code="conflicting-labels",
            )
        without_images.append(replace(label, image=""))
    return without_images


def check_placed(labels: Iterable[Label]) -> None:
    """Raises RowError if some labels of a question name their image and others don't: nobody
    knows whether they are about the same one."""
    named: dict[tuple[str, str], bool] = {}
    for label in labels:
        if named.setdefault(label.key, bool(label.image)) != bool(label.image):
            raise RowError(
                f"{label.place}: image: {label.case!r} is labeled with an image and without one: "
                f"write the SHA-256 of the labeled image in both rows, or in none",
                code="conflicting-labels",
            )


def consensus(labels: Iterable[Label]) -> dict[LabeledImage, str | None]:
    """The label that most annotators give to an image; None if they are split evenly."""
    votes: dict[LabeledImage, Counter[str]] = {}
    for label in labels:
        votes.setdefault(label.about, Counter())[label.label] += 1
    return {key: most_common(count) for key, count in votes.items()}


def most_common(votes: Counter[str]) -> str | None:
    """The label with the most votes; None for a tie and without votes."""
    ranked = votes.most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def by_annotator(labels: Iterable[Label]) -> dict[str, dict[LabeledImage, str]]:
    """Annotator -> labeled image -> label, sorted by annotator."""
    table: dict[str, dict[LabeledImage, str]] = {}
    for label in labels:
        table.setdefault(label.annotator, {})[label.about] = label.label
    return dict(sorted(table.items()))
