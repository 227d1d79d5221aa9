"""The wheel on every Python that the package claims: install, build, validate, score, report.

A Python is found as `python3.N` on the PATH or in pyenv's folder; one that is absent is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from pathlib import Path

import pytest
from wheels import CONSTRAINTS, attempt, build_wheel, run

pytestmark = [pytest.mark.lane, pytest.mark.online]

PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
CONFIG = "t2i_homogenization"
LOADED = f"""
import counterprior
rows = counterprior.load("dist/counterprior", "{CONFIG}")
print(len(rows), counterprior.verify("dist/counterprior"))
"""


def find_python(version: str, cwd: Path) -> str:
    """An interpreter of a version that starts; skips the test without one."""
    named = shutil.which(f"python{version}")
    known = [named] if named else []
    for python in [*known, *map(str, sorted(PYENV.glob(f"{version}.*/bin/python")))]:
        asked = attempt(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])", cwd=cwd)
        if asked.returncode == 0 and asked.stdout.strip() == version:
            return python
    pytest.skip(f"no Python {version} here")


def install(pip: Path, wheel: Path) -> None:
    """Installs the wheel with the pinned versions, or with any where one has no wheel here."""
    words = (pip, "install", "--quiet", "--only-binary", ":all:")
    pinned = attempt(*words, "-c", CONSTRAINTS, wheel, cwd=wheel.parent)
    if pinned.returncode:
        warnings.warn(f"{pip}: not the versions of constraints.txt: {pinned.stderr}", stacklevel=1)
        run(*words, wheel, cwd=wheel.parent)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_a_short_journey(version: str, wheel: Path, tmp_path: Path) -> None:
    run(find_python(version, tmp_path), "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    bin_ = tmp_path / "venv" / "bin"
    install(bin_ / "pip", wheel)

    work = tmp_path / "work"
    work.mkdir()
    ours = bin_ / "counterprior"
    assert version in run(ours, "doctor", cwd=work)
    run(ours, "build", "--config", CONFIG, cwd=work)
    run(ours, "validate", "dist/counterprior", cwd=work)
    models = ("--generator", "render:?order_bias=1", "--judge", "pixels")
    run(ours, "eval", "--suite", CONFIG, *models, "--limit", 4, "--out", "runs/demo", cwd=work)
    scores = json.loads(run(ours, "score", "runs/demo", "--json", cwd=work))[0]["scores"]
    hom = next(score for score in scores if score["name"] == "hom")
    assert (hom["value"], hom["n"]) == (100.0, 8)  # 4 rows, each in both orders
    run(ours, "report", "runs/demo", "--out", "site", "--export", "inspect", cwd=work)
    assert (work / "site" / "index.html").exists()
    said = run(bin_ / "python", "-W", "error::DeprecationWarning", "-c", LOADED, cwd=work)
    assert said.split() == ["1700", "[]"]
