"""The answers of the roles of the annotation game."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ...schema import Struct


class Screening(Struct):
    """Whether an image may be used."""

    harmless: bool
    """Nothing violent, sexual or hateful."""
    anonymous: bool
    """Nobody can be identified."""
    objects: Annotated[int, Field(ge=0, le=50)]
    """Kinds of things that can be named."""
    little_text: bool
    """Almost no writing."""


class Telling(Struct):
    """A dense caption."""

    sentences: list[str] = Field(min_length=7, max_length=10)
    """Each can be understood on its own."""


class Judgment(Struct):
    """Whether the caption conveyed the image."""

    reason: str
    """One sentence."""
    verdict: Literal["good", "bad"]
    """Verdict on the caption, by what was drawn from it."""


class Asked(Struct):
    """A yes/no question."""

    question: str
    """Ends with a question mark."""
    answer: bool
    """The right answer, true for yes."""


class Edit(Struct):
    """An edit of the image."""

    prompt: str
    """The instruction."""
    questions: list[Asked] = Field(min_length=2, max_length=2)
    """About the edited image: one yes, one no."""


class ImageComparison(Struct):
    """Test material from original and drawing."""

    similarities: list[Asked] = Field(min_length=5, max_length=5)
    """In which both agree."""
    differences: list[Asked] = Field(min_length=5, max_length=5)
    """In which they differ; answered for the original."""
    edits: list[Edit] = Field(min_length=3, max_length=3)
    """Of the original."""


class ItemReview(Struct):
    """A second model's own answers."""

    caption_faithful: bool
    """The caption says nothing that isn't there."""
    answers: list[Literal["yes", "no", "unclear"]] = Field(min_length=16, max_length=16)
    """To the ten questions, then the two of each edit."""
    edits_possible: bool
    """All three can be done and seen."""


class Reading(Struct):
    """A second model's answers from the caption alone."""

    answers: list[Literal["yes", "no", "unclear"]] = Field(min_length=16, max_length=16)
    """To the ten questions, then the two of each edit."""
