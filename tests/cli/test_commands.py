"""The command line's own rules: short commands, help with an example, options in panels."""

import ast
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.main import get_command

from counterprior.cli.main import AUDIT, AUTHOR, PANELS, STUDY, app

FUNCTIONS: dict[str, Callable[..., None]] = {
    **{name: function for commands in PANELS.values() for name, function in commands.items()},
    **{f"author {name}": function for name, function in AUTHOR.items()},
    **{f"audit {name}": function for name, function in AUDIT.items()},
    **{f"study {name}": function for name, function in STUDY.items()},
}


def walk(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    for word, below in getattr(command, "commands", {}).items():
        yield f"{name} {word}".strip(), below
        yield from walk(below, f"{name} {word}".strip())


COMMANDS = dict(walk(get_command(app)))


def test_every_command_is_in_a_table() -> None:
    assert set(COMMANDS) == {*FUNCTIONS, "author", "audit", "study"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_command_only_passes_its_options_on(name: str) -> None:
    # Counted in statements: an option that is passed on is a line, and no logic.
    (function,) = ast.parse(inspect.getsource(FUNCTIONS[name])).body
    assert isinstance(function, ast.FunctionDef)
    statements = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.stmt) and not isinstance(node, ast.ImportFrom)
    ]
    assert len(statements) - 2 <= 11  # less itself and its docstring


@pytest.mark.parametrize("name", COMMANDS)
def test_its_help_has_an_example(name: str) -> None:
    assert f"Example: `counterprior {name}" in (COMMANDS[name].help or "")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_its_options_have_help_and_a_panel(name: str) -> None:
    for parameter in COMMANDS[name].params:
        if not parameter.hidden and parameter.name != "help":
            assert parameter.help, parameter.name
            assert parameter.param_type_name == "argument" or parameter.rich_help_panel, (
                parameter.name
            )
