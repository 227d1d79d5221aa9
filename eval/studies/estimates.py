"""Estimated costs of questions and steps of round trips by the price table.

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
from ..roundtrips.models import RouteModel
from ..roundtrips.steps import RouteStep

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
        return cls(*(None if amount is None else float(amount) for amount in (usd, most)))

    def times(self, count: int) -> CallEstimate:
        """Costs of `count` such calls."""
        return CallEstimate(*(None if amount is None else amount * count for amount in self))


FREE = CallEstimate(0.0, 0.0)
UNKNOWN = CallEstimate(None, None)


def total(estimates: list[CallEstimate]) -> CallEstimate:
    """Sums the estimates; None if any is unknown."""
    sums = (
        None if None in amounts else sum(amount for amount in amounts if amount is not None)
        for amounts in zip(*estimates, strict=True)
    )
    return CallEstimate(*sums) if estimates else FREE


def of_question(budget: Budget, identity: Mapping[str, str], question: Question) -> CallEstimate:
    """Costs of one question about an image, or about a text that is not written yet."""
    images = len(question.images)
    return _of_call(
        budget,
        identity,
        prompt=question.prompt,
        images=images,
        texts=not images,
        answer=ANSWER_TOKENS,
    )


def of_step(budget: Budget, route_model: RouteModel, step: RouteStep) -> CallEstimate:
    """Costs of one step of a round trip; zero unless its model is paid.

    Raises the errors of opening the model.
    """
    model, identity = route_model.open(), route_model.identity(step.step)
    if isinstance(model, PaidGenerator):
        price = budget.prices.image(identity)
        if price is None:
            return UNKNOWN
        usd = price.edit if step.step == "edit_image" else price.image
        return CallEstimate.of(usd, usd)
    if not route_model.writes or identity["kind"] not in CAPTIONERS.paid:
        return FREE
    has_image = step.step_input.image is not None
    slots = {} if has_image else {"caption": step.step_input.text, "edit": step.edit}
    return _of_call(
        budget,
        identity,
        prompt=read_prompt(step.prompt).fill(**slots),
        images=int(has_image),
        texts=not has_image and not step.step_input.text,
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
    request = ChatRequest("plan", "", (*[blank] * images, longest), int(identity["max_tokens"]))
    return CallEstimate.of(usual, budget.worst_case(identity, request).usd)
