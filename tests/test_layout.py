"""The folders at the root and the package that users install are the same thing."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ["agents", "builders", "cards", "cli", "corpus_analysis", "eval", "scenes"]
FOUNDATION = {"errors", "images", "labels", "progress", "schema", "specs", "storage", "tables"}
ROOT_MODULES = {"__init__", "__main__", "release", *FOUNDATION}

MAY_IMPORT = {
    "errors": set(),
    "progress": set(),
    "schema": set(),
    "specs": {"errors"},
    "storage": {"errors"},
    "images": {"errors"},
    "tables": {"errors", "storage"},
    "labels": {"tables"},
    "release": {"schema", "errors"},
    "scenes": FOUNDATION,
    "agents": FOUNDATION,
    "eval": {*FOUNDATION, "release", "agents", "scenes"},
    "builders": {*FOUNDATION, "agents", "scenes", "eval.core", "eval.generators"},
    "corpus_analysis": {*FOUNDATION, "release", "agents", "eval"},
    "cards": {*FOUNDATION, "release", "builders.manifest"},
}
"""The design's table: a room, and what it may import besides itself."""

HEAVY = {
    "anthropic", "daft", "diffusers", "gradio", "mlcroissant", "openai", "ray", "spacy", "torch",
    "transformers",
}  # fmt: skip


def modules() -> list[Path]:
    return sorted(
        path
        for path in [
            *ROOT.glob("*.py"),
            *(p for room in ROOMS for p in (ROOT / room).rglob("*.py")),
        ]
    )


def imports(path: Path) -> list[tuple[str, ast.AST]]:
    """Dotted names below the package root (relative imports) or absolute, with their node."""
    package = path.relative_to(ROOT).parent.parts
    found: list[tuple[str, ast.AST]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, node) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.append((node.module or "", node))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            module = [*base, *(node.module or "").split(".")]
            if node.module:
                found.append((".".join(["", *module]), node))
            else:
                names = [".".join(["", *base, alias.name]) for alias in node.names]
                found += [(name, node) for name in names]
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms_import_only_what_the_design_allows(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if room not in MAY_IMPORT:
        return
    for name, _ in imports(path):
        if not name.startswith("."):
            continue
        target = name[1:]
        allowed = MAY_IMPORT[room] | {room}
        assert any(target == a or target.startswith(a + ".") for a in allowed), (
            f"{path.relative_to(ROOT)} imports {target}"
        )


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_heavy_libraries_are_imported_where_they_are_used(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for node in tree.body:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        for name in names:
            assert name.split(".")[0] not in HEAVY, f"{path.name}: {name} at the top"


def test_every_folder_with_an_init_is_packaged() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = [i.parent.relative_to(ROOT) for p in ROOMS for i in (ROOT / p).rglob("__init__.py")]
    assert set(listed) == {"counterprior", *(".".join(["counterprior", *f.parts]) for f in folders)}


def test_every_data_file_is_packaged() -> None:
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
        "package-data"
    ]
    shipped = {
        path
        for package, patterns in data.items()
        for pattern in patterns
        for path in ROOT.joinpath(*package.split(".")[1:]).glob(pattern)
    }
    for room in ROOMS:
        for path in (ROOT / room).rglob("*"):
            if path.is_file() and path.suffix not in (".py", ".pyc"):
                assert path in shipped, f"{path.relative_to(ROOT)} is in no package-data pattern"


def test_short_names_stay_free_for_others(tmp_path: Path) -> None:
    code = (
        f"import importlib.util as u, counterprior; print([n for n in {ROOMS} if u.find_spec(n)])"
    )
    out = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert out.stdout.strip() == "[]", out.stdout + out.stderr


def test_root_holds_no_stray_module() -> None:
    # Every .py at the root ships as counterprior.*.
    assert {p.stem for p in ROOT.glob("*.py")} == ROOT_MODULES


def test_help_imports_nothing_slow(tmp_path: Path) -> None:
    # `datasets`, pyarrow and pydantic cost most of a second; --help must not pay it.
    code = (
        "import sys; sys.argv = ['counterprior', '--help']\n"
        "import counterprior.cli.main\n"
        "try: counterprior.cli.main.app()\n"
        "except SystemExit: pass\n"
        "slow = {'datasets', 'pyarrow', 'pandas', 'numpy', 'pydantic', 'yaml', 'PIL'}\n"
        "print('SLOW', sorted(slow & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "SLOW []" in out.stdout, out.stdout + out.stderr
