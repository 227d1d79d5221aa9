"""The command line's own rules: short commands, help with an example, options in panels."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from counterprior.cli.help import FURTHER
from counterprior.cli.help import PANELS as PANEL_ORDER
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


def panels(printed: str) -> list[str]:
    """Titles of the panels of a help page."""
    return re.findall(r"╭─ (.+?) ─", printed)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["eval", "corpus mine", "study run"], id="some"),
        pytest.param(list(FUNCTIONS), id="all", marks=pytest.mark.slow),
    ],
)
def test_help_fits_a_screen_and_help_all_has_every_option(
    names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a terminal of 100 columns; the panels come in one order."""
    monkeypatch.setenv("COLUMNS", "100")
    for name in names:
        short = CliRunner().invoke(app, [*name.split(), "--help"]).output
        assert len(short.splitlines()) <= 50, name
        options = [p for p in COMMANDS[name].params if p.opts[0].startswith("--") and not p.hidden]
        further = {p.opts[0] for p in options if p.rich_help_panel == FURTHER}
        shown = set(re.findall(r"│ \*? *(--[\w-]+)", short))
        assert shown == {p.opts[0] for p in options} - further | {"--help"}
        assert panels(short) == [p for p in ("Arguments", *PANEL_ORDER) if p in panels(short)]
        assert ("--help-all" in shown) == bool(further)
        if further:
            full = CliRunner().invoke(app, [*name.split(), "--help-all"])
            assert full.exit_code == 0
            assert set(re.findall(r"│ \*? *(--[\w-]+)", full.output)) == shown | further
    assert FURTHER in panels(full.output) and FURTHER not in panels(short)
