"""The command line's own rules: short commands, help with an example, options in panels."""

from collections.abc import Callable, Iterator
from typing import Any

from typer.main import get_command

from counterprior.cli.main import AUDIT, AUTHOR, CORPUS, ORGANISM, PANELS, SPATIAL, STUDY, app

GROUPS = {
    "study": STUDY,
    "spatial": SPATIAL,
    "audit": AUDIT,
    "organism": ORGANISM,
    "corpus": CORPUS,
    "author": AUTHOR,
}
FUNCTIONS: dict[str, Callable[..., None]] = {
    **{name: function for commands in PANELS.values() for name, function in commands.items()},
    **{
        f"{group} {name}": function
        for group, commands in GROUPS.items()
        for name, function in commands.items()
    },
}


def walk(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    for word, below in getattr(command, "commands", {}).items():
        yield f"{name} {word}".strip(), below
        yield from walk(below, f"{name} {word}".strip())


COMMANDS = dict(walk(get_command(app)))


def test_every_command_is_in_a_table() -> None:
    assert set(COMMANDS) == {*FUNCTIONS, *GROUPS}


def test_help_of_every_command_has_an_example() -> None:
    missing = [
        name
        for name, command in COMMANDS.items()
        if f"Example: `counterprior {name}" not in (command.help or "")
    ]
    assert not missing


def test_every_option_has_help_and_a_panel() -> None:
    wrong = [
        f"{name}: {parameter.name}"
        for name in FUNCTIONS
        for parameter in COMMANDS[name].params
        if not parameter.hidden and parameter.name != "help"
        if not parameter.help
        or not (parameter.param_type_name == "argument" or parameter.rich_help_panel)
    ]
    assert not wrong
