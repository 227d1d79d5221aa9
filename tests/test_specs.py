"""Specs parse to what they were written from, and `python:` finds the user's own code."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises

from counterprior.errors import UsageError
from counterprior.specs import Spec, load_factory

TEXT = st.text(max_size=20)
SPECS = st.builds(
    Spec,
    kind=TEXT.filter(lambda text: text and not set(text) & {":", "?"}),
    argument=TEXT.filter(lambda text: "?" not in text),
    options=st.dictionaries(TEXT, TEXT, max_size=4),
)

PLUGIN = """
BETA = "no function"


class Judge:
    def __init__(self, model="m", beta="1"):
        self.made = (model, float(beta))

    @classmethod
    def strict(cls):
        return cls(model="strict")


def lazy():
    import missing_dependency
"""


@given(SPECS)
def test_a_spec_parses_to_what_it_was_written_from(spec: Spec) -> None:
    assert Spec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", ("bad-spec", "kind:argument")),
        (":folder", ("bad-spec", ":folder")),
        ("render:?color", ("bad-spec", "render:?color")),
        ("render:?a=1&a=2", ("duplicate-option", "render:?a=1&a=2")),
    ],
)
def test_a_bad_spec_is_refused(text: str, reason: tuple[str, ...]) -> None:
    with raises(*reason, error=UsageError):
        Spec.parse(text)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a package of the user's, where the command is run."""
    package = tmp_path / "own_code"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "judges.py").write_text(PLUGIN)
    (package / "torn.py").write_text("x = 1\ny = x / 0\n")
    (package / "needy.py").write_text("import missing_dependency\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    yield package
    for name in [name for name in sys.modules if name.split(".")[0] == "own_code"]:
        del sys.modules[name]


def test_a_factory_gets_its_options_as_text(plugin: Path) -> None:
    made = load_factory(Spec.parse("python:own_code.judges:Judge?beta=0.5&model=org/x%20y"))
    assert made.made == ("org/x y", 0.5)  # type: ignore[attr-defined]
    strict = load_factory(Spec.parse("python:own_code.judges:Judge.strict"))
    assert strict.made == ("strict", 1.0)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("own_code.judges", ("bad-spec", "write python:MODULE:FACTORY")),
        (":Judge", ("bad-spec", "write python:MODULE:FACTORY")),
        ("other_code:Judge", ("no-such-module", "other_code")),
        ("own_code.absent:Judge", ("no-such-module", "own_code.absent")),
        ("own_code.needy:Judge", ("missing-library", "own_code.needy", "missing_dependency")),
        ("own_code.torn:Judge", ("factory-failed", "torn.py", "2")),
        ("own_code.judges:Jury", ("no-such-module", "own_code.judges", "judges.py", "Jury")),
        ("own_code.judges:BETA", ("wrong-type", "own_code.judges", "BETA", "str")),
        ("own_code.judges:Judge?gamma=1", ("factory-failed", "gamma", "1")),
        ("own_code.judges:Judge?beta=x", ("factory-failed", "x", "judges.py", "7")),
        ("own_code.judges:lazy", ("factory-failed", "missing_dependency")),
    ],
)
def test_rejects_factories_that_cannot_be_called(
    plugin: Path, argument: str, reason: tuple[str, ...]
) -> None:
    with raises(*reason, error=UsageError):
        load_factory(Spec.parse(f"python:{argument}"))
