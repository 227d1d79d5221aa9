"""`rephrase`: a language model rewrites the prompt, with a layout drawn at random (ours).

``rephrase:openai:MODEL[@URL][?seed=0&max_tokens=512]``, and the backend's own options. Which entity
is mentioned first and which one stands left are drawn for each image, so that neither follows the
prompt: the cheapest baseline, as it touches no model of images. A layout at random is right only
where none is asked for, so rows with one are refused.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

from PIL.Image import Image
from pydantic import Field

from ...agents.backends import BACKENDS
from ...agents.caller import Caller
from ...agents.chat import ChatBackend, ChatRequest
from ...agents.ledger import spec_hash
from ...clip_files import Clip
from ...errors import UsageError
from ...specs import Options, Spec, Unit
from ..core import Generator, GeneratorError, ImageRequest
from ..generators import REPORT, draw
from ..judges import CallPlan
from ..questions import read_prompt
from . import Method

PROMPT = "rephrase"
SYSTEM = "You rewrite prompts for text-to-image models. You change what you are told, nothing else."
LONGEST = 1000
"""Characters of a rewritten prompt."""
NEEDED = ("first", "second", "swapped_prompt")
"""Columns of rows that name two entities and ask for no layout."""

_THOUGHT = re.compile(r"(?s)\A.*</think(?:ing)?>")


@dataclass(frozen=True)
class DrawnLayout:
    """Layout that a rewritten prompt must state."""

    mentioned: tuple[str, str]
    """The two names in their new order of mention."""
    left: str
    right: str

    @classmethod
    def of(cls, first: str, second: str, seed: int, request: ImageRequest) -> DrawnLayout:
        """Draws order and sides by fair coins that depend on seed, prompt and the image's seed.

        The two orders of mention of a row draw apart.
        """
        rng = random.Random(f"rephrase/{seed}/{request.seed}/{request.prompt}")
        mentioned = (first, second) if rng.random() < 0.5 else (second, first)
        left, right = (first, second) if rng.random() < 0.5 else (second, first)
        return cls(mentioned, left, right)

    def read(self, text: str) -> str:
        """Returns the new prompt of an answer. Raises ValueError that says how to mend it."""
        prompt = _THOUGHT.sub("", text).strip().strip('"').strip()
        if not prompt or "\n" in prompt or len(prompt) > LONGEST:
            raise ValueError(f"answer with one line of at most {LONGEST} characters")
        places = [_place(name, prompt) for name in self.mentioned]
        if places != sorted(places):
            raise ValueError(f"mention {self.mentioned[0]!r} before {self.mentioned[1]!r}")
        beside = rf"\b(left|right) of (?:\w+ )?{re.escape(self.mentioned[1])}\b"
        if (stated := re.search(beside, prompt, re.IGNORECASE)) is not None:  # says both at once
            side = "left" if self.mentioned[0] == self.left else "right"
            if stated[1].lower() != side:
                raise ValueError(f"say that {self.left!r} is on the left")
            return prompt
        for side in ("left", "right"):
            if not re.search(rf"\b{side}\b", prompt, re.IGNORECASE):
                raise ValueError(f"say which one is on the {side}")
        return prompt


def _place(name: str, prompt: str) -> int:
    match = re.search(rf"\b{re.escape(name)}\b", prompt, re.IGNORECASE)
    if match is None:
        raise ValueError(f"use the name {name!r} unchanged")
    return match.start()


class RephraseOptions(Options, extra="allow"):
    """Options of `rephrase`."""

    undeclared: ClassVar[str] = "options of the language model"

    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the random layouts."""
    max_tokens: Annotated[int, Field(ge=1), Unit("tokens")] = 512
    """Longest answer in tokens, reasoning included."""


