"""Writes the pages of the site into build/docs: those of docs/, and references made from the code.

python tools/docs_site.py && mkdocs build --strict      # what `make docs` runs

The references and the tables of options and papers are written anew each time and never committed.
A symbolic link to each room lets the site's builder read the docstrings without importing the
package.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import option_tables
import papers_page
from typer.main import get_command

from counterprior.cli.main import app

ROOT = Path(__file__).parents[1]
ROOT_PAGES = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
MODULES = {
    "counterprior": ("The package", ["counterprior"]),
    "core": ("Nouns of evaluation", ["eval.core"]),
    "suites": ("Suites and scores", ["eval.suites"]),
    "adapters": (
        "Generators, judges and other adapters",
        [
            *("eval.generators", "eval.judges", "eval.captioners", "eval.detectors"),
            *("eval.scorers", "eval.methods"),
        ],
    ),
    "statistics": ("Statistics and geometry", ["eval.stats", "eval.geometry"]),
    "runs": (
        "Runs, results and studies",
        ["eval.api", "eval.engine", "eval.store", "eval.results", "eval.studies", "eval.selftest"],
    ),
    "people": (
        "People and reports",
        ["eval.people", "eval.report", "eval.publishing"],
    ),
    "release": (
        "Rows and releases",
        ["schema", "release", "human_labels", "parsing", "specs", "errors", "builders", "cards"],
    ),
    "content": (
        "Agents, corpora and drawings",
        ["agents", "corpus_analysis", "scenes"],
    ),
}
"""Page -> title and the rooms whose modules it has."""


def write_site(out: Path) -> None:
    """Pages, figures and references, in a folder that is replaced."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(ROOT / "docs", out)
    for name in ROOT_PAGES:
        text = (ROOT / name).read_text().replace("](docs/", "](").replace("[docs/", "[")
        for other in ROOT_PAGES:
            text = text.replace(f"]({other})", f"]({other.lower()})")
        (out / name.lower()).write_text(text)
    titles = {page.name: _title(page.read_text()) for page in out.rglob("*.md")}
    for page in out.rglob("*.md"):
        text = papers_page.with_tables(option_tables.with_tables(page.read_text()))
        page.write_text(_with_titles(text, titles))
    for name, text in (*command_pages(), *module_pages()):
        (out / "reference" / name).parent.mkdir(parents=True, exist_ok=True)
        (out / "reference" / name).write_text(text)
    _link_package(out.parent / "package" / "counterprior")


def _title(text: str) -> str:
    return next(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))


def _with_titles(text: str, titles: Mapping[str, str]) -> str:
    """The page with links called by the titles of their pages instead of their files."""

    def called(found: re.Match[str]) -> str:
        title = titles.get(found[1].rpartition("/")[2].lower())
        return f"[{title}]({found[2]})" if title else found[0]

    return re.sub(r"\[([\w/-]+\.md)\]\(([^)]+)\)", called, text)


def command_pages() -> Iterator[tuple[str, str]]:
    """Name and text of the index of commands, and of a page for each panel of the help."""
    panels: dict[str, list[tuple[str, Any]]] = {}
    group: Any = get_command(app)
    for name, command in group.commands.items():
        nested = getattr(command, "commands", None)
        entries = [(f"{name} {n}", c) for n, c in nested.items()] if nested else [(name, command)]
        title = f"counterprior {name}" if nested else str(command.rich_help_panel)
        panels.setdefault(title, []).extend(entries)
    index = [
        "# Command line",
        "",
        "`counterprior COMMAND --help` prints the same in a terminal.",
        "",
    ]
    for title, commands in panels.items():
        page = f"cli-{_slug(title)}.md"
        index += [f"## {title}", "", "| command | what it does |", "| --- | --- |"]
        for name, command in commands:
            target = f"{page}#{_slug(f'counterprior {name}')}"
            index.append(f"| [`{name}`]({target}) | {_cell(_summary(command))} |")
        index.append("")
        yield (
            page,
            "\n".join([f"# {title}", "", *(line for c in commands for line in _command(*c))]),
        )
    yield "cli.md", "\n".join(index)


