"""The folders at the root and the package that users install are the same thing."""

import ast
import functools
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from refusals import codes_of

import counterprior
from counterprior.errors import CODES, CounterpriorError
from counterprior.eval.captioners import CAPTIONERS
from counterprior.eval.detectors import DETECTORS
from counterprior.eval.generators import GENERATORS
from counterprior.eval.judges import JUDGES
from counterprior.eval.methods import METHODS
from counterprior.eval.scorers import SCORERS
from counterprior.eval.scorers.features import EXTRACTORS
from counterprior.eval.suites import SUITES

ROOT = Path(__file__).parents[1]
ROOMS = ["agents", "builders", "cards", "cli", "corpus_analysis", "eval", "scenes"]
FOUNDATION = set(
    "addresses clip_files cpus errors extras fetching human_labels images kept leases parsing "
    "printable progress readings schema specs storage".split()
)
ROOT_MODULES = {"__init__", "__main__", "release", *FOUNDATION}

MAY_IMPORT = {
    "addresses": set(),
    "clip_files": {"errors", "extras", "images"},
    "cpus": set(),
    "errors": set(),
    "kept": set(),
    "extras": {"errors"},
    "fetching": {"addresses"},
    "printable": set(),
    "progress": set(),
    "schema": set(),
    "specs": {"errors"},
    "leases": set(),
    "storage": {"errors", "leases"},
    "images": {"errors"},
    "parsing": {"errors", "storage"},
    "human_labels": {"parsing", "errors"},
    "readings": {"schema"},
    "release": {"schema", "errors"},
    "scenes": FOUNDATION,
    "agents": FOUNDATION,
    "eval": {*FOUNDATION, "release", "agents", "scenes"},
    "builders": {
        *FOUNDATION,
        "release",
        "agents",
        "scenes",
        "eval.core",
        "eval.generators",
        "eval.stats",
        "eval.studies.seeding",
    },
    "corpus_analysis": {*FOUNDATION, "release", "agents", "eval", "scenes"},
    "cards": {*FOUNDATION, "release", "builders.build_result", "eval.publishing"},
}
"""The design's table: a room, and what it may import besides itself."""

EVAL = (
    "stats core clips geometry questions store workers checkpoints detectors generators judges "
    "captioners scorers methods roundtrips suites engine results people publishing report "
    "selftest organisms studies api"
).split()
"""The rooms of `eval/`: each imports only from those before it."""

HEAVY = set("anthropic av diffusers gradio mlcroissant openai ray spacy torch transformers".split())

REGISTRIES = (CAPTIONERS, DETECTORS, EXTRACTORS, GENERATORS, JUDGES, METHODS, SCORERS)
TABLES = {entry.place for registry in REGISTRIES for entry in registry.values()}
"""Every adapter, as ``module:Class``."""
BY_NAME = {
    "eval.generators.diffusion": {"eval.organisms.generator"},
    "eval.generators.render": {"eval.selftest.trials", "eval.selftest.rows"},
    "eval.judges.by_rule": {"eval.judges.checker.judge"},
    "eval.judges.faulty": {"eval.selftest.run"},
    "eval.judges.organism": {"eval.organisms.judging"},
}
"""Adapters that are also a library, and the modules that use them as one."""


def modules() -> list[Path]:
    return sorted(
        path
        for path in [
            *ROOT.glob("*.py"),
            *(p for room in ROOMS for p in (ROOT / room).rglob("*.py")),
        ]
    )


class Parsed(NamedTuple):
    """What the tests ask of a module's syntax tree, which takes too long to make for each."""

    imports: list[str]
    """Dotted names below the package root (relative imports) or absolute."""
    at_the_top: list[str]
    """Absolute names that are imported when the module is."""
    classes: dict[str, set[str]]
    """Class -> its bases with a plain name."""
    public_types: list[str]
    """Classes and aliases of types: ``Name = Literal[...]``, ``Name = A | B``."""
    suites: list[str]
    """Names of suites, each with its line."""
    calls: list[ast.Call]
    """Calls of what has a capitalized name, such as an error."""


