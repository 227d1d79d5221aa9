"""Does an image generator follow the prompt, or its prior?

`evaluate` scores a generator on a suite, `run_study` many of both; `prompts` lists what a suite
asks to draw, `load` reads a config of a release and `verify` checks all of it. Everything else is
the `counterprior` command.
The folders of the repository are the parts of the package: ``agents/`` is ``counterprior.agents``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import CounterpriorError
    from .eval.api import Evaluated, PromptCase, evaluate, prompts
    from .eval.core import (
        Case,
        Generator,
        GeneratorError,
        ImageRequest,
        Judge,
        Outcome,
        Question,
        Score,
        Verdict,
    )
    from .eval.studies.runner import run_study
    from .release import load, verify

__version__ = "0.1.0"
__all__ = [
    "Case",
    "CounterpriorError",
    "Evaluated",
    "Generator",
    "GeneratorError",
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
    "run_study",
    "verify",
]
_ELSEWHERE = {
    "CounterpriorError": ".errors",
    "load": ".release",
    "run_study": ".eval.studies.runner",
    "verify": ".release",
    **dict.fromkeys(("Evaluated", "PromptCase", "evaluate", "prompts"), ".eval.api"),
}
"""Name -> module, for those that are not nouns of `eval.core`."""


def __getattr__(name: str) -> Any:
    # Lazy, because `datasets` costs most of a second and `counterprior --help` must not pay it.
    if name not in __all__:
        raise AttributeError(f"module 'counterprior' has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE.get(name, ".eval.core"), __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
