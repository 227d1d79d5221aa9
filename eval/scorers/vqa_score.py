"""`vqascore`: VQAScore (Lin et al. 2024), how probably a model answers that the image fits.

``vqascore:hf-vlm:MODEL`` or ``vqascore:openai:MODEL?logprobs=20``: any judge that gives
probabilities. The score is the probability of "Yes" in the whole vocabulary, so a model that would
rather write something else scores low on every image.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from ...specs import Options, Spec
from ..core import ORIGINAL, Judge, Question, Verdict
from ..judges import CallPlan, open_judge
from ..questions import read_prompt
from . import ScorerError

if TYPE_CHECKING:
    from PIL.Image import Image

ANSWERS = {"Yes": "yes", "No": "no"}
AT_ONCE = 64
"""Pairs given to a judge that has no batches: a server answers several at the same time."""


class VqaScoreOptions(Options, extra="allow"):
    """Options of `vqascore`."""

    undeclared: ClassVar[str] = "options of the judge"


class VqaScore:
    """P("Yes") in [0, 1], asked of another model."""

    argument: ClassVar[str] = "JUDGE"
    options: ClassVar[type[Options]] = VqaScoreOptions

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.batch = int(getattr(judge, "batch", AT_ONCE))
        self._prompt = read_prompt("vqascore")

    @classmethod
    def from_spec(
        cls, spec: Spec, options: VqaScoreOptions, plan: CallPlan | None = None
    ) -> VqaScore:
        """Raises UsageError if the argument is not a judge."""
        inner = replace(Spec.parse(spec.argument), options=options.rest)
        return cls(open_judge(str(inner), plan))

    def identity(self) -> dict[str, str]:
        inner = {f"inner_{name}": value for name, value in self.judge.identity().items()}
        return {"kind": "vqascore", "prompt": self._prompt.version, **inner}

    def score(self, pairs: Sequence[tuple[str, Image]]) -> list[float]:
        """Scores by the share of yes. Raises ScorerError for a model without probabilities."""
        questions = [self._question(prompt, image) for prompt, image in pairs]
        different = {question.case: question for question in questions}  # frames may be alike
        verdicts = {q.case: verdict for q, verdict in self.judge.judge(different.values())}
        return [_share_of_yes(verdicts[question.case]) for question in questions]

    def _question(self, prompt: str, image: Image) -> Question:
        content = hashlib.sha256(f"{image.size} {prompt}".encode() + image.tobytes())
        return Question(
            case=content.hexdigest()[:24],
            name="vqascore",
            probe=ORIGINAL,
            task="yes_no",
            subjects=(),
            labels=tuple(ANSWERS.values()),
            prompt=self._prompt.fill(prompt=prompt).strip(),
            answers=ANSWERS,
            images=(image.convert("RGB"),),
        )


def _share_of_yes(verdict: Verdict) -> float:
    if verdict.probabilities is None or verdict.mass is None:
        why = f"{verdict.label}: {verdict.raw}" if verdict.failed else "no probabilities"
        raise ScorerError(
            f"{why}; VQAScore needs them, e.g. openai:MODEL?logprobs=20",
            code="no-log-probabilities",
        )
    return verdict.probabilities["yes"] * verdict.mass