@functools.cache
def parsed(path: Path) -> Parsed:
    package = path.relative_to(ROOT).parent.parts
    module = Parsed([], [], {}, [], [], [])
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            module.imports.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            module.imports.append(node.module or "")
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            names = [node.module] if node.module else [alias.name for alias in node.names]
            module.imports.extend(".".join(["", *base, name]) for name in names)
        elif isinstance(node, ast.ClassDef):
            module.classes[node.name] = {getattr(base, "id", "") for base in node.bases}
        elif isinstance(node, ast.Constant) and node.value in SUITES:
            module.suites.append(f"{node.lineno}: {node.value}")
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "")[:1].isupper():
            module.calls.append(node)
    for node in tree.body:
        if isinstance(node, ast.Import):
            module.at_the_top.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            module.at_the_top.append(node.module or "")
        elif isinstance(node, ast.ClassDef):
            module.public_types.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, (ast.Subscript, ast.BinOp)):
            module.public_types.extend(
                t.id for t in node.targets if isinstance(t, ast.Name) and is_type(t.id)
            )
    return module


def test_rooms_import_only_what_the_design_allows() -> None:
    wrong = []
    for path in modules():
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if room not in MAY_IMPORT:
            continue
        allowed = MAY_IMPORT[room] | {room}
        for name in parsed(path).imports:
            target = name.removeprefix(".")
            if target != name and not any(f"{target}.".startswith(f"{a}.") for a in allowed):
                wrong.append(f"{path.relative_to(ROOT)} imports {target}")
    assert not wrong


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    wrong = []
    for path in modules():
        top = [name for name in parsed(path).at_the_top if name.split(".")[0] in HEAVY]
        wrong += [f"{path.relative_to(ROOT)}: {name} at the top" for name in top]
    assert not wrong


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


def eval_modules() -> Iterator[tuple[str, Path]]:
    """Every module of `eval/` with its room."""
    for path in sorted((ROOT / "eval").rglob("*.py")):
        room = path.relative_to(ROOT / "eval").parts[0].removesuffix(".py")
        if room != "__init__":
            yield room, path


def test_rooms_of_eval_import_only_from_those_before_them() -> None:
    wrong = []
    for room, path in eval_modules():
        for name in parsed(path).imports:
            target = name.split(".")[1:]
            if target[:1] != ["eval"] or len(target) < 2 or target[1] == room:
                continue
            if EVAL.index(target[1]) > EVAL.index(room):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong


def test_only_suites_name_a_suite() -> None:
    # What a suite needs is said by the suite: a comparison with its name elsewhere hides a rule.
    named = []
    for room, path in eval_modules():
        if room not in ("suites", "selftest"):
            named += [f"{path.relative_to(ROOT)}:{name}" for name in parsed(path).suites]
    assert not named


def test_adapters_are_imported_when_a_spec_names_them() -> None:
    adapters = {text.partition(":")[0].partition(".")[2] for text in TABLES}
    wrong = []
    for path in modules():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for name in parsed(path).imports:
            target = name.removeprefix(".")
            adapter = next((a for a in adapters if target == a or target.startswith(f"{a}.")), "")
            if adapter and module != adapter and module not in BY_NAME.get(adapter, ()):
                wrong.append(f"{module} imports {adapter}")
    assert not wrong


def is_type(name: str) -> bool:
    return name[0].isupper() and not name.isupper()


def test_public_types_have_one_meaning() -> None:
    where: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        for name in parsed(path).public_types:
            if not name.startswith("_"):
                where[name].append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def test_code_is_laid_out_by_the_formatter() -> None:
    by_hand = [p for p in modules() if "fmt: " + "skip" in p.read_text()]
    assert not by_hand