def _command(name: str, command: Any) -> Iterator[str]:
    yield from (f"## `counterprior {name}`", "", _summary(command), "")
    rest = [part.strip() for part in (command.help or "").split("\n\n")[1:]]
    for part in rest:
        examples = re.findall(r"`(counterprior [^`]*)`", part) if "Example" in part[:9] else []
        if examples:
            yield from (
                "```console",
                *(f"$ {_one_line(example)}" for example in examples),
                "```",
                "",
            )
        else:
            yield from (_escaped(_one_line(part.removeprefix("\b"))), "")
    parameters = [
        p for p in command.params if not getattr(p, "hidden", False) and p.name != "help_all"
    ]
    if parameters:
        yield from ("| option | default | what it is |", "| --- | --- | --- |")
        yield from map(_parameter, parameters)
        yield ""


def _parameter(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    flags = [*parameter.opts, *parameter.secondary_opts] if is_option else []
    shown = " ".join(map(_flag, flags)) or _flag(parameter.name.upper())
    default = parameter.default
    if parameter.required:
        default = "required"
    elif default in (None, "", (), [], False) or callable(default):
        default = ""
    else:
        default = _flag(_plain(default))
    return f"| {shown} | {default} | {_cell(getattr(parameter, 'help', None) or '')} |"


def _flag(text: str) -> str:
    """Code that a narrow cell does not break."""
    return f"`{text}`{{ .flag }}"


def _plain(default: Any) -> str:
    return ", ".join(map(str, default)) if isinstance(default, (list, tuple)) else str(default)


def module_pages() -> Iterator[tuple[str, str]]:
    """Name and text of the index of modules, and of each page that the builder fills."""
    index = [
        "# Modules",
        "",
        "The names that `import counterprior` offers are on the first page. The others follow the "
        "rooms of the [architecture](../architecture.md).",
        "",
        "| page | modules |",
        "| --- | --- |",
    ]
    for name, (title, rooms) in MODULES.items():
        modules = [module for room in rooms for module in _modules(room)]
        index.append(f"| [{title}](api-{name}.md) | {', '.join(f'`{room}`' for room in rooms)} |")
        yield f"api-{name}.md", "\n\n".join([f"# {title}", *map(_module, modules)]) + "\n"
    yield "api.md", "\n".join(index) + "\n"


def _modules(room: str) -> list[str]:
    """A room's modules by dotted name, those with nothing to say left out."""
    if room == "counterprior":
        return ["counterprior"]
    path = ROOT.joinpath(*room.split("."))
    if not path.is_dir():
        return [f"counterprior.{room}"]
    files = sorted(path.rglob("*.py"), key=lambda file: (file.parent, file.name != "__init__.py"))
    return [
        ".".join(["counterprior", *file.relative_to(ROOT).with_suffix("").parts]).removesuffix(
            ".__init__"
        )
        for file in files
    ]


def _module(name: str) -> str:
    members = "all" if name == "counterprior" else "own"
    heading = f"## `{name}`\n\n::: {name}\n    options:\n      show_root_heading: false"
    return heading + ("\n      members: " + _public() if members == "all" else "")


def _public() -> str:
    import counterprior

    return "[" + ", ".join(n for n in counterprior.__all__ if not n.startswith("_")) + "]"


def _link_package(folder: Path) -> None:
    """The package's own files under its name: the checkout may be called anything."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in ROOT.iterdir():
        if path.suffix == ".py" or (path / "__init__.py").is_file():
            (folder / path.name).symlink_to(path)


def _summary(command: Any) -> str:
    return _one_line((command.help or "").split("\n\n")[0])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", r"\*")


def _cell(text: str) -> str:
    return _escaped(_one_line(text)).replace("|", r"\|")


if __name__ == "__main__":
    write_site(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs")
