"""Questions to put to judges."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PIL import Image

from counterprior.eval.core import Question

Ask = Callable[..., Question]


@pytest.fixture
def ask() -> Ask:
    """Makes a question about which of two stands left; the colour makes the picture."""

    def make(
        name: str = "row-plain-7/order/original",
        colour: str = "red",
        answers: tuple[str, str, str] = ("2", "1", "3"),
        prompt: str = "Where are A and B?\n1: left\n2: right\n3: neither\nWrite one digit.\n",
        pictures: int = 1,
    ) -> Question:
        labels = ("first_left", "first_right", "invalid")
        case, question, probe = name.split("/")
        return Question(
            case=case,
            name=question,
            probe=probe,
            task="order",
            subjects=("dog", "cat"),
            labels=labels,
            prompt=prompt,
            answers=dict(zip(answers, labels, strict=True)),
            images=tuple(Image.new("RGB", (48, 32), colour) for _ in range(pictures)),
        )

    return make