class Rephrase(Method):
    """A generator whose prompts a language model rewrites first."""

    argument: ClassVar[str] = "KIND:MODEL"
    options: ClassVar[type[Options]] = RephraseOptions

    def __init__(
        self, inner: Generator, backend: ChatBackend, seed: int = 0, max_tokens: int = 512
    ) -> None:
        """seed: seed of the layouts. max_tokens: bound of an answer, thoughts included."""
        super().__init__(inner)
        self._backend = backend
        self._seed = seed
        self._max_tokens = max_tokens
        self._prompt = read_prompt(PROMPT)
        self._caller: Caller | None = None

    @classmethod
    def from_spec(cls, spec: Spec, options: RephraseOptions, inner: Generator) -> Rephrase:
        """Raises UsageError for an unknown backend, BackendError for a missing key."""
        kind, _, argument = spec.argument.partition(":")
        if kind not in BACKENDS:
            kinds = ", ".join(sorted(BACKENDS))
            problem = f"rephrase: no language model {spec.argument!r}"
            remedy = f"write rephrase:KIND:MODEL, KIND one of {kinds}"
            raise UsageError(problem, remedy, code="unknown-name")
        backend = BACKENDS[kind](Spec(kind, argument, options.rest))
        return cls(inner, backend, options.seed, options.max_tokens)

    @property
    def name(self) -> str:
        who = self._backend.identity()
        server = f"@{who['server']}" if "server" in who else ""
        return (
            f"rephrase:{who['kind']}:{who.get('model', '')}{server}?seed={self._seed}"
            f"&max_tokens={self._max_tokens}&prompt={self._prompt.version}"
        )

    def check_request(self, request: ImageRequest) -> None:
        super().check_request(request)
        if missing := [name for name in NEEDED if name not in request.fields]:
            raise UsageError(
                f"rephrase: it draws a layout at random, so rows need two entities and no layout: "
                f"these lack {missing[0]!r}",
                code="unsupported",
            )

    def prepare(self, folder: Path, plan: CallPlan) -> None:
        """Raises BackendError if the model does not answer, UnpricedError for an unknown price
        under a cap."""
        super().prepare(folder, plan)
        trial = ChatRequest("rephrase", SYSTEM, (self._prompt.text,), self._max_tokens)
        plan.check(self._backend, trial)
        identity = self._backend.identity()
        self._caller = plan.caller(self._backend, prefix="rephrase", identity=identity, holder=self)

    def generate(self, request: ImageRequest) -> Image | Clip | Path:
        """Returns the image of the new prompt, which is in its report.

        Raises GeneratorError, refused if the model declined, and BudgetError at the cap.
        """
        prompt, layout = self._rewritten(request)
        image = draw(self.inner, replace(request, prompt=prompt))
        report = json.loads(image.info.get(REPORT, "{}"))
        rephrased = {"prompt": prompt, "left": layout.left, "first": layout.mentioned[0]}
        image.info[REPORT] = json.dumps({**report, "rephrased": rephrased}, sort_keys=True)
        return image

    def _rewritten(self, request: ImageRequest) -> tuple[str, DrawnLayout]:
        if self._caller is None:
            raise UsageError(
                "rephrase: works in a run: use `counterprior generate` or `eval`", code="needs-run"
            )
        first, second = request.fields["first"], request.fields["second"]
        layout = DrawnLayout.of(first, second, self._seed, request)
        instruction = self._prompt.fill(
            prompt=request.prompt,
            first=first,
            second=second,
            mentioned=layout.mentioned[0],
            left=layout.left,
            right=layout.right,
        )
        call = ChatRequest("rephrase", SYSTEM, (instruction,), self._max_tokens)
        content = spec_hash(self._backend.identity(), call)[:16]
        case = request.case.id if request.case else f"{request.seed}"
        answer = self._caller.call(f"{case}/rephrase/{content}", call, layout.read)
        if answer.value is None:
            status = "refused" if answer.status == "refused" else "error"
            problem = f"the prompt was not rewritten ({answer.status}): {answer.problem}"
            raise GeneratorError(problem, status, code="generator-failed")  # type: ignore[arg-type]
        return answer.value, layout
