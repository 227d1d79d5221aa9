"""`switch`: another prompt from a denoising step on (OTS-Bench, temporal prompt switching).

``switch:a2b?at=3`` runs three steps with the case's own prompt and the rest with the other mention
order. With A the case's prompt, B the other order and N the neutral prompt, the protocols are a2b,
b2a, n2a and n2b. ``at=2,4`` switches at step 2 and back at step 4.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Protocol, runtime_checkable

from PIL.Image import Image
from pydantic import BeforeValidator

from ...clip_files import Clip
from ...errors import UsageError
from ...specs import Options, Spec, TextForm
from ..core import Generator, ImageRequest
from . import PROTOCOLS, Method, find_pipeline, has_pipeline, innermost, refuse
from .denoising import SwitchHook, conditioning, first_arguments, hooked

ABLE = "diffusers: or render:"
COLUMNS = {"plain": "prompt", "other": "swapped_prompt", "neutral": "neutral_prompt"}
"""Columns of a row that hold its prompts."""


@runtime_checkable
class Switchable(Protocol):
    """A generator that can change the prompt while it draws."""

    def generate_switched(
        self, request: ImageRequest, second_prompt: str, at: tuple[int, ...]
    ) -> Image | Clip:
        """Draws with the second prompt from step `at[0]` on, with the request's from `at[1]` on,
        and so forth."""
        ...


def _steps(text: object) -> tuple[int, ...]:
    steps = tuple(map(int, str(text).split(",")))
    if min(steps) < 0 or list(steps) != sorted(set(steps)):
        raise ValueError(text)
    return steps


class SwitchOptions(Options):
    """Options of `switch`."""

    at: Annotated[
        tuple[int, ...], BeforeValidator(_steps), TextForm("a step, or rising steps as 2,4")
    ]
    """Denoising steps, from 0, at which the prompt changes and changes back."""


class Switch(Method):
    """A generator whose prompt changes while it draws."""

    argument: ClassVar[str] = "PROTOCOL"
    options: ClassVar[type[Options]] = SwitchOptions
    reaches_steps = True

    def __init__(self, inner: Generator, protocol: str, at: tuple[int, ...]) -> None:
        """Raises UsageError for a generator whose steps can't be reached."""
        super().__init__(inner)
        if not (has_pipeline(inner) or isinstance(innermost(inner), Switchable)):
            raise refuse("switch", inner, ABLE)
        self.protocol = protocol
        self.at = at

    @classmethod
    def from_spec(cls, spec: Spec, options: SwitchOptions, inner: Generator) -> Switch:
        """Raises UsageError for an unknown protocol."""
        if spec.argument not in PROTOCOLS:
            problem = f"switch: has no protocol {spec.argument!r}"
            raise UsageError(problem, f"choose from {', '.join(PROTOCOLS)}", code="unknown-name")
        return cls(inner, spec.argument, options.at)

    @property
    def name(self) -> str:
        return f"switch:{self.protocol}?at={','.join(map(str, self.at))}"

    def check_request(self, request: ImageRequest) -> None:
        super().check_request(request)
        self.prompts(request)

    def prompts(self, request: ImageRequest) -> tuple[str, str]:
        """Returns the prompts of the first and of the later steps.

        Raises UsageError for rows without them.
        """
        plain, swapped = (request.fields.get(COLUMNS[name], "") for name in ("plain", "other"))
        if not plain or not swapped:
            raise UsageError(
                f"switch: rows need {COLUMNS['plain']!r} and {COLUMNS['other']!r}",
                code="missing-column",
            )
        prompt_of = {
            "a": request.prompt,
            "b": plain if request.prompt == swapped else swapped,
            "n": request.fields.get(COLUMNS["neutral"], ""),
        }
        first, last = prompt_of[self.protocol[0]], prompt_of[self.protocol[-1]]
        if not first:
            raise UsageError(
                f"switch:{self.protocol} needs rows with {COLUMNS['neutral']!r}",
                code="missing-column",
            )
        return first, last

    def generate(self, request: ImageRequest) -> Image | Clip | Path:
        first, last = self.prompts(request)
        base, start = innermost(self.inner), replace(request, prompt=first)
        if isinstance(base, Switchable):
            return base.generate_switched(start, last, self.at)
        pipeline = find_pipeline(self.inner)
        finish = replace(request, prompt=last)
        second_arguments = first_arguments(pipeline, lambda: self.inner.generate(finish))
        with hooked(pipeline, SwitchHook(self.at, conditioning(second_arguments))):
            return self.inner.generate(start)
