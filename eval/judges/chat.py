"""`openai`, `anthropic`, `systemone`, `scripted`: judges that are models behind a server.

``openai:MODEL[@BASE_URL][?max_tokens=n&logprobs=n&clips=together&answer=scale]``, and the
backend's own options. With ``clips=together`` one question shows all chosen frames of a clip. With
``answer=scale`` free yes/no questions are answered by a number from 0 to 10. Every call goes
through a ledger, so that a run that was killed pays for no question twice.

``systemone:MODEL@BASE_URL`` is a server that decides among the allowed answers in one forward pass,
and writes nothing: each answer has its probability.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ...agents.backends import open_chat
from ...agents.backends.http import ConnectionOptions
from ...agents.caller import Answer, Call, Caller
from ...agents.chat import ChatBackend, ChatRequest, Completion, ImagePart, without_thoughts
from ...agents.ledger import spec_hash
from ...agents.outage import Fuse
from ...errors import UsageError
from ...images import plain_png
from ...specs import Options, Spec, Unit
from ..core import Question, Verdict
from ..questions import read_prompt
from . import CallPlan, Clips, together_identity

DECIDING = "systemone"
"""Kind of the servers that decide among choices."""
MAX_TOKENS = 1024
"""Bound of an answer: one digit, and what a model thinks before it."""

TOP = 10
"""Highest number of a scale; the lowest is 0."""
AMBIGUOUS = 0.01
"""Share of a first token `1`, without one `10` beside it, above which nobody knows how much of it
is the beginning of 10: the number as written counts then, not its expectation."""

LEAST_MASS = 0.5
"""Probability that the first token is any of the answers, from which it tells them apart."""


class ChatJudgeOptions(ConnectionOptions):
    """Options of a judge behind a server."""

    temperature: Annotated[float, Field(ge=0)] | None = None
    """Sent only if set; several newer models reject it."""
    max_tokens: Annotated[int, Field(ge=1, le=20_000), Unit("tokens")] = MAX_TOKENS
    """Longest answer in tokens: one digit, and the reasoning before it."""
    logprobs: Annotated[int, Field(ge=0, le=20)] = 0
    """Number of alternatives to the first token that the server should return; the API gives at
    most 20."""
    clips: Clips = "frames"
    """Whether the judge sees each chosen frame of a clip alone, or all chosen frames together."""
    answer: Literal["label", "scale"] = "label"
    """How free yes/no questions are answered: `label` by a digit for yes or no, `scale` by a number
    from 0 to 10. With `logprobs`, the expected number counts."""


class ChatJudge:
    """A model that is shown the pictures and the question's prompt, and answers with a number."""

    options: ClassVar[type[Options]] = ChatJudgeOptions

    def __init__(self, backend: ChatBackend, plan: CallPlan, options: ChatJudgeOptions) -> None:
        self.takes_clips = options.clips == "together"
        self._backend = Fuse(backend)
        self._plan = plan
        self._max_tokens = options.max_tokens
        self._logprobs = options.logprobs
        self._on_scale = options.answer == "scale"
        self._decides = backend.identity()["kind"] == DECIDING
        self._system = read_prompt("judge")

    @classmethod
    def from_spec(cls, spec: Spec, options: ChatJudgeOptions, plan: CallPlan) -> ChatJudge:
        """Raises UsageError for what the server doesn't have: log probabilities of Anthropic, a
        written number or a temperature of `systemone`; BackendError for a missing key."""
        if spec.kind == "anthropic" and options.logprobs:
            problem = "anthropic: gives no log probabilities"
            raise UsageError(problem, "drop the option logprobs", code="unsupported")
        if spec.kind == DECIDING:
            written = {"logprobs", "max_tokens", "temperature", "answer"} & spec.options.keys()
            if written:
                problem = f"{DECIDING}: it writes nothing, and gives every probability"
                hint = f"drop the option {', '.join(sorted(written))}"
                raise UsageError(problem, hint, code="unsupported")
        return cls(open_chat(spec, ("timeout", "attempts", "temperature")), plan, options)

    def identity(self) -> dict[str, str]:
        return {
            **self._backend.identity(),
            "system": self._system.version,
            "max_tokens": str(self._max_tokens),
            "logprobs": str(self._logprobs),
            **together_identity(self.takes_clips),
            **({"answer": f"scale {read_prompt('scale').version}"} if self._on_scale else {}),
        }

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        calls = ((question, self._call(question)) for question in questions)
        for question, answer in self._caller.stream(calls):
            verdict = _scale_verdict if self._has_scale(question) else _verdict
            seen = verdict(question, answer)
            # Probabilities among the choices don't say how much the vocabulary gives them.
            yield question, replace(seen, mass=None) if self._decides else seen

    def _has_scale(self, question: Question) -> bool:
        return self._on_scale and bool(question.scale)

    def check(self) -> None:
        """Raises BackendError, and UnpricedError where a cap is set."""
        question = ChatRequest("judge", self._system.text, ("?",), self._max_tokens)
        self._plan.check(self._backend, question)

    @cached_property
    def _caller(self) -> Caller:
        identity, kind = self.identity(), self._backend.identity()["kind"]
        return self._plan.caller(self._backend, prefix=kind, identity=identity, holder=self)

    def _call(self, question: Question) -> Call[str | None]:
        parse: Callable[[str], str | None] = partial(parse_answer, allowed=question.answers)
        if self._has_scale(question):
            question, parse = replace(question, prompt=question.scale), parse_number
        request = ChatRequest(
            role="judge",
            system=self._system.text.strip(),
            user=(
                *(ImagePart(plain_png(image)) for image in question.images),
                question.full_prompt,
            ),
            max_tokens=self._max_tokens,
            top_logprobs=self._logprobs,
            choices=tuple(question.answers) if self._decides else (),
        )
        # The content is part of the id: a picture that was made anew is a new call, not a drift.
        content = spec_hash(self._backend.identity(), request)[:16]
        return Call(f"{question.id}/{content}", request, parse)


