"""Methods against the prior: each wraps a generator and goes wherever a generator goes.

One module a method, one line in `METHODS` each. ``--method switch:a2b?at=3`` names one; several are
applied in the order they are given, so that the first is the innermost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from PIL.Image import Image

from ...clips import Clip
from ...errors import UsageError
from ...specs import Spec
from ..checkpoints.extras import open_adapter
from ..core import Case, Generator, ImageRequest
from ..generators import Checked, as_generator
from ..judges import CallPlan

METHODS = {
    "best-of": f"{__name__}.best_of:BestOf",
    "lora": f"{__name__}.lora:Lora",
    "psg": f"{__name__}.psg:Guidance",
    "rephrase": f"{__name__}.rephrase:Rephrase",
    "switch": f"{__name__}.switch:Switch",
}
"""Kind of a spec -> ``module:Class``, imported when it is opened."""

PROTOCOLS = ("a2b", "b2a", "n2a", "n2b")
"""Of `switch`: from which prompt to which, of A the case's own, B the other order of mention, and N
the neutral one."""


class Method(ABC):
    """A generator that is made of another one."""

    reaches_steps: ClassVar[bool] = False
    """Whether it changes denoising steps; two such methods would count each other's calls."""

    def __init__(self, inner: Generator) -> None:
        """Raises UsageError where both this and an inner method change denoising steps."""
        self.inner = inner
        """The generator that is changed."""
        while self.reaches_steps and isinstance(inner, Method):
            if inner.reaches_steps:
                raise UsageError(
                    "switch and psg both change denoising steps: choose one",
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
    spec = Spec.parse(text)
    if spec.kind != "python":
        made: Generator = open_adapter(METHODS, spec, "method", generator)
        return made
    wrap: Any = open_adapter(METHODS, spec, "method")
    if not callable(wrap):
        raise UsageError(
            f"{text}: the factory must return a function of a generator", code="wrong-type"
        )
    return as_generator(wrap(generator))


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
    """The pipeline of diffusers that a generator runs, loaded; see `has_pipeline`."""
    base: Any = innermost(generator)
    return base.pipeline


def refuse(method: str, generator: Generator, able: str) -> UsageError:
    """What to say of a generator that a method can't change; `able` lists those that it can."""
    kind = innermost(generator).identity()["kind"]
    return UsageError(
        f"{method}: can't change {kind}:, whose steps are out of reach: use {able}",
        code="unsupported",
    )


class Options:
    """The options of a method's spec, read one by one; what is left over is an error."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._left = dict(spec.options)
        self._known: list[str] = []

    def take(self, name: str, read: Callable[[str], Any], default: Any, what: str) -> Any:
        """The option by `read`, which raises ValueError for text that isn't `what`."""
        self._known.append(name)
        text = self._left.pop(name, None)
        if text is None:
            return default
        try:
            return read(text)
        except ValueError:
            kind = self._spec.kind
            raise UsageError(
                f"{kind}: {name} must be {what}, is {text!r}", code="bad-option"
            ) from None

    def close(self) -> None:
        """Raises UsageError for options that nobody took."""
        if self._left:
            known = ", ".join(self._known)
            raise UsageError(
                f"{self._spec.kind}: has no option {next(iter(self._left))!r}: choose from {known}",
                code="unknown-option",
            )


def whole(least: int) -> Callable[[str], int]:
    """Reads a whole number of at least `least`."""

    def read(text: str) -> int:
        number = int(text)
        if number < least:
            raise ValueError(text)
        return number

    return read


def positive(text: str) -> float:
    """Reads a number above 0."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError(text)
    return number


def one_of(*choices: str) -> Callable[[str], str]:
    """Reads one of some words."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(text)
        return text

    return read
