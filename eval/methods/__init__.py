"""Methods against the prior: each wraps a generator and goes wherever a generator goes.

One module a method, one line in `METHODS` each. ``--method switch:a2b?at=3`` names one; several are
applied in the order they are given, so that the first is the innermost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

from PIL.Image import Image

from ...clip_files import Clip
from ...errors import UsageError
from ...specs import Spec
from ..checkpoints.registry import PYTHON, Registry
from ..core import Case, Generator, ImageRequest
from ..generators import Checked, as_generator
from ..judges import CallPlan

PROTOCOLS = ("a2b", "b2a", "n2a", "n2b")
"""Protocols of `switch`, first prompt to last: A is the case's, B the other order of mention, N the
neutral prompt."""


class Method(ABC):
    """A generator that wraps another generator."""

    reaches_steps: ClassVar[bool] = False
    """Whether it changes denoising steps; two such methods would count each other's calls."""

    def __init__(self, inner: Generator) -> None:
        """Raises UsageError where both this and an inner method change denoising steps."""
        self.inner = inner
        """The generator that is changed."""
        while self.reaches_steps and isinstance(inner, Method):
            if inner.reaches_steps:
                raise UsageError(
                    "switch and psg both change denoising steps, and boxes does too: choose one",
                    code="conflicting-options",
                )
            inner = inner.inner

    @property
    @abstractmethod
    def name(self) -> str:
        """The method with every setting that can change an image, as a spec."""

    @abstractmethod
    def generate(self, request: ImageRequest) -> Image | Clip | Path:
        """As `Generator.generate`."""

    def identity(self) -> dict[str, str]:
        """The generator's, with `method`: all methods from the innermost on."""
        inner = self.inner.identity()
        before = inner.get("method")
        return {**inner, "method": f"{before} + {self.name}" if before else self.name}

    def check(self, cases: Sequence[Case]) -> None:
        """As `Checked.check`."""
        if isinstance(self.inner, Checked):
            self.inner.check(cases)

    def check_request(self, request: ImageRequest) -> None:
        """Raises UsageError where rows like this request's lack what the method needs."""
        if isinstance(self.inner, Method):
            self.inner.check_request(request)

    def prepare(self, folder: Path, plan: CallPlan) -> None:
        """Called before the first image: the folder of the run, and how paid calls are made."""
        if isinstance(self.inner, Method):
            self.inner.prepare(folder, plan)


METHODS: Registry[Generator] = Registry(
    "method",
    {
        "boxes": f"{__name__}.boxes:Boxes",
        "best-of": f"{__name__}.best_of:BestOf",
        "lora": f"{__name__}.lora:Lora",
        "preview": f"{__name__}.preview:Preview",
        "psg": f"{__name__}.psg:Guidance",
        "rephrase": f"{__name__}.rephrase:Rephrase",
        "switch": f"{__name__}.switch:Switch",
    },
)
"""Each `from_spec` takes the generator that is changed, too."""


def apply_methods(generator: Generator | str, specs: Sequence[str]) -> Generator:
    """The generator changed by methods, the first one innermost; as it is without any.

    Raises UsageError for an unknown method or option, and for a generator that a method can't
    change.
    """
    changed = as_generator(generator)
    for text in specs:
        changed = open_method(text, changed)
    return changed


def open_method(text: str, generator: Generator) -> Generator:
    """The method that a spec names, around a generator; raises as `apply_methods`.

    ``python:MODULE:FACTORY`` names a factory of yours that returns a function of the generator.
    """
    opened: Any = METHODS.open(text, generator)
    if Spec.parse(text).kind != PYTHON:
        return cast(Generator, opened)
    if not callable(opened):
        problem = f"{text}: the factory must return a function of a generator"
        raise UsageError(problem, code="wrong-type")
    return as_generator(opened(generator))


def innermost(generator: Generator) -> Generator:
    """The generator itself, without the methods around it."""
    while isinstance(generator, Method):
        generator = generator.inner
    return generator


def has_pipeline(generator: Generator) -> bool:
    """Whether it runs a pipeline of diffusers, named `pipeline`; loads nothing."""
    base = innermost(generator)
    return "pipeline" in vars(base) or hasattr(type(base), "pipeline")


def find_pipeline(generator: Generator) -> Any:
    """Returns the pipeline of diffusers that a generator runs, loaded; see `has_pipeline`."""
    base: Any = innermost(generator)
    return base.pipeline


def refuse(method: str, generator: Generator, able: str) -> UsageError:
    """Returns the error for a generator that a method can't change; `able` lists those it can."""
    kind = innermost(generator).identity()["kind"]
    problem = f"{method}: can't change {kind}:, whose steps are out of reach"
    return UsageError(problem, f"use {able}", code="unsupported")
