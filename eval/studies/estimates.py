"""What questions and steps of round trips would cost by the price table, before any is asked.

An estimate assumes usual lengths; the worst case is counted as the cap counts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from PIL import Image

from ...agents.budget import IMAGE_TOKENS, Budget
from ...agents.chat import ChatRequest, ImagePart, Usage
from ...images import plain_png
from ..captioners import CAPTIONERS
from ..core import Question
from ..generators.paid import PaidGenerator
from ..questions import read_prompt
from ..roundtrips.models import OpenStep

ANSWER_TOKENS = 5
"""Assumed length of an answer, tokens."""
CAPTION_TOKENS = 150
"""Assumed length of a caption, tokens; at most it has as many as its model may write."""
BYTES_A_TOKEN = 4
"""Assumed length of a token of a prompt."""
USUAL_IMAGE_TOKENS = 1000
"""Assumed size of one image, tokens; the cap counts `IMAGE_TOKENS`."""
LONGEST = 512
"""Assumed bound of a text that goes into a question or a step, tokens."""

ASSUMED = (
    f"Money for questions and captions is an estimate: {BYTES_A_TOKEN} bytes of a prompt a token, "
    f"{USUAL_IMAGE_TOKENS:,} tokens an image, {ANSWER_TOKENS} of answer, {CAPTION_TOKENS} of a "
    f"caption; the cap counts {IMAGE_TOKENS:,} an image."
)


class CallEstimate(NamedTuple):
    """US dollars; None where no price is known."""

    usd: float | None
    most_usd: float | None
    """Worst case, as the cap counts it."""

    @classmethod
    def of(cls, usd: Decimal | None, most: Decimal | None) -> CallEstimate:
        return cls(*(None if one is None else float(one) for one in (usd, most)))

    def times(self, count: int) -> CallEstimate:
        """Of so many."""
        return CallEstimate(*(None if one is None else one * count for one in self))


FREE = CallEstimate(0.0, 0.0)
UNKNOWN = CallEstimate(None, None)


def total(estimates: list[CallEstimate]) -> CallEstimate:
    """The sum; None where one is unknown."""
    sums = (
        None if None in part else sum(one for one in part if one is not None)
        for part in zip(*estimates, strict=True)
    )
    return CallEstimate(*sums) if estimates else FREE


def of_question(budget: Budget, identity: Mapping[str, str], question: Question) -> CallEstimate:
    """One question about an image, or about a text that is not written yet."""
    images = len(question.images)
    return _of_call(
        budget,
        identity,
        prompt=question.prompt,
        images=images,
        texts=not images,
        answer=ANSWER_TOKENS,
    )


def of_step(budget: Budget, one: OpenStep) -> CallEstimate:
    """One step of a round trip; nothing where its model is not paid.

    Raises what opening its model raises.
    """
    model, identity = one.model.open(), one.model.identity(one.step)
    if isinstance(model, PaidGenerator):
        price = budget.prices.image(identity)
        if price is None:
            return UNKNOWN
        usd = price.edit if one.step == "retouch" else price.image
        return CallEstimate.of(usd, usd)
    if not one.model.writes or identity["kind"] not in CAPTIONERS.paid:
        return FREE
    shown = one.step_input.image is not None
    told = {} if shown else {"caption": one.step_input.text, "edit": one.edit}
    return _of_call(
        budget,
        identity,
        prompt=read_prompt(one.step).fill(**told),
        images=int(shown),
        texts=not shown and not one.step_input.text,
        answer=CAPTION_TOKENS,
    )


def _of_call(
    budget: Budget,
    identity: Mapping[str, str],
    *,
    prompt: str,
    images: int,
    texts: bool,
    answer: int,
) -> CallEstimate:
    """texts: whether a text that is not known yet goes into it."""
    tokens = len(prompt.encode()) // BYTES_A_TOKEN
    tokens += USUAL_IMAGE_TOKENS * images + CAPTION_TOKENS * texts
    usual = budget.prices.cost(identity, Usage(tokens, answer))
    blank = ImagePart(plain_png(Image.new("RGB", (1, 1))))
    longest = prompt + " " * (LONGEST * BYTES_A_TOKEN * texts)
    asked = ChatRequest("plan", "", (*[blank] * images, longest), int(identity["max_tokens"]))
    return CallEstimate.of(usual, budget.worst_case(identity, asked).usd)
