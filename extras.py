"""Extras of the package: which brings a missing library, and the command that installs it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from urllib.parse import urlsplit
from urllib.request import url2pathname

from .errors import UsageError

EXTRAS = {
    "accelerate": "models",
    "anthropic": "agents",
    "diffusers": "models",
    "openai": "agents",
    "torch": "models",
    "transformers": "models",
}
"""Library -> extra that installs it."""


def install_command(extra: str) -> str:
    """Command that adds an extra to this installation, from where the package came.

    An index would bring another version, or none, to those who work in a checkout.
    """
    origin = json.loads(metadata.distribution("counterprior").read_text("direct_url.json") or "{}")
    url = origin.get("url", "")
    if origin.get("dir_info", {}).get("editable"):
        return f"pip install -e '{url2pathname(urlsplit(url).path)}[{extra}]'"
    if commit := origin.get("vcs_info", {}).get("commit_id"):
        url = f"{origin['vcs_info']['vcs']}+{url}@{commit}"
    return f"pip install 'counterprior[{extra}]{' @ ' + url if url else ''}'"


@contextmanager
def named_extras(kind: str) -> Iterator[None]:
    """Turns the import of a library that isn't installed into a UsageError that says what to do."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        raise UsageError(
            f"{kind} needs {library}, which is not installed",
            install_command(EXTRAS[library]),
            code="missing-library",
        ) from None
