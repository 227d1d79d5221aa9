"""Study files that ship: one for each table of a paper, a file in `recipes/` and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from ...errors import UsageError
from .spec import StudyFile, parse_study, read_study, unknown
from .table_layout import TableLayout


@dataclass(frozen=True)
class Recipe:
    """A study file with its table."""

    name: str
    text: str
    """The file, ready to be written."""
    study: StudyFile

    @property
    def title(self) -> str:
        """Title of its table; empty without a table."""
        return self.study.table.title if self.study.table else ""


@cache
def recipe_names() -> tuple[str, ...]:
    """Names of all recipes, sorted."""
    folder = resources.files(__package__) / "recipes"
    files = (file.name for file in folder.iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml")))


@cache
def read_recipe(name: str) -> Recipe:
    """Reads a recipe. Raises UsageError for an unknown name."""
    if name not in recipe_names():
        raise UsageError(unknown("recipe", name, recipe_names()), code="unknown-name")
    file = resources.files(__package__) / "recipes" / f"{name}.yaml"
    text = file.read_text("utf-8")
    return Recipe(name, text, parse_study(text, f"{name}.yaml"))


def find_study(name: str) -> StudyFile:
    """Returns the study file of a recipe, or the user's own, which ends in `.yaml` or `.yml`.

    Raises UsageError for an unknown recipe, StudyError for a bad file.
    """
    is_file = name.endswith((".yaml", ".yml"))
    return read_study(Path(name)) if is_file else read_recipe(name).study


def find_layout(name: str) -> TableLayout:
    """Returns the table of a recipe, or of the user's study file.

    Raises UsageError for an unknown recipe, and for a file without a `table`.
    """
    layout = find_study(name).table
    if layout is None:
        raise UsageError(f"{name} has no `table`", code="no-table")
    return layout
