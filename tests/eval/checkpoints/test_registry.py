"""A registry opens what a spec names, and refuses what the adapter doesn't declare."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import pytest
from pydantic import Field
from refusals import raises

from counterprior.eval.checkpoints.registry import Registry, RegistryEntry
from counterprior.specs import DefaultText, Options, Seconds, Spec, TextForm, Unit


class BrushOptions(Options):
    """Options of `brush`."""

    width: Annotated[int, Field(ge=1, le=9), Unit("pixels")] = 3
    """Width of a line,
    on paper."""
    wait: Seconds | None = None
    """Time to dry."""
    ink: Literal["black", "red"] = "black"
    wet: Annotated[bool, DefaultText("as the ink")] = False
    name: Annotated[str, Field(alias="brush.name")] = ""
    paper: Annotated[str, TextForm("the name of a paper")]


class Brush:
    """Takes everything."""

    argument: ClassVar[str] = "MODEL[@URL]"
    options: ClassVar[type[Options]] = BrushOptions

    def __init__(self, *made_of: object) -> None:
        self.made_of = made_of

    @classmethod
    def from_spec(cls, spec: Spec, options: BrushOptions, *context: object) -> Self:
        return cls(spec.argument, options, *context)


class Pencil(Options, extra="allow"):
    """Is its own options, and takes others."""

    argument: ClassVar[str] = "[MODEL]"
    undeclared: ClassVar[str] = "options of the eraser"

    hardness: int = 2


class Chalk:
    """Takes nothing."""


TOOLS: Registry[object] = Registry(
    "tool",
    {
        "brush": f"{__name__}:Brush",
        "chalk": f"{__name__}:Chalk",
        "pencil": RegistryEntry(f"{__name__}:Pencil", paid=True),
        "crayon": RegistryEntry(f"{__name__}:Brush", argument="[COLOR]"),
    },
    protocol=Chalk,
    wrappers={Mapping: lambda value, identity: dict(value), Callable: lambda *made_of: made_of},
    accepts="a function",
    removed={"quill": "use a brush"},
)


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Brush.__module__])


def test_opens_an_adapter_with_typed_options() -> None:
    text = "brush:ink@http://host/v1?width=4&wait=1.5&wet=true&brush.name=a%20b&paper=rag"
    brush = TOOLS.open(text, "plan")
    assert isinstance(brush, Brush)
    argument, options, plan = brush.made_of
    assert argument == "ink@http://host/v1" and plan == "plan"
    assert isinstance(options, BrushOptions)
    assert (options.width, options.wait, options.ink, options.wet) == (4, 1.5, "black", True)
    assert options.texts() == {
        **{"width": "4", "wait": "1.5", "ink": "black", "wet": "true"},
        **{"brush.name": "a b", "paper": "rag"},
    }
    assert options.texts(changed=True).keys() == {"width", "wait", "wet", "brush.name", "paper"}
    assert isinstance(TOOLS.open("chalk"), Chalk) and isinstance(TOOLS.open("chalk:"), Chalk)


def test_options_may_be_the_adapter_and_pass_others_on() -> None:
    pencil = TOOLS.open("pencil:?size=1&hardness=5&color=red")
    assert isinstance(pencil, Pencil) and pencil.hardness == 5
    assert list(pencil.rest.items()) == [("size", "1"), ("color", "red")]


@pytest.mark.parametrize(
    ("text", "code", "facts"),
    [
        ("brush:m?widht=3", "unknown-option", ["'widht'", "did you mean width", "brush.name"]),
        ("brush:m?name=a", "unknown-option", ["'name'", "brush.name"]),
        ("chalk:?size=1", "unknown-option", ["chalk", "'size'"]),
        ("brush:m?width=0&paper=a", "bad-option", ["width", "pixels", "1", "9", "'0'"]),
        ("brush:m?width=2.5&paper=a", "bad-option", ["a whole number", "'2.5'"]),
        ("brush:m?wait=nan&paper=a", "bad-option", ["seconds above 0", "'nan'"]),
        ("brush:m?wait=inf&paper=a", "bad-option", ["seconds above 0", "'inf'"]),
        ("brush:m?ink=blue&paper=a", "bad-option", ["black or red", "'blue'"]),
        ("brush:m?wet=maybe&paper=a", "bad-option", ["true or false", "'maybe'"]),
        ("brush:m", "missing-option", ["paper", "the name of a paper"]),
        ("brush:?paper=a", "missing-option", ["brush:MODEL[@URL]"]),
        ("chalk:white", "bad-spec", ["chalk", "'white'"]),
        ("brsh:m", "unknown-name", ["tool", "'brsh'", "did you mean brush", "chalk", "python"]),
        ("quill:goose", "removed-name", ["tool", "'quill'", "use a brush"]),
    ],
)
def test_refuses_what_is_not_declared(text: str, code: str, facts: list[str]) -> None:
    with raises(code, *facts):
        TOOLS.open(text)


def test_refuses_a_paid_adapter_without_a_call_plan() -> None:
    assert TOOLS.paid == {"pencil"}
    with raises("missing-option", "pencil"):
        TOOLS.open("pencil", None)


def test_adapts_python_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert TOOLS.adapt(len, identity="v1") == (len, "v1")
    assert isinstance(TOOLS.adapt("chalk"), Chalk)
    assert TOOLS.adapt(chalk := Chalk()) is chalk
    assert TOOLS.adapt({"a": 1}) == {"a": 1}
    with raises("wrong-type", "7", "tool", "a function"):
        TOOLS.adapt(7)
    (tmp_path / "plugged.py").write_text("def make(size):\n    return lambda: size * 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    made, identity = TOOLS.open("python:plugged:make?size=ab")  # type: ignore[misc]
    assert made() == "abab"
    assert identity == {"name": "plugged:make?size=ab", "version": "unversioned"}


def test_declares_each_option_for_tables() -> None:
    rows = {row.name: row for row in TOOLS.options("brush").declared()}
    assert list(rows) == ["width", "wait", "ink", "wet", "brush.name", "paper"]
    assert rows["width"].form == "a whole number of pixels from 1 to 9"
    assert rows["width"].default == "3" and not rows["width"].required
    assert rows["width"].help == "Width of a line, on paper."
    assert rows["wait"].form == "a number of seconds above 0" and rows["wait"].default == ""
    assert rows["paper"].form == "the name of a paper" and rows["paper"].required
    assert rows["wet"].default == "as the ink" and not BrushOptions(paper="rag").wet
    assert TOOLS.argument("crayon") == "[COLOR]" and TOOLS.argument("brush") == "MODEL[@URL]"
    assert TOOLS.argument("pencil") == "[MODEL]" and TOOLS.options("chalk") is Options
