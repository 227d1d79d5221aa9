"""Whatever makes or edits an image: one module an adapter, one line in `GENERATORS` each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from PIL.Image import Image

from ...agents.chat import Permit, always
from ...errors import RunFailed
from ...specs import Spec
from ..checkpoints.extras import named_extras
from ..core import Case


@dataclass(frozen=True)
class ImageRequest:
    """What a generator is asked for; with `source` set it is an edit."""

    prompt: str
    """The text to draw, or the edit instruction."""
    seed: int
    """Non-negative; the same request must give the same pixels where the backend allows it."""
    source: Image | None = None
    """The RGB image to edit; None for text-to-image."""


REPORT = "report"
"""Key of a picture's `info`: JSON of what an API said besides it (usage, revised prompt, attempts
that may have been billed). It is never saved with the picture."""


class GeneratorError(RunFailed):
    """A picture that could not be made."""

    def __init__(
        self,
        message: str,
        status: Literal["refused", "error"] = "error",
        lost_attempts: int = 0,
    ) -> None:
        super().__init__(message)
        self.status = status
        """`refused` where the model declined: it is not asked again."""
        self.lost_attempts = lost_attempts
        """Attempts before the last that may have been billed."""
        self.usd = ""
        """What it cost nevertheless, US dollars; empty where nothing, or nobody knows."""


class Generator(Protocol):
    """Makes one RGB image from one request."""

    def generate(self, request: ImageRequest) -> Image:
        """The picture. Raises GeneratorError, or ValueError for a request it can't draw."""
        ...

    def identity(self) -> dict[str, str]:
        """What produced the image (kind, model, revision, settings); goes into every record."""
        ...


class PaidByPicture(ABC):
    """A generator behind a server that bills each picture; safe to ask from threads."""

    @abstractmethod
    def generate(self, request: ImageRequest, permit: Permit = always) -> Image:
        """As `Generator.generate`; `permit` is asked before each attempt after one that may have
        been billed, and what it raises ends the request."""

    @abstractmethod
    def identity(self) -> dict[str, str]:
        """As `Generator.identity`."""


class Gallery(ABC):
    """Holds pictures that were made elsewhere; the counterpart of a generator."""

    @abstractmethod
    def find(self, case: Case) -> Path:
        """The picture's file. Raises FileNotFoundError where there is none, ValueError if bad."""

    @abstractmethod
    def identity(self) -> dict[str, str]:
        """Whose pictures they are; goes into every record."""


def _folder(spec: Spec) -> Gallery:
    from .folder import PictureFolder

    return PictureFolder.from_spec(spec)


def _render(spec: Spec) -> Generator:
    from .render import RenderGenerator

    return RenderGenerator.from_spec(spec)


def _command(spec: Spec) -> Generator:
    from .command import CommandGenerator

    return CommandGenerator.from_spec(spec)


def _diffusers(spec: Spec) -> Generator:
    from .diffusion import DiffusersGenerator

    return DiffusersGenerator.from_spec(spec)


def _openai_image(spec: Spec) -> Generator:
    from .openai_image import OpenAIImages

    return OpenAIImages.from_spec(spec)


GENERATORS: dict[str, Callable[[Spec], Generator | Gallery]] = {
    "command": _command,
    "diffusers": _diffusers,
    "folder": _folder,
    "openai-image": _openai_image,
    "render": _render,
}


def open_generator(text: str) -> Generator:
    """The generator that a spec such as ``render:`` names; ValueError for one that can't draw."""
    found = open_images(text)
    if isinstance(found, Gallery):
        raise ValueError(f"{text}: holds pictures and can't make any")
    return found


def open_images(text: str) -> Generator | Gallery:
    """Whatever a spec names that has or makes pictures.

    Raises ValueError for an unknown kind or option and a library that isn't installed, BackendError
    for a missing key.
    """
    spec = Spec.parse(text)
    if spec.kind not in GENERATORS:
        raise ValueError(f"no generator {spec.kind!r}: choose from {', '.join(sorted(GENERATORS))}")
    with named_extras(spec.kind):
        return GENERATORS[spec.kind](spec)