def _failure(answer: Answer[str | None]) -> Verdict | None:
    """The verdict on a call without an answer; None for one with an answer."""
    text = answer.completion.text if answer.completion else ""
    if answer.status == "refused":
        return Verdict("refused", text)
    if answer.status == "error":
        return Verdict("error", answer.problem)
    if answer.status != "ok" or answer.value is None or answer.completion is None:
        return Verdict("unparsed", text)
    return None


def _verdict(question: Question, answer: Answer[str | None]) -> Verdict:
    if (failure := _failure(answer)) is not None:
        return failure
    assert answer.completion is not None and answer.value is not None
    text, label = answer.completion.text, question.answers[answer.value]
    if text.strip() != answer.value:  # thoughts came first: the first token is not the answer
        return Verdict(label, text)
    shares, mass = first_token_shares(answer.completion, question.answers)
    return Verdict(label, text, probabilities=shares, mass=mass)


def _scale_verdict(question: Question, answer: Answer[str | None]) -> Verdict:
    """The number, a tenth of what was written or of its expectation, and the label nearer to it."""
    if (failure := _failure(answer)) is not None:
        return failure
    assert answer.completion is not None and answer.value is not None
    text, number, mass = answer.completion.text, float(answer.value), None
    if text.strip() == answer.value:  # else thoughts came first
        expected, mass = expected_number(answer.completion)
        number = number if expected is None else expected
    yes, no = question.labels[:2]
    return Verdict(yes if number >= TOP / 2 else no, text, number=number / TOP, mass=mass)


def expected_number(completion: Completion) -> tuple[float | None, float | None]:
    """Expectation of a number from 0 to 10 over the first token, and the mass of all such numbers.

    The expectation is None without log probabilities, below `LEAST_MASS`, and where a `1` may be
    the beginning of a 10 that is two tokens.
    """
    numbers = {str(number): str(number) for number in range(TOP + 1)}
    shares, mass = first_token_shares(completion, numbers)
    if shares is None or (shares["1"] > AMBIGUOUS and not shares["10"]):
        return None, mass
    return sum(int(number) * share for number, share in shares.items()), mass


def first_token_shares(
    completion: Completion, answers: Mapping[str, str]
) -> tuple[dict[str, float] | None, float | None]:
    """Label -> probability among the answers, and the mass of all answers in the vocabulary.

    An answer that is not among the first token's alternatives counts 0; tokens that differ in white
    space alone are one answer. Without log probabilities both are None; below `LEAST_MASS` the
    first token was not the answer (but a server's hidden thought, say), and there is no share.
    """
    if not completion.first_token:
        return None, None
    shares = dict.fromkeys(answers, 0.0)
    for token, logprob in completion.first_token:
        if token.strip() in shares:
            shares[token.strip()] += math.exp(min(logprob, 0.0))  # a server may round up
    mass = sum(shares.values())
    if mass < LEAST_MASS:
        return None, mass
    return {answers[a]: p / mass for a, p in shares.items()}, min(mass, 1.0)


def parse_answer(text: str, allowed: Container[str]) -> str | None:
    """The answer, where it is all that the model wrote after its thoughts; else None.

    A judge that is generous here scores its own guess: "1 or 2" and "not 1" both hold a digit.

    >>> parse_answer("<think>Is it 1? No.</think>\\n2\\n", {"1", "2"})
    '2'
    >>> [parse_answer(text, {"1", "2"}) for text in ("It is 2.", "1 2", "", "zwei", "<think>2")]
    [None, None, None, None, None]
    """
    answer = without_thoughts(text)
    if answer and answer in allowed:
        return answer
    # To a bare question, models answer with a sentence.
    first = re.fullmatch(r"(yes|no)(?:[.!,;:].*)?", answer or "", re.IGNORECASE | re.DOTALL)
    word = first[1].capitalize() if first else ""
    return word if word and word in allowed else None


def parse_number(text: str) -> str | None:
    """The number from 0 to 10, where it is all that the model wrote after its thoughts; else None.

    >>> [parse_number(text) for text in ("7", "<think>4?</think> 6.5", "10")]
    ['7', '6.5', '10']
    >>> [parse_number(text) for text in ("11", "-1", "7/10", "7.", "nan", "7 of 10", "")]
    [None, None, None, None, None, None, None]
    """
    answer = without_thoughts(text)
    stated = re.fullmatch(r"[0-9]{1,2}([.][0-9]{1,6})?", answer)
    return answer if stated and float(answer) <= TOP else None
