"""Schedulers of diffusers in place of the one that a checkpoint names."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Self

from ...errors import UsageError
from .placement import LoadError

SUFFIX = "Scheduler"
"""End of every scheduler's name in diffusers."""
FLOW = "use_flow_sigmas"
"""Setting of a scheduler of noise that lets it step a model of flow matching."""
SHIFTS = ("shift", "flow_shift")
"""Names of the setting that moves steps toward noise."""


@dataclass(frozen=True)
class SchedulerChoice:
    """A scheduler, its shift, or both; everything else is as the checkpoint's own says."""

    name: str = ""
    """Class of diffusers; empty for the checkpoint's."""
    shift: float | None = None
    """Shift of the steps toward noise; None for the checkpoint's."""

    @classmethod
    def find(cls, name: str, shift: float | None) -> Self | None:
        """name: with or without `Scheduler` at its end; empty for the checkpoint's.

        None if nothing is chosen. Raises UsageError for an unknown class.
        """
        if not name:
            return None if shift is None else cls("", shift)
        full_name = name if name.endswith(SUFFIX) else name + SUFFIX
        known = _names()
        if full_name not in known:
            close = get_close_matches(full_name, known, 3) or ["UniPCMultistepScheduler"]
            raise UsageError(
                f"diffusers has no scheduler {name!r}",
                f"do you mean {' or '.join(close)}?",
                code="unknown-name",
            )
        return cls(full_name, shift)

    def identity(self) -> dict[str, str]:
        """Entries of the identity of a model."""
        identity = {"scheduler": self.name} if self.name else {}
        return identity if self.shift is None else {**identity, "shift": f"{self.shift:g}"}

    def apply(self, pipeline: Any) -> None:
        """Replaces the pipeline's scheduler. Raises LoadError where it can't draw with this one."""
        own = getattr(pipeline, "scheduler", None)
        if own is None:
            raise LoadError(
                f"{type(pipeline).__name__} has no scheduler of its own: leave scheduler= and "
                "shift= out",
                code="unsupported",
            )
        pipeline.scheduler = self._made(own)

    def _made(self, own: Any) -> Any:
        import diffusers

        kind = getattr(diffusers, self.name) if self.name else type(own)
        settings = inspect.signature(kind.__init__).parameters
        changes: dict[str, Any] = {}
        shift = self.shift
        if _steps_flow(own) and not _is_flow(kind):
            if FLOW not in settings:
                raise LoadError(
                    f"{kind.__name__} can't step {type(own).__name__}'s model of flow matching: "
                    "choose UniPCMultistep, DPMSolverMultistep or a FlowMatch... scheduler",
                    code="unsupported",
                )
            changes = {FLOW: True, "prediction_type": "flow_prediction"}
            shift = getattr(own.config, "shift", None) if shift is None else shift
        elif _is_flow(kind) and not _steps_flow(own):
            raise LoadError(
                f"{kind.__name__} steps models of flow matching, and {type(own).__name__}'s "
                "predicts noise: choose another scheduler",
                code="unsupported",
            )
        if shift is not None:
            name = next((name for name in SHIFTS if name in settings), None)
            if name is None:
                raise LoadError(
                    f"{kind.__name__} has no shift: leave shift= out", code="unsupported"
                )
            changes[name] = shift
            if self.shift is not None and "use_dynamic_shifting" in settings:
                changes["use_dynamic_shifting"] = False  # it would take the shift's place
        return kind.from_config(own.config, **changes)


def _names() -> list[str]:
    import diffusers

    return [name for name in dir(diffusers) if name.endswith(SUFFIX)]


def _is_flow(kind: Any) -> bool:
    return str(kind.__name__).startswith("FlowMatch")


def _steps_flow(scheduler: Any) -> bool:
    return _is_flow(type(scheduler)) or bool(getattr(scheduler.config, FLOW, False))
