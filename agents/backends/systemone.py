"""System One's typed decisions, as `transformers serve` gives them: `POST /v1/systemone`.

One forward pass gives the probability of every allowed answer, and no text is written. So a request
needs its `ChatRequest.choices`.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from ...specs import Spec
from ..chat import ChatRequest, Completion, ImagePart, Permit, always
from ..retry import UnreadableError
from .http import RAW, Wire, unusable, with_lost
from .usage import read_usage

if TYPE_CHECKING:
    import openai

PATH = "/systemone"
QUESTION = "answer"
"""Name of the one question of a request."""
MOST_IMAGES = 4
"""Images that a request may hold."""
SLACK = 0.01
"""Most by which probabilities may miss a sum of 1: servers round."""


class SystemOne:
    """A model that decides; the key comes from OPENAI_API_KEY, and the user's own server needs
    none."""

    def __init__(self, wire: Wire[openai.OpenAI]) -> None:
        self._wire = wire
        self._client = wire.client

    @classmethod
    def from_spec(cls, spec: Spec) -> SystemOne:
        """Raises UsageError without a server: no vendor has such an endpoint."""
        import openai

        if "@" not in spec.argument:
            problem = f"{spec.kind}: name a server, e.g. {spec.kind}:MODEL@http://localhost:8000/v1"
            raise UsageError(problem, code="missing-option")
        return cls(Wire.open(spec, openai, openai.OpenAI, "OPENAI_API_KEY"))

    def identity(self) -> dict[str, str]:
        return self._wire.identity()

    def check(self) -> int:
        return self._wire.check(self._client.models.with_raw_response.list, PATH)

    def complete(self, request: ChatRequest, permit: Permit = always) -> Completion:
        """Raises UsageError for a request without choices: this server writes nothing."""
        if not request.choices:
            raise UsageError(
                f"systemone decides among answers, and the {request.role} has to write",
                "use another backend",
                code="unsupported",
            )
        body = self.body(request)
        if (images := len(body["assets"])) > MOST_IMAGES:
            return unusable(f"{images} images, where a request takes {MOST_IMAGES}")
        return with_lost(
            *self._wire.ask(
                lambda: self._client.post(
                    PATH, cast_to=object, body=body, options={"headers": RAW}
                ),
                lambda raw: read_decision(raw, request.choices),
                permit,
            )
        )

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """The request as it goes over the wire: images in the state, the texts as instructions.

        Lines that list the choices become their criteria.
        """
        images = [part for part in request.user if isinstance(part, ImagePart)]
        text = "\n\n".join(part for part in request.user if isinstance(part, str))
        instructions, criteria = split_choices(text, request.choices)
        names = [f"<image-{number}>" for number in range(1, len(images) + 1)]
        question = {"type": "choice", "instructions": instructions, "criteria": criteria}
        return {
            "model": self._wire.endpoint.model,
            "state": "\n".join([request.system, *names]),
            "questions": {QUESTION: question},
            "assets": {
                name: {"data_base64": base64.b64encode(image.data).decode()}
                for name, image in zip(names, images, strict=True)
            },
        }


def split_choices(text: str, choices: tuple[str, ...]) -> tuple[str, dict[str, str | None]]:
    """The text without the lines that list the choices, and choice -> what such a line says of it.

    The text stays whole, and choices say nothing, unless it lists all of them.

    >>> split_choices("Who?\\n1: A.\\n2: B.\\nWrite a digit.", ("2", "1"))
    ('Who?\\nWrite a digit.', {'2': 'B.', '1': 'A.'})
    """
    lines = {}
    for choice in choices:
        listed = re.findall(rf"^{re.escape(choice)}[:.)] .+$", text, re.MULTILINE)
        if len(listed) != 1:
            return text, dict.fromkeys(choices)
        lines[choice] = listed[0]
    kept = [line for line in text.split("\n") if line not in lines.values()]
    said = {choice: line[len(choice) + 2 :] for choice, line in lines.items()}
    return "\n".join(kept), said


def read_decision(raw: Mapping[str, Any], choices: tuple[str, ...]) -> Completion:
    """A response body as a completion: the likeliest choice, and the log probabilities of all.

    Raises UnreadableError unless it has a probability for each choice and for nothing else.
    """
    try:
        shares = raw["answers"][QUESTION]["probabilities"]
        numbers = {choice: float(shares[choice]) for choice in choices}
    except (KeyError, TypeError, ValueError):
        raise UnreadableError("the answer is not a decision among the choices") from None
    total = sum(numbers.values())
    if len(shares) != len(choices) or not all(0 <= p <= 1 + SLACK for p in numbers.values()):
        raise UnreadableError("the answer has other probabilities than of the choices")
    if not abs(total - 1) <= SLACK:
        raise UnreadableError(f"the probabilities sum to {total:.3g}", retryable=False)
    best = max(choices, key=numbers.__getitem__)
    logs = tuple((choice, math.log(p)) for choice, p in numbers.items() if p > 0)
    return Completion("ok", best, read_usage(raw.get("usage")), raw, logs)
