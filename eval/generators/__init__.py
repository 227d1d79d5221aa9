"""Whatever makes, edits or finds an image or clip: a module an adapter, a line in `GENERATORS`."""

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
from ..core import Case, Generator, GeneratorError, ImageRequest
from .python import FunctionGenerator, MappingGenerator

REPORT = "report"
"""Key of an image's `info`: JSON of what an API said besides it (usage, revised prompt, attempts
that may have been billed). It is never saved with the image."""

ENCODED = "encoded"
"""Key of an image's `info`: the bytes of the PNG that it was read from, which a run then keeps as
they are."""

USD = "usd"
"""Key of an image's `info`: what it cost, US dollars as text; empty where nobody knows."""


@runtime_checkable
class Checked(Protocol):
    """A generator that can say before the first image what would go wrong."""

    def check(self, cases: Sequence[Case]) -> None:
        """Raises UsageError where the cases can't be made or found as they are."""
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
    """Requests that it takes in one call, at most; 1 where it takes them one by one."""

    def generate(self, request: ImageRequest) -> Image | Clip | Path:
        """As `Generator.generate`."""
        ...

    def generate_batch(
        self, requests: Sequence[ImageRequest]
    ) -> list[Image | Clip | Path | GeneratorError]:
        """What became of each request, in their order.

        Raises as `Generator.generate` where the call as a whole failed: its requests are then made
        one by one.
        """
        ...

    def identity(self) -> dict[str, str]:
        """As `Generator.identity`."""
        ...


class PaidByImage(ABC):
    """A generator behind a server that bills each image; safe to ask from threads."""

    @abstractmethod
    def generate(self, request: ImageRequest, permit: Permit = always) -> Image | Clip:
        """As `Generator.generate`; `permit` is asked before each attempt after one that may have
        been billed, and what it raises ends the request."""

    @abstractmethod
    def identity(self) -> dict[str, str]:
        """As `Generator.identity`."""


GENERATORS: Registry[Generator] = Registry(
    "generator",
    {
        "chat-image": RegistryEntry(f"{__name__}.chat_image:ChatImages", paid=True),
        "command": f"{__name__}.command:CommandGenerator",
        "diffusers": f"{__name__}.diffusion:DiffusersGenerator",
        "folder": f"{__name__}.folder:ImageFolder",
        "hub": "counterprior.eval.publishing.hub:PublishedImages",
        "inference": RegistryEntry(f"{__name__}.inference:HostedModel", paid=True),
        "openai-image": RegistryEntry(f"{__name__}.openai_image:OpenAIImages", paid=True),
        "openai-video": RegistryEntry(f"{__name__}.openai_video:OpenAIVideos", paid=True),
        "render": f"{__name__}.render:RenderGenerator",
    },
    protocol=Generator,
    wrappers={Mapping: MappingGenerator, Callable: FunctionGenerator},
    accepts="a function (prompt, seed) or (prompt, seed, source), a mapping from case (or its id) "
    "to image, or an object with generate and identity",
)
open_generator = GENERATORS.open


def as_generator(value: Any, identity: Identity = "") -> Generator:
    """A generator from anything that can stand for one; raises as `Registry.adapt`."""
    return GENERATORS.adapt(value, identity=identity)


def draw(generator: Generator, request: ImageRequest) -> Image:
    """The image itself, also where the generator gives its path.

    Raises as `Generator.generate`, and GeneratorError for a clip.
    """
    made = generator.generate(request)
    if isinstance(made, Clip):
        raise GeneratorError("it makes a clip, and an image is needed here", code="wrong-medium")
    return open_image(made) if isinstance(made, Path) else made
