"""One hostile text through every writer, and secrets that no identity, file or message shows."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from counterprior.cli.console import new_table, print_json, print_note, printing, safe_console
from counterprior.errors import DataError
from counterprior.eval.publishing.card import plain_cell
from counterprior.eval.report.single_page import single_page
from counterprior.eval.report.single_page import table as html_table
from counterprior.eval.studies.folder import StudyModels
from counterprior.eval.studies.formats import FORMS, format_table
from counterprior.eval.studies.preflight import Workload
from counterprior.eval.studies.spec import parse_study
from counterprior.eval.studies.table import StudyTable
from counterprior.eval.studies.table_lines import Heading, TableEntry, TableLine
from counterprior.parsing import read_yaml
from counterprior.printable import markdown_text, printable
from counterprior.specs import Spec, without_secrets

HOSTILE = (
    "\x1b[31mred\x1b]0;title\x07 \u202egnp.exe \u2066x\u2069 \x9b2J :boom: [bold]b[/bold] "
    "[x](javascript:1) \\input{a} \ufeff\u200b\U000e0041 a\rb"
)
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff\U000e0041]")


def in_form(form: str) -> Callable[[], str]:
    def write() -> str:
        cell = TableEntry(None, gap=HOSTILE, notes=(1,))
        table = StudyTable(
            title=HOSTILE,
            rows="generator",
            columns=(Heading(HOSTILE, HOSTILE, (HOSTILE,), HOSTILE, HOSTILE),),
            lines=(TableLine(HOSTILE, HOSTILE, (cell,)),),
            source=HOSTILE,
            notes=(HOSTILE,),
            remarks=(HOSTILE,),
        )
        return format_table(table, form)

    return write


def printed(show: Callable[[], object]) -> str:
    """What lands on a terminal."""
    streams, terminal = (sys.stdout, sys.stderr), io.StringIO()
    sys.stdout = sys.stderr = terminal
    try:
        with printing():
            show()
    finally:
        sys.stdout, sys.stderr = streams
    return terminal.getvalue()


def in_a_table() -> None:
    table = new_table(HOSTILE, title=HOSTILE)
    table.add_row(HOSTILE)
    safe_console(width=200).print(table)
    safe_console(width=200).print(HOSTILE)


WRITERS: dict[str, Callable[[], str]] = {
    **{form: in_form(form) for form in FORMS},
    "a card": lambda: plain_cell(HOSTILE),
    "a page": lambda: single_page(HOSTILE, [html_table([HOSTILE], [[HOSTILE]])]),
    "a line": lambda: printed(lambda: print(HOSTILE)),
    "a note": lambda: printed(lambda: print_note(HOSTILE)),
    "JSON": lambda: printed(lambda: print_json({HOSTILE: HOSTILE})),
    "a table": lambda: printed(in_a_table),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_text_stays_a_text(writer: str) -> None:
    written = WRITERS[writer]()
    assert not RAW.search(written), written
    assert "gnp.exe" in written
    if writer in ("a table", "a line", "a note"):
        assert ":boom:" in written and "[bold]b" in written
    if writer in ("md", "a card"):
        assert not re.search(r"(?<!\\)\]\(", written)
    if writer == "tex":
        assert r"\input{a}" not in written and not re.search(r"\\u[0-9a-f]{4}", written)
    if writer in ("JSON", "json"):
        json.loads(written)


def test_colors_of_our_own_stay() -> None:
    terminal = io.StringIO()
    console = safe_console(width=80)
    console.file = terminal
    console._color_system = None
    console.print(Text("red", style="red"))
    assert terminal.getvalue() == "red\n"


def test_what_is_plain_stays_as_it_is() -> None:
    for plain in ("a cat — une chatte 🐈 猫\n\tقطة", "one\r\ntwo", "95.1 [90, 97]"):
        assert printable(plain) == plain
    assert markdown_text("openai:m at 12:30, 95.1 [90, 97]") == "openai:m at 12:30, 95.1 [90, 97]"


KEY, PASSWORD = "extrasecret1", "studypw"
SPEC = f"openai-image:m@http://me:{PASSWORD}@127.0.0.1:9/v1?extra.api_key={KEY}&extra.steps=4"


def hidden(text: str) -> bool:
    return KEY not in text and PASSWORD not in text


def test_no_secret_is_an_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    from counterprior.eval.checkpoints.registry import spec_identity
    from counterprior.eval.generators import open_generator

    monkeypatch.setenv("OPENAI_API_KEY", "k")
    generator: Any = open_generator(SPEC)
    generator._served.__dict__["_served"] = {}
    identity = generator.identity()
    assert hidden(json.dumps(identity)) and identity["steps"] == "4"
    assert generator._served.call["api_key"] == KEY  # it is still sent
    assert hidden(str(spec_identity(Spec.parse(f"python:mine:make?api_key={KEY}"))))


def test_no_secret_is_in_a_studys_files_and_plans(tmp_path: Path) -> None:
    models = StudyModels(tmp_path)
    for _ in range(2):  # the second time it is the same model
        models.remember("generators", "g", SPEC, {"kind": "x"})
    assert hidden((tmp_path / "study.json").read_text())
    workload = Workload(SPEC, SPEC, "images", 1)
    assert hidden(str(workload)) and hidden(str(replace(workload, count=2)))
    assert hidden(printed(lambda: print_note(f"no generator {SPEC!r}")))
    assert without_secrets("openai:m?max_tokens=5&seed=7") == "openai:m?max_tokens=5&seed=7"


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefghij", "bcdefghijk", strict=True)
)
DEEP = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 80))
GRAPHS = {
    "laughs": (LAUGHS, "100,000 values"),
    "laughs by merging": (LAUGHS + "z:\n  <<: {a: *i}\n", "100,000 values"),
    "depth": (DEEP, "64 levels"),
    "itself": ("a: &a [*a]\n", "before its end"),
    "itself, through another": ("a: &a {b: &b [*a]}\n", "before its end"),
    "unknown": ("a: *b\nc: &d 1\n", "before its end"),
    "keys": ("? &a [x, x]\n: &b {c: *a}\n" + LAUGHS, "100,000 values"),
}


@pytest.mark.parametrize("graph", GRAPHS)
def test_aliases_are_bounded(graph: str, tmp_path: Path) -> None:
    text, reason = GRAPHS[graph]
    path = tmp_path / "file.yaml"
    path.write_text(text)
    readers: list[Callable[[], object]] = [
        lambda: read_yaml(path),
        lambda: parse_study(text, str(path)),
    ]
    for read in readers:
        with pytest.raises(DataError) as refused:
            read()
        assert reason in str(refused.value) and "file.yaml" in str(refused.value)


def test_a_few_aliases_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text("a: &a {x: 1}\nb: [*a, *a]\nc:\n  <<: *a\n  y: 2\n")
    assert read_yaml(path) == {"a": {"x": 1}, "b": [{"x": 1}] * 2, "c": {"x": 1, "y": 2}}
