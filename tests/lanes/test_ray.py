"""Opt-in: the Ray engine writes the bytes of the local one, on a Ray of its own here."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.lane

GOLDEN = Path(__file__).parents[1] / "golden" / "captions.jsonl"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has Ray besides all that this one has."""
    environment = tmp_path_factory.mktemp("ray") / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    site = environment / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    # Added as a site folder, so that what is installed there in editable mode is found too.
    here = sysconfig.get_paths()["purelib"]
    (site / "these.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    found = environment / "bin" / "python"
    subprocess.run([found, "-m", "pip", "install", "--quiet", "ray>=2.40"], check=True)
    return found


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ray_writes_the_same_bytes(python: Path, tmp_path: Path, workers: str) -> None:
    pytest.importorskip("daft")
    texts = [json.loads(line)["caption"] for line in GOLDEN.read_text().splitlines()]
    source = tmp_path / "captions"
    source.mkdir()
    for number in range(6):
        part = texts[number::6]
        urls = [f"http://x/{number}/{i}" for i in range(len(part))]
        pq.write_table(pa.table({"url": urls, "caption": part}), source / f"{number}.parquet")
    found = {}
    for engine, interpreter in (("ray", python), ("local", Path(sys.executable))):
        out = tmp_path / engine
        command = [interpreter, "-m", "counterprior", "mine", source, "--out", out]
        done = subprocess.run(
            [*command, "--engine", engine, "--workers", workers],
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found[engine] = {p.name: p.read_bytes() for p in sorted((out / "pairs").iterdir())}
    assert found["ray"] == found["local"]
    assert len(found["ray"]) == 6
