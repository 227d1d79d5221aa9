"""Every page of the documentation: its commands parse, its blocks can be run, the menu has it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml
from pages import PAGES, ROOT, blocks, console, fault, words_of
from typer.main import get_command

from counterprior.cli.main import app
from counterprior.errors import CounterpriorError
from counterprior.eval.studies.spec import parse_study

LANGUAGES = set("console sh python yaml json csv text diff".split())
sys.path.append(str(ROOT / "tools"))


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def block_faults(page: Path) -> Iterator[str]:
    for block in blocks(page):
        where = f"{name(page)}:{block.line}"
        if block.language not in LANGUAGES:
            yield f"{where}: {block.language!r} is nothing that a test knows"
        try:
            if block.language == "yaml":
                plain = yaml.load(block.code, yaml.CSafeLoader)
                if "suites" in plain:
                    parse_study(block.code, where)
            elif block.language == "python" and ">>>" not in block.code:
                ast.parse(block.code)
        except (yaml.YAMLError, SyntaxError, CounterpriorError) as error:
            yield f"{where}: {error}"


def test_blocks_can_be_run_and_commands_exist() -> None:
    group = get_command(app)
    found = [why for page in PAGES for why in block_faults(page)]
    for page in PAGES:
        for words in filter(None, map(words_of, console(page))):
            if why := fault(words, group):
                found.append(f"{name(page)}: counterprior {' '.join(words)}: {why}")
    assert found == []


def test_the_check_of_commands_can_fail() -> None:
    group = get_command(app)
    assert "no command 'evaluate'" in fault(["evaluate"], group)
    assert "--generatr" in fault(["eval", "--generatr", "render:"], group)
    assert "--out is missing" in fault(["prompts", "--suite", "x"], group)
    assert "what is" in fault(["prompts", "--suite", "x", "--out", "y", "z"], group)
    assert "no command 'go'" in fault(["study", "go"], group)
    assert "takes no such kind" in fault(["judge", "runs/x", "--judge", "openia:MODEL"], group)


def test_every_page_is_in_the_menu() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    menu = set(re.findall(r": ([\w/-]+\.md)$", text, re.MULTILINE))
    written = {name(page).removeprefix("docs/") for page in PAGES if "docs" in page.parts}
    assert written <= menu
    made = {page for page in menu - written if not page.startswith("reference/")}
    assert {page.lower() for page in made} == {
        *("changelog.md", "code_of_conduct.md", "contributing.md", "security.md"),
    }


def test_the_page_of_options_has_a_table_for_each_registry() -> None:
    import option_tables

    page = option_tables.with_tables((ROOT / "docs" / "options.md").read_text())
    for registry in option_tables.REGISTRIES.values():
        for kind in registry:
            assert f"`{kind}:{registry.argument(kind)}`" in page, kind
            for option in registry.options(kind).declared():
                assert f"| `{option.name}`{{ .flag }} |" in page, (kind, option.name)
    for metric in option_tables.METRICS:
        assert f"| `{metric}` |" in page
    assert "<!-- options" not in page and "<!-- metrics" not in page


def test_figures_of_concepts_are_what_their_tool_draws() -> None:
    import concept_figures

    for figure in concept_figures.FIGURES:
        drawn = (ROOT / "docs" / "concepts" / f"{figure}.svg").read_text()
        assert drawn == concept_figures.draw(figure), f"run tools/concept_figures.py ({figure})"
