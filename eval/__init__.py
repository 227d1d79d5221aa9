"""Scoring generators. `core` holds the nouns: read it first. This is the Python API.

Rooms, an arrow only upward: stats, core, rules, prompts, checkpoints, detectors, generators,
judges, suites, engine, results, people, studies, report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .core import (
        Case,
        Generator,
        ImageRequest,
        Judge,
        Outcome,
        Question,
        Score,
        Verdict,
    )
    from .studies.evaluation import Evaluated, PromptCase, evaluate, prompts

_CORE = ("Case", "Generator", "ImageRequest", "Judge", "Outcome", "Question", "Score", "Verdict")
_STUDIES = ("Evaluated", "PromptCase", "evaluate", "prompts")
__all__ = [
    "Case",
    "Evaluated",
    "Generator",
    "ImageRequest",
    "Judge",
    "Outcome",
    "PromptCase",
    "Question",
    "Score",
    "Verdict",
    "evaluate",
    "prompts",
]


def __getattr__(name: str) -> Any:
    # Lazy: whoever imports one room of eval doesn't pay for all of them.
    if name in _CORE:
        from . import core

        return getattr(core, name)
    if name in _STUDIES:
        from .studies import evaluation

        return getattr(evaluation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
