"""Examples run, in docstrings and in docs/python.md; commands and adapters are documented."""

import doctest
import importlib
import pkgutil
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

import counterprior
from counterprior.cli.main import app
from counterprior.eval.generators import GENERATORS
from counterprior.eval.judges import JUDGES
from counterprior.eval.methods import METHODS
from counterprior.eval.scorers import SCORERS
from counterprior.eval.scorers.features import EXTRACTORS

ROOT = Path(__file__).parents[1]
EXAMPLES = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = [m.name for m in pkgutil.walk_packages(counterprior.__path__, "counterprior.")]
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.slow
def test_docstring_examples() -> None:
    modules = [importlib.import_module(name) for name in MODULES]
    found = {
        module.__name__: doctest.testmod(module, optionflags=doctest.ELLIPSIS)
        for module in modules
        if ">>>" in Path(str(module.__file__)).read_text()  # looking for them takes longest
    }
    assert sum(result.attempted for result in found.values()) > 50
    assert not [name for name, result in found.items() if result.failed]


@pytest.mark.lane  # the wheel's lane, which `.ci/run` runs, shows it too
def test_the_page_on_the_python_api_runs(
    drawn_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "counterprior").symlink_to(drawn_release)
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "python.md"
    found = doctest.testfile(
        str(page), module_relative=False, optionflags=EXAMPLES, globs={"__name__": "__main__"}
    )
    assert found.failed == 0
    assert found.attempted > 30


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("docs/commands.md", [f"$ counterprior {name} " for name in COMMANDS]),
        ("docs/models.md", [f"| `{kind}" for kind in (*GENERATORS, *JUDGES)]),
        ("docs/quality.md", [f"| `{kind}:" for kind in (*SCORERS, *EXTRACTORS)]),
        ("docs/methods.md", [f"| `{kind}:" for kind in METHODS]),
    ],
)
def test_every_command_and_adapter_is_documented(page: str, wanted: list[str]) -> None:
    text = (ROOT / page).read_text()
    assert not [name for name in wanted if name not in text]


def test_no_path_of_a_machine_in_the_project() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.splitlines():
        content = (ROOT / name).read_text(encoding="utf-8", errors="ignore")
        assert f"{ROOT}/" not in content, name
