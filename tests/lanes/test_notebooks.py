"""The notebooks of examples/ run from top to bottom, one also on a tiny diffusion model."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT

pytestmark = pytest.mark.lane
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Any]:
    """A notebook in an empty folder, in a kernel of this Python; the notebook with its outputs."""
    nbclient = pytest.importorskip("nbclient", reason="pip install 'counterprior[docs]'")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    bin_ = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}{os.environ['PATH']}")

    def run(path: Path) -> Any:
        book = nbformat.read(path, 4)
        assert not any(cell.get("outputs") for cell in book.cells), "clear its outputs"
        where = {"metadata": {"path": str(tmp_path)}}
        nbclient.NotebookClient(book, timeout=600, resources=where).execute()
        return book

    return run


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, run: Callable[[Path], Any]) -> None:
    book = run(path)
    assert all(cell.execution_count for cell in book.cells if cell.cell_type == "code")


def test_methods_are_compared_on_a_diffusion_model(
    run: Callable[[Path], Any], checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = checkpoint("sd15")
    monkeypatch.setenv("COUNTERPRIOR_MODEL", f"diffusers:{model}?steps=4&width=32&height=32")
    monkeypatch.setenv("COUNTERPRIOR_ROWS", "2")
    run(ROOT / "examples" / "fight_the_prior.ipynb")
