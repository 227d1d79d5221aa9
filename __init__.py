"""Does an image generator follow the prompt, or its prior?

`evaluate` scores a generator on a suite, `prompts` lists what a suite asks to draw, `load` reads a
config of a release and `verify` checks all of it. Everything else is the `counterprior` command.
The folders of the repository are the parts of the package: ``agents/`` is ``counterprior.agents``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import CounterpriorError
    from .eval import (
        Case,
        Evaluated,
        Generator,
        ImageRequest,
        Judge,
        Outcome,
        PromptCase,
        Question,
        Score,
        Verdict,
        evaluate,
        prompts,
    )
    from .release import load, verify

__version__ = "0.1.0"
__all__ = [
    "Case",
    "CounterpriorError",
    "Evaluated",
    "Generator",
    "ImageRequest",
    "Judge",
    "Outcome",
    "PromptCase",
    "Question",
    "Score",
    "Verdict",
    "__version__",
    "evaluate",
    "load",
    "prompts",
    "verify",
]


def __getattr__(name: str) -> Any:
    # Lazy, because `datasets` costs most of a second and `counterprior --help` must not pay it.
    if name not in __all__:
        raise AttributeError(f"module 'counterprior' has no attribute {name!r}")
    room = {"load": "release", "verify": "release", "CounterpriorError": "errors"}.get(name, "eval")
    return getattr(import_module(f".{room}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
