"""The answers of writer, reviewer, questioner and denominalizer."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...schema import Struct


class SceneDraft(Struct):
    """A scene that shows a law, in our world and in the altered one."""

    scene: str
    """Completes "Draw ..."; no hint of the outcome, no period."""
    factual: str
    """What the image shows in our world, one sentence."""
    counterfactual: str
    """What it shows in the altered world, one sentence with "should"."""
    point_factual: str
    """What the image of our world must show, a noun phrase with a period."""
    point_counterfactual: str
    """What the image of the altered world must show."""


class Draft(Struct):
    """The scenes for one law."""

    scenes: list[SceneDraft] = Field(max_length=20)
    """Each unlike the others."""


class SceneVerdict(Struct):
    """The four criteria for one numbered scene (CF-World 3.2)."""

    scene: int
    """Its number."""
    unambiguous: bool
    """One image can show the outcome, and one look at it is enough to tell."""
    deduced: bool
    """The outcome follows from the altered law; neither premise nor scene states it."""
    safe: bool
    """Nothing violent, hateful, sexual or dangerous to imitate."""
    valid: bool
    """The law is stated correctly, and outcome and premise agree with science."""
    reason: str
    """Why a criterion fails; empty if none does."""


class Review(Struct):
    """A verdict on every scene."""

    verdicts: list[SceneVerdict] = Field(max_length=20)
    """One per scene."""


class VisualQuestion(Struct):
    """About the quality of the image."""

    weight: Annotated[int, Field(ge=1, le=3)]
    """1 to 3."""
    text: str
    """Ends with a question mark; yes is good."""


class PointQuestion(Struct):
    """About the assessment point."""

    weight: Annotated[int, Field(ge=12, le=16)]
    """12 to 16."""
    text: str
    """Ends with a question mark; yes is good."""


class LogicQuestion(Struct):
    """About what else follows."""

    weight: Annotated[int, Field(ge=7, le=9)]
    """7 to 9."""
    text: str
    """Ends with a question mark; yes is good."""


class SceneQuestions(Struct):
    """The questions about one numbered scene."""

    scene: int
    """Its number."""
    visual: VisualQuestion
    """For every level."""
    point_factual: PointQuestion
    """Our world."""
    point_counterfactual: PointQuestion
    """The altered world."""
    logic_factual: LogicQuestion
    """Our world."""
    logic_counterfactual: LogicQuestion
    """The altered world."""


class Questions(Struct):
    """Questions about every scene."""

    scenes: list[SceneQuestions] = Field(max_length=20)
    """One set per scene."""


class Renaming(Struct):
    """A description in place of the name of what the outcome shows (CF-World 5.3)."""

    suitable: bool
    """Whether the outcome names one thing that can be described instead."""
    replace: str
    """The words of the outcome to replace, verbatim; empty if unsuitable."""
    by: str
    """Their description without the name; empty if unsuitable."""


class VariantDraft(Struct):
    """One variant of a rule."""

    id: str
    """A slug."""
    factual: bool
    """Whether it holds in our world."""
    values: list[str] = Field(max_length=6)
    """Values of the slots, in their order."""


class RuleDraft(Struct):
    """A symbolic rule with six variants (CF-World 5.1)."""

    slots: list[str] = Field(min_length=1, max_length=6)
    """Names of the slots, lower-case words joined by _."""
    prompt: str
    """The prompt, with every slot as {slot}."""
    shows: str
    """What the image must show, with slots as {slot}."""
    variants: list[VariantDraft] = Field(min_length=6, max_length=6)
    """One or two factual, the others not."""


class RuleVerdict(Struct):
    """A review of a rule."""

    unambiguous: bool
    """Each variant asks for one image, and one look is enough to tell whether it was drawn."""
    symbolic: bool
    """Plain shapes suffice."""
    distinct: bool
    """The six images differ."""
    valid: bool
    """Exactly the variants marked factual hold in our world."""
    reason: str
    """Why a criterion fails; empty if none does."""
