"""Does an image generator follow the prompt, or its prior?

Read a release with `counterprior.load`, check one with `counterprior.verify`; everything else is
the `counterprior` command. The folders of the repository are the parts of the package: ``agents/``
is ``counterprior.agents``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .release import load, verify

__all__ = ["__version__", "load", "verify"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Lazy, because `datasets` costs most of a second and `counterprior --help` must not pay it.
    if name in ("load", "verify"):
        from . import release

        return getattr(release, name)
    raise AttributeError(f"module 'counterprior' has no attribute {name!r}")
