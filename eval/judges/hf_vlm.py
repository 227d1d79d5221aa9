"""`hf-vlm`: a vision-language model that runs here, by transformers.

``hf-vlm:PATH_OR_REPO[?revision=r&device=cuda&dtype=bfloat16&batch=1&min_mass=0.5]``. The answers
are single tokens, so one forward pass gives the probability of each: the same as letting the model
write with only these tokens allowed, without writing.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import PositiveInt

from ...specs import Options, Share, Spec, Unit
from ..checkpoints.placement import Checkpoint, LoadError, ModelOptions, Placement
from ..checkpoints.vision import VisionModel
from ..core import Question, Verdict
from . import CallPlan, Clips, together_identity

if TYPE_CHECKING:
    import torch


class LocalJudgeOptions(ModelOptions):
    """Options of the judge `hf-vlm`."""

    batch: Annotated[PositiveInt, Unit("questions")] = 1
    """Questions in one forward pass; in bfloat16 the answers depend on it a little."""
    min_mass: Share = 0.5
    """Least total probability of the allowed answers; below it, the answer is unparsed."""
    clips: Clips = "frames"
    """Whether the judge sees each chosen frame of a clip alone, or all chosen frames together."""


class LocalJudge(VisionModel):
    """Reads the probabilities of the allowed answers off the model's next token."""

    argument: ClassVar[str] = "PATH_OR_REPO"
    options: ClassVar[type[Options]] = LocalJudgeOptions
    forms: ClassVar[Mapping[str, str]] = {"PaliGemmaProcessor": "answer en {text}"}
    """PaliGemma's form of a question in English, by its model card."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        placement: Placement,
        options: LocalJudgeOptions,
    ) -> None:
        super().__init__(checkpoint, placement)
        self.batch = options.batch
        self.min_mass = options.min_mass
        self.takes_clips = options.clips == "together"

    @classmethod
    def from_spec(
        cls, spec: Spec, options: LocalJudgeOptions, plan: CallPlan | None = None
    ) -> LocalJudge:
        """Raises UsageError for a model that isn't there."""
        checkpoint = Checkpoint.find(spec.argument, options.revision, "config.json")
        return cls(checkpoint, Placement.find(options.device, options.dtype), options)

    def identity(self) -> dict[str, str]:
        settings = {"batch": str(self.batch), "min_mass": f"{self.min_mass:g}"}
        return {**super().identity(), **settings, **together_identity(self.takes_clips)}

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        """Raises LoadError where there can be no verdict at all."""
        waiting = iter(questions)
        while batch := list(islice(waiting, self.batch)):
            yield from zip(batch, self._verdicts(batch), strict=True)

    def _verdicts(self, questions: Sequence[Question]) -> list[Verdict]:
        try:
            logits = self.next_token_logits(questions)
        except LoadError:
            raise
        except Exception as error:  # a model's own code may raise anything
            if len(questions) > 1:  # one bad image must not cost the others their answers
                return [self._verdicts([question])[0] for question in questions]
            return [Verdict("error", f"{type(error).__name__}: {error}")]
        return [self._verdict(q, row) for q, row in zip(questions, logits, strict=True)]

    def _verdict(self, question: Question, logits: torch.Tensor) -> Verdict:
        answers = list(question.answers)
        try:
            tokens = self.answer_tokens(question, answers)
        except ValueError as error:
            return Verdict("error", str(error))
        shares = logits[tokens].softmax(0).tolist()
        mass = float(logits.softmax(0)[tokens].sum())
        probabilities = {question.answers[a]: p for a, p in zip(answers, shares, strict=True)}
        if mass < self.min_mass:
            wanted = self.processor.tokenizer.decode([int(logits.argmax())])
            return Verdict("unparsed", wanted, probabilities=probabilities, mass=mass)
        answer = answers[int(logits[tokens].argmax())]
        return Verdict(question.answers[answer], answer, probabilities=probabilities, mass=mass)

    def next_token_logits(self, questions: Sequence[Question]) -> torch.Tensor:
        """(questions, vocabulary) float32 on the CPU: what the model would write first."""
        import torch

        inputs = self.encode([(q.images, q.full_prompt) for q in questions])
        # Without this a model makes the logits of every position, of which we read one.
        takes_it = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        last = {"logits_to_keep": 1} if takes_it else {}
        with torch.inference_mode():
            logits: torch.Tensor = self.model(**inputs, **last).logits[:, -1]
        return logits.float().cpu()

    def answer_tokens(self, question: Question, answers: Sequence[str]) -> list[int]:
        """The token of each answer where it would stand, after the question.

        Raises ValueError where an answer is not exactly one token there: a tokenizer may split it,
        join it with what stands before, or put a space token first.
        """
        tokenizer = self.processor.tokenizer
        text = self.prompt_text(question.images, question.full_prompt)
        prompt_tokens = tokenizer(text, add_special_tokens=False).input_ids
        tokens = []
        for answer in answers:
            full_tokens = tokenizer(text + answer, add_special_tokens=False).input_ids
            if full_tokens[:-1] != prompt_tokens:
                raise ValueError(f"{self.checkpoint.name}: the answer {answer!r} is not one token")
            tokens.append(full_tokens[-1])
        return tokens
