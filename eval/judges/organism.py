"""`organism`: a judge that `counterprior organism judge` has trained, with known faults.

``organism:FOLDER`` answers which of two animals is further left. Unlike those of `faulty`, its
errors aren't drawn by chance: it errs where an image is hard, and as its training taught it to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from PIL.Image import Image, Resampling

from ...errors import UsageError
from ...parsing import read_json
from ...scenes.language import entity_of
from ...specs import Options, Spec
from ..core import Question, Verdict
from . import CallPlan

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

ABOUT, WEIGHTS = "judge.json", "judge.safetensors"
"""Names of the files of a judge."""
ANSWERS = ("first_left", "first_right", "invalid")
"""Its answers, in the order of the labels of a question about order."""
BATCH = 64
"""Questions in one pass."""


def network(entities: int, width: int) -> Any:
    """Network from images and questions to the logits of `ANSWERS`.

    It takes images of shape (n, 3, height, width), in [-1, 1], and the numbers of the two animals
    of each question, shape (n, 2). Width and height are multiples of 4.
    """
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.image = nn.Sequential(
                nn.Conv2d(3, 24, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(24, 48, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(48, 64, 3, padding=1),
                nn.ReLU(),
            )
            self.names = nn.Embedding(entities, 64)
            self.answer = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 3))

        def forward(self, images: Tensor, asked: Tensor) -> Tensor:
            # How well each place fits each name; of each column, the best and the mean.
            fit = torch.einsum("nchw,nkc->nkhw", self.image(images), self.names(asked)) / 8
            logits: Tensor = self.answer(torch.cat([fit.amax(2), fit.mean(2)], 1).flatten(1))
            return logits

    return Network()


class OrganismJudge:
    """Tells which of two animals is further left by what it learned to see."""

    argument: ClassVar[str] = "FOLDER"
    tasks = frozenset(("order",))
    """Tasks of the questions that it can answer."""

    def __init__(self, folder: Path) -> None:
        """Raises UsageError for a folder without a trained judge."""
        from safetensors.torch import load_file

        if not (folder / ABOUT).is_file():
            raise UsageError(
                f"organism: {folder} holds no judge that is trained to its end",
                f"train one: counterprior organism judge --out {folder}",
                code="no-such-file",
            )
        about = read_json(folder / ABOUT)
        self._entities: list[str] = about["entities"]
        self._size: tuple[int, int] = about["width"], about["height"]
        self._weights: str = about["weights"]
        self._network = network(len(self._entities), about["width"])
        self._network.load_state_dict(load_file(folder / WEIGHTS))

    @classmethod
    def from_spec(cls, spec: Spec, options: Options, plan: CallPlan | None = None) -> OrganismJudge:
        return cls(Path(spec.argument))

    def identity(self) -> dict[str, str]:
        return {"kind": "organism", "weights": self._weights[:16]}

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        waiting = iter(questions)
        while batch := list(islice(waiting, BATCH)):
            yield from zip(batch, self._verdicts(batch), strict=True)

    def _verdicts(self, questions: Sequence[Question]) -> Iterator[Verdict]:
        asked: list[tuple[str, str] | str] = [self._asked(question) for question in questions]
        answerable = [n for n, names in enumerate(asked) if isinstance(names, tuple)]
        shares = self.probabilities(
            [self._shrunk(questions[n].images[-1]) for n in answerable],
            [names for names in asked if isinstance(names, tuple)],
        )
        by_number = dict(zip(answerable, shares, strict=True))
        for number, (question, names) in enumerate(zip(questions, asked, strict=True)):
            if number not in by_number:
                yield Verdict("error", f"organism: {names}")
                continue
            best = int(by_number[number].argmax())
            chances = dict(zip(question.labels, by_number[number].tolist(), strict=True))
            yield Verdict(question.labels[best], ANSWERS[best], probabilities=chances)

    def probabilities(
        self, images: Sequence[NDArray[Any]], asked: Sequence[tuple[str, str]]
    ) -> NDArray[Any]:
        """Probabilities of `ANSWERS`, shape (n, 3).

        images: bytes of shape (height, width, 3). asked: the two animals of each question.
        """
        import torch

        if not images:
            return np.zeros((0, 3))
        pixels = torch.from_numpy(np.stack(images)).movedim(-1, 1).float().div(127.5).sub(1)
        numbers = [[self._entities.index(name) for name in names] for names in asked]
        with torch.no_grad():
            logits = self._network(pixels, torch.tensor(numbers))
        shares: NDArray[Any] = logits.double().softmax(1).numpy()
        return shares

    def _asked(self, question: Question) -> tuple[str, str] | str:
        """Returns the animals of a question, or why it can't answer."""
        if question.task != "order" or question.facts.get("axis", "horizontal") != "horizontal":
            return "can only say which of two animals is further left"
        try:
            first, second = map(entity_of, question.subjects)
        except ValueError as error:
            return str(error)
        for name in (first, second):
            if name not in self._entities:
                return f"does not know the {name}: it knows {', '.join(self._entities)}"
        return first, second

    def _shrunk(self, image: Image) -> NDArray[Any]:
        return np.asarray(image.convert("RGB").resize(self._size, Resampling.BOX))
