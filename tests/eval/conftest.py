"""Questions to put to judges."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PIL import Image

from counterprior.eval.core import Question

Ask = Callable[..., Question]


@pytest.fixture
def ask() -> Ask:
    """Makes a question about which of two stands left; the color makes the image."""

    def make(
        case: str = "row-plain-7",
        color: str = "red",
        answers: tuple[str, str, str] = ("2", "1", "3"),
        prompt: str = "Where are A and B?\n1: left\n2: right\n3: neither\nWrite one digit.\n",
    ) -> Question:
        labels = ("first_left", "first_right", "invalid")
        return Question(
            case=case,
            name="order",
            probe="original",
            task="order",
            subjects=("dog", "cat"),
            labels=labels,
            prompt=prompt,
            answers=dict(zip(answers, labels, strict=True)),
            images=(Image.new("RGB", (48, 32), color),),
        )

    return make
