"""Opt-in: the release loads in other versions of `datasets`, each in an environment of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.lane, pytest.mark.online]

# Old pyarrow for the oldest, as its users have; pandas 3 came after all three.
VERSIONS = {
    "2.21.0": ["huggingface_hub==0.36.2", "pyarrow<21", "numpy<2.3", "pandas<3"],
    "3.6.0": ["huggingface_hub==0.36.2", "pandas<3"],
    "4.8.0": ["huggingface_hub==1.33.0"],
    "newest": [],
}

PROGRAM = """
import sys, datasets
root, configs = sys.argv[1], sys.argv[2].split(",")
for config in configs:
    table = datasets.load_dataset(root, config, split="test")
    stream = datasets.load_dataset(root, config, split="test", streaming=True)
    first = next(iter(stream))
    assert first["id"] == table[0]["id"], config
    assert sorted(table.column_names) == sorted(first), config
    assert isinstance(table[0]["provenance"]["calls"], list), config
    assert isinstance(table[0]["seeds"][0], int), config
    if "seed_image" in table.column_names:
        assert table[0]["seed_image"].size == first["seed_image"].size
        assert table[0]["seed_image"].mode == "RGB"
    wanted = table[len(table) // 2]["id"]
    if not datasets.__version__.startswith("2."):  # whose Parquet reader has no filters
        some = datasets.load_dataset(root, config, split="test", filters=[("id", "=", wanted)])
        assert list(some["id"]) == [wanted], config
    columns = datasets.load_dataset(root, config, split="test", columns=["id"])
    assert columns.column_names == ["id"]
    print(config, len(table))
assert len(datasets.load_dataset(root, split="test")) > 0
print("ok", datasets.__version__)
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_every_config_loads(drawn_release: Path, tmp_path: Path, version: str) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    release = "datasets" if version == "newest" else f"datasets=={version}"
    wanted = [release, "pillow", *VERSIONS[version]]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    configs = sorted(p.name for p in drawn_release.iterdir() if list(p.glob("*.parquet")))
    done = subprocess.run(
        [python, "-c", PROGRAM, drawn_release, ",".join(configs)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"ok {'' if version == 'newest' else version}" in done.stdout
    print(done.stdout)
