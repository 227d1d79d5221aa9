"""Training of one network that can be killed at any step, and goes on as if it had not been.

What a step does depends on its number and the seed alone. So a checkpoint is the weights, their
moving average, the optimizer's state and the losses. On the CPU a resumed training ends in the same
bits, as it runs on one thread.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import RunFailed
from ...progress import Progress, silent
from ..checkpoints.training_state import load_state, save_state

if TYPE_CHECKING:
    from torch import Generator, Tensor

CLIP = 1.0
"""Largest norm of a gradient."""
AVERAGED = 0.998
"""Share of the moving average of the weights that an update keeps, at most."""
WARM_UP = 100
"""Updates until the learning rate is full."""

Loss = Callable[[int, "Generator"], "Tensor"]
"""Loss of an update: of its number, with the random numbers that belong to it."""


@dataclass(frozen=True)
class Schedule:
    """Length and learning rate of a training."""

    steps: int
    learning_rate: float
    warm_up: int = WARM_UP

    def rate(self, step: int) -> float:
        """Learning rate of an update: rises, stays, and falls to a thirtieth in the second half."""
        rise = min(1.0, (step + 1) / self.warm_up)
        fall = min(1.0, max(1 / 30, 2 * (1 - step / self.steps)))
        return self.learning_rate * rise * fall


class Training:
    """Updates of some parameters, with a checkpoint in a file."""

    def __init__(
        self, parameters: list[Any], schedule: Schedule, seed: int, path: Path, version: str
    ) -> None:
        """version: digest of data and settings; a checkpoint of another version can't be resumed.

        Raises UsageError for a checkpoint of another training, DataError for a damaged one.
        """
        import torch

        self._parameters = parameters
        self._schedule = schedule
        self._seed = seed
        self._path = path
        self._version = version
        self._optimizer = torch.optim.AdamW(
            parameters, schedule.learning_rate, weight_decay=1e-3, betas=(0.9, 0.99)
        )
        self._average = [parameter.detach().clone() for parameter in parameters]
        self.losses: list[float] = []
        """Of every update so far."""
        self._resume()

    def run(self, loss: Loss, every: int, progress: Progress = silent, stage: str = "") -> None:
        """Trains to the end, with a checkpoint every so many updates.

        Raises RunFailed if the loss is not a number.
        """
        with single_thread():
            while (step := len(self.losses)) < self._schedule.steps:
                self.losses.append(self._update(step, loss))
                if (step + 1) % every == 0 or step + 1 == self._schedule.steps:
                    self._keep()
                progress(stage, step + 1, self._schedule.steps)

    def _update(self, step: int, loss: Loss) -> float:
        import torch

        for group in self._optimizer.param_groups:
            group["lr"] = self._schedule.rate(step)
        value = loss(step, generator(self._seed, step))
        self._optimizer.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._parameters, CLIP)
        self._optimizer.step()
        kept = min(AVERAGED, (step + 1) / (step + 20))
        with torch.no_grad():
            torch._foreach_lerp_(self._average, [p.detach() for p in self._parameters], 1 - kept)
        number = float(value.detach())
        if number != number:
            raise RunFailed(f"the loss of update {step + 1} is not a number", code="diverged")
        return number

    def average(self) -> None:
        """Ends the training: the weights become their moving average."""
        _set(self._parameters, self._average)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Puts the moving average in the place of the weights within it."""
        current = [parameter.detach().clone() for parameter in self._parameters]
        _set(self._parameters, self._average)
        try:
            yield
        finally:
            _set(self._parameters, current)

    def _keep(self) -> None:
        state = {
            "version": self._version,
            "weights": [parameter.detach() for parameter in self._parameters],
            "average": self._average,
            "optimizer": self._optimizer.state_dict(),
            "losses": self.losses,
        }
        save_state(self._path, state)

    def _resume(self) -> None:
        another = f"{self._path.parent.parent} holds a training with other settings"
        state = load_state(self._path, self._version, another)
        if state is None:
            return
        _set(self._parameters, state["weights"])
        _set(self._average, state["average"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.losses = list(state["losses"])


@contextmanager
def single_thread() -> Iterator[None]:
    """One thread within it: sums keep their order, and small matrices gain nothing from two."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def generator(seed: int, step: int) -> Generator:
    """Random numbers of an update, on the CPU."""
    import torch

    number = random.Random(f"{seed}/update {step}").getrandbits(48)
    return torch.Generator("cpu").manual_seed(number)


def _set(targets: list[Any], sources: list[Any]) -> None:
    import torch

    with torch.no_grad():
        for target, source in zip(targets, sources, strict=True):
            target.copy_(source)
