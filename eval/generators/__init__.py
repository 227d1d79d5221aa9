"""Adapters that make, edit or find images and clips: one module each, and a line in
`GENERATORS`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from PIL.Image import Image

from ...agents.chat import Permit, always
from ...clip_files import Clip
from ...images import open_image
from ..checkpoints.registry import Identity, Registry, RegistryEntry
from ..core import Captioner, Case, CaseGenerator, Generator, GeneratorError, ImageRequest
from .python import FunctionGenerator, MappingGenerator

REPORT = "report"
"""Key of an image's `info`: JSON of an API's report (usage, revised prompt, attempts that may have
been billed). It is never saved with the image."""

ENCODED = "encoded"
"""Key of an image's `info`: bytes of the PNG that it was read from; a run stores them unchanged."""

USD = "usd"
"""Key of an image's `info`: its price, US dollars as text; empty if unknown."""


@runtime_checkable
class Checked(Protocol):
    """A generator that finds problems before the first image."""

    def check(self, cases: Sequence[Case]) -> None:
        """Raises UsageError for cases that it can't make or find."""
        ...


@runtime_checkable
class MadeForRows(Protocol):
    """A generator whose images were made for certain rows."""

    def check_rows(self, suite: str, digest: str) -> None:
        """Raises UsageError unless its images of a suite are of the rows with this digest."""
        ...


@runtime_checkable
class BatchGenerator(Protocol):
    """A generator that can make several images in one call, the same ones as one by one."""

    batch_size: int
    """Maximum number of requests in one call; 1 if it takes them one by one."""

    def generate(self, request: ImageRequest) -> Image | Clip | Path:
        """As `Generator.generate`."""
        ...

    def generate_batch(
        self, requests: Sequence[ImageRequest]
    ) -> list[Image | Clip | Path | GeneratorError]:
        """Returns the result of each request, in their order.

        Raises as `Generator.generate` if the call as a whole failed: its requests are then made one
        by one.
        """
        ...

    def identity(self) -> dict[str, str]:
        """As `Generator.identity`."""
        ...


class PaidByImage(ABC):
    """A generator behind a server that bills each image; safe to call from threads."""

    @abstractmethod
    def generate(self, request: ImageRequest, permit: Permit = always) -> Image | Clip:
        """As `Generator.generate`; `permit` is called before each attempt after one that may have
        been billed, and its error ends the request."""

    @abstractmethod
    def identity(self) -> dict[str, str]:
        """As `Generator.identity`."""


def is_served(generator: CaseGenerator | None) -> bool:
    """Whether a generator is a captioner behind a server: workers can't ask it."""
    return bool(getattr(generator, "is_served", False))


def _caption_generator(captioner: Any, identity: Identity) -> Generator:
    """A captioner in a generator's place; it has an identity of its own."""
    generator: Generator = GENERATORS.load("caption")(captioner)
    return generator


GENERATORS: Registry[Generator] = Registry(
    "generator",
    {
        "caption": "counterprior.eval.captioners.as_generator:CaptionGenerator",
        "chat-image": RegistryEntry(f"{__name__}.chat_image:ChatImages", paid=True),
        "command": f"{__name__}.command:CommandGenerator",
        "diffusers": f"{__name__}.diffusion:DiffusersGenerator",
        "folder": f"{__name__}.folder:ImageFolder",
        "hub": "counterprior.eval.publishing.hub:PublishedImages",
        "inference": RegistryEntry(f"{__name__}.inference:HostedModel", paid=True),
        "openai-image": RegistryEntry(f"{__name__}.openai_image:OpenAIImages", paid=True),
        "openai-video": RegistryEntry(f"{__name__}.openai_video:OpenAIVideos", paid=True),
        "organism": "counterprior.eval.organisms.generator:OrganismGenerator",
        "render": f"{__name__}.render:RenderGenerator",
    },
    protocol=Generator,
    wrappers={
        Captioner: _caption_generator,
        Mapping: MappingGenerator,
        Callable: FunctionGenerator,
    },
    accepts="a function (prompt, seed) or (prompt, seed, source), a mapping from case (or its id) "
    "to image, or an object with generate and identity, or a captioner",
)
open_generator = GENERATORS.open


def as_generator(value: Any, identity: Identity = "") -> Generator:
    """Returns a generator from a spec, function, mapping or object; raises as `Registry.adapt`."""
    return GENERATORS.adapt(value, identity=identity)


def draw(generator: Generator, request: ImageRequest) -> Image:
    """Returns the image itself, also if the generator returns its path.

    Raises as `Generator.generate`, and GeneratorError for a clip.
    """
    drawn = generator.generate(request)
    if isinstance(drawn, Clip):
        raise GeneratorError("it makes a clip, and an image is needed here", code="wrong-medium")
    return open_image(drawn) if isinstance(drawn, Path) else drawn
