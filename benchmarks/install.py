"""Size of the package and what it needs, installed into an empty environment, by package.

    python benchmarks/install.py [EXTRA ...]

Without an extra, the core. The package is that of the last commit. Counts the files that pip wrote,
without compiled bytecode and pip itself. Needs a package index. Packages of 10 MB and more have a
line of their own.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import tarfile
import tempfile
import venv
from pathlib import Path

from figures import Figures

ROOT = Path(__file__).parents[1]
LEAST_MB = 10
SIZES = """
import json
from importlib.metadata import distributions
print(json.dumps({
    d.metadata["Name"]: sum(f.size or 0 for f in d.files or () if f.suffix != ".pyc")
    for d in distributions() if d.metadata["Name"] not in ("pip", "setuptools")
}))
"""


def sizes(extras: list[str]) -> dict[str, float]:
    """Package -> MB, the largest first."""
    with tempfile.TemporaryDirectory() as folder:
        source, environment = Path(folder) / "source", Path(folder) / "environment"
        archive = ["git", "-C", str(ROOT), "archive", "HEAD"]
        with tarfile.open(fileobj=io.BytesIO(subprocess.check_output(archive))) as files:
            files.extractall(source, filter="data")  # pip leaves what it builds beside the source
        venv.create(environment, with_pip=True)
        python = str(environment / "bin" / "python")
        pip = [python, "-m", "pip", "install", "--quiet", "--no-compile"]
        wanted = f"{source}[{','.join(extras)}]" if extras else str(source)
        subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), wanted], check=True)
        done = subprocess.run([python, "-c", SIZES], check=True, capture_output=True, text=True)
    found: dict[str, int] = json.loads(done.stdout)
    return {
        name: found[name] / 2**20 for name in sorted(found, key=found.__getitem__, reverse=True)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("extras", nargs="*", metavar="EXTRA")
    extras = parser.parse_args().extras
    figures = Figures("install", " ".join(["python benchmarks/install.py", *extras]))
    package_mb = sizes(extras)
    figures.add("all", {"MB": [sum(package_mb.values())]})
    for name, size in package_mb.items():
        if size >= LEAST_MB:
            figures.add(name, {"MB": [size]})
    rest = [size for size in package_mb.values() if size < LEAST_MB]
    figures.add(f"{len(rest)} smaller packages", {"MB": [sum(rest)]})


if __name__ == "__main__":
    main()
