"""The state of a training that may be killed, in one file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ...errors import DataError, UsageError
from ...storage import write_whole


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Writes tensors and numbers by name; the file appears whole or stays as it was."""
    import torch

    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_whole(path, buffer.getvalue())


def load_state(path: Path, version: str, another: str) -> dict[str, Any] | None:
    """Reads what `save_state` wrote, on the CPU; None without a file.

    version: digest of data and settings, which the state has as `version`; another: what is wrong
    if it has another one. Raises UsageError for that, DataError for a damaged file.
    """
    import torch

    if not path.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds
        raise DataError(
            f"{path} is damaged: {error}: remove it to begin anew", code="damaged-file"
        ) from None
    if state["version"] != version:
        raise UsageError(f"{another}: choose another --out", code="another-run")
    return state
