"""`organism`: a tiny model of a known prior, shipped with the package or trained on this machine.

``organism:NAME_OR_FOLDER[?steps=12&guidance=2]`` is ``diffusers:FOLDER/model`` with these steps and
this guidance, an identity that names no folder, and prompts that are checked beforehand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ...errors import UsageError
from ...parsing import read_json
from ...specs import Options, Spec, Unit
from ..checkpoints.shipped import ABOUT, MODEL, ORGANISM, find_organism
from ..core import Case
from ..generators.diffusion import DiffusersGenerator, DiffusersOptions
from .data import HEIGHT, WIDTH, wording
from .organism import model_digest, quiet
from .report import GUIDANCE, STEPS


class OrganismOptions(DiffusersOptions):
    """Options of `organism`."""

    undeclared: ClassVar[str] = "every plain argument of the pipeline's call"

    steps: Annotated[int, Field(ge=1), Unit("denoising steps")] = STEPS
    """Denoising steps of an image."""
    guidance: Annotated[float, Field(ge=0)] = GUIDANCE
    """Classifier-free guidance scale; 1 is without guidance."""

    @property
    def rest(self) -> dict[str, str]:
        """Arguments of the pipeline's call, as text."""
        usual = {"steps": str(self.steps), "guidance": f"{self.guidance:g}"}
        return {**usual, "width": str(WIDTH), "height": str(HEIGHT), **super().rest}


class OrganismGenerator(DiffusersGenerator):
    """A pipeline of an organism."""

    argument: ClassVar[str] = "NAME_OR_FOLDER"
    options: ClassVar[type[Options]] = OrganismOptions

    @classmethod
    def from_spec(cls, spec: Spec, options: DiffusersOptions) -> OrganismGenerator:
        """Raises UsageError for an unknown name, and as `diffusers`."""
        return cls(find_organism(spec.argument), options)

    def __init__(self, folder: Path, options: DiffusersOptions) -> None:
        """folder: of the organism."""
        with quiet():
            super().__init__(str(folder / MODEL), options)
        self._about: dict[str, Any] = read_json(folder / ABOUT)
        self._weights = model_digest(folder)
        self._files = _digest(folder / MODEL)

    def identity(self) -> dict[str, str]:
        """That of `diffusers`; the model is its bias and weights, whatever folder it lies in."""
        bias = self._about["captioning"]["order_bias"]
        return {
            **super().identity(),
            "kind": ORGANISM,
            "model": f"order_bias={bias:g}@{self._weights[:8]}",
            "revision": f"sha256:{self._files[:16]}",
        }

    def check(self, cases: Sequence[Case]) -> None:
        """Raises UsageError for edits, and for a prompt with a word that no caption had."""
        super().check(cases)
        if self._about.get("images"):  # whose captions are not recorded
            return
        entities = self._about["entities"]
        language = wording(self._about["captioning"].get("language", "en"))
        for case in cases:
            if unknown := language.unknown(case.prompt):
                raise UsageError(
                    f"an organism draws {', '.join(entities)}, and has never seen the word "
                    f"{unknown[0]!r} of {case.prompt!r}",
                    f"score it with --data {ORGANISM}:held_out",
                    code="unsupported",
                )

    @cached_property
    def pipeline(self) -> Any:
        """Raises LoadError."""
        with quiet():
            return super().pipeline


def _digest(model: Path) -> str:
    """SHA-256 of weights and settings of a pipeline; its card doesn't count."""
    total = hashlib.sha256()
    for path in sorted(p for p in model.rglob("*") if p.suffix in (".json", ".safetensors")):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(model).as_posix()} {content}\n".encode())
    return total.hexdigest()