def test_short_names_stay_free_for_others(tmp_path: Path) -> None:
    code = (
        f"import importlib.util as u, counterprior; print([n for n in {ROOMS} if u.find_spec(n)])"
    )
    out = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert out.stdout.strip() == "[]", out.stdout + out.stderr


def error_types() -> set[str]:
    """Names of the errors that a user can mend, all modules imported or not."""
    bases: dict[str, set[str]] = {}
    for path in modules():
        bases |= parsed(path).classes
    types = {CounterpriorError.__name__}
    while more := {name for name, above in bases.items() if above & types} - types:
        types |= more
    return types


def test_every_error_has_a_listed_code() -> None:
    types, used, without = error_types(), set(), []
    for path in modules():
        for node in parsed(path).calls:
            if getattr(node.func, "id", "") in types:
                used |= codes_of(node)
                if not any(keyword.arg == "code" for keyword in node.keywords):
                    without.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not without, "give these errors one of the codes in errors.py, by code="
    assert used <= CODES.keys(), "use a code that is listed in errors.py, or list the new one"


def test_every_listed_code_is_used() -> None:
    texts = "".join(path.read_text() for path in modules() if path.name != "errors.py")
    assert [code for code in CODES if f'"{code}"' not in texts] == []


def test_root_holds_no_stray_module() -> None:
    # Every .py at the root ships as counterprior.*.
    assert {p.stem for p in ROOT.glob("*.py")} == ROOT_MODULES


LISTED = "print('LOADED', *sorted(sys.modules))"


def loaded(code: str, folder: Path) -> set[str]:
    """Names of the modules that some code imports, in an interpreter of its own."""
    command = [sys.executable, "-c", f"import sys\n{code}\n{LISTED}"]
    out = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    (names,) = [line for line in out.stdout.splitlines() if line.startswith("LOADED")]
    return set(names.split()[1:])


def test_the_package_itself_imports_nothing(tmp_path: Path) -> None:
    found = loaded("import counterprior", tmp_path)
    assert {name for name in found if name.startswith("counterprior")} == {"counterprior"}
    assert "numpy" not in found


def test_the_api_is_what_the_package_lists() -> None:
    for name in counterprior.__all__:
        assert getattr(counterprior, name) is not None
    assert callable(counterprior.prompts) and callable(counterprior.evaluate)


def test_help_imports_nothing_slow(tmp_path: Path) -> None:
    # `datasets`, pyarrow and pydantic cost most of a second; --help must not pay it.
    code = (
        "sys.argv = ['counterprior', '--help']\n"
        "import counterprior.cli.main\n"
        "try: counterprior.cli.main.app()\n"
        "except SystemExit: pass"
    )
    found = loaded(code, tmp_path)
    assert not found & {
        "datasets",
        "pyarrow",
        "pandas",
        "numpy",
        "scipy",
        "pydantic",
        "yaml",
        "PIL",
    }
    rooms = {name.split(".")[1] for name in found if name.startswith("counterprior.")}
    assert rooms == {"cli", "cpus", "errors", "extras", "printable", "progress"}


def test_modules_of_eval_import_each_other_in_one_direction() -> None:
    # Imports inside functions count: they only hide a circle.
    below: dict[str, set[str]] = {}
    known = {".".join(p.relative_to(ROOT).with_suffix("").parts) for _, p in eval_modules()}
    for _, path in eval_modules():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        names = {name.removeprefix(".") for name in parsed(path).imports}
        below[module] = {n for n in names if n in known and n != module}
    circles = set()
    for module in below:
        reached, waiting = set(), list(below[module])
        while waiting:
            one = waiting.pop()
            if one not in reached:
                reached.add(one)
                waiting += below[one]
        if module in reached:
            circles.add(module)
    assert circles <= {"eval.workers.farm", "eval.workers.on_ray"}  # Ray only where it is chosen
