"""What a maintainer of the bank waits for, each command as a user runs it, in a process of its own.

    python benchmarks/release.py build [--runs 5]
    python benchmarks/release.py check [--runs 5]

build: `build`, and `build --only`. check: `validate`, and `push` to a Hub on this machine, whose
own time does not count. A command that takes over 30 seconds is run three times. The bank is the
shipped one. `nothing kept`: the folder of kept drawings is empty, as on another machine; `check`
uses the user's. For `validate --bank` and `--only`, the entry is edited anew before each run, so
that nothing of its file is kept.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from itertools import count
from pathlib import Path

from figures import RUNS, Cost, Figures, command, repeated

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.kept import CACHE

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fixtures"))
from loopback_hub import TOKEN, LoopbackHub

PAIR = "flags-and-heraldry-france-blue-red"
FILE = "constrained/flags_and_heraldry.yaml"
RATIONALE = "  rationale: "
"""The first in the file is the pair's."""


def measure(what: str, runs: int, folder: Path) -> None:
    figures = Figures(f"release-{what}", f"python benchmarks/release.py {what}")
    kept = {CACHE: str(folder / "kept")} if what == "build" else {}
    release, bank = str(folder / "release"), folder / "bank"
    shutil.copytree(DEFAULT_BANK, bank)
    edits = count()

    def build_anew() -> Cost:
        shutil.rmtree(kept[CACHE], ignore_errors=True)
        return command("build", "--out", release, environment=kept)

    def edit() -> None:
        text = (DEFAULT_BANK / FILE).read_text()
        assert text.startswith(f"- id: {PAIR}\n")
        edited = text.replace(RATIONALE, f"{RATIONALE}Edit {next(edits)}. ", 1)
        (bank / FILE).write_text(edited)

    def check() -> Cost:
        edit()
        return command("validate", "--bank", str(bank), environment=kept)

    def fault() -> Cost:
        """Of an entry whose field is missing."""
        edit()
        text = (bank / FILE).read_text().replace("  frame: obverse\n", "", 1)
        (bank / FILE).write_text(text)
        return command("validate", "--bank", str(bank), exit_code=1, environment=kept)

    def only() -> Cost:
        edit()
        out = str(folder / "new")
        shutil.rmtree(f"{out}-only", ignore_errors=True)
        return command("build", "--bank", str(bank), "--only", PAIR, "--out", out, environment=kept)

    def push(hub: LoopbackHub, version: str) -> Cost:
        environment = kept | {
            "HF_ENDPOINT": hub.url,
            "HF_TOKEN": TOKEN,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_OFFLINE": "0",
        }
        named = ("--repo-id", "tester/bench", "--version", version, "--create")
        return command("push", release, *named, environment=environment)

    def again(*arguments: str) -> list[Cost]:
        return repeated(lambda: command(*arguments, environment=kept), runs)

    if what == "build":
        figures.costs("`build`, nothing kept", repeated(build_anew, runs))
        figures.costs("`build` again", again("build", "--out", release))
        figures.costs("`build --only`, a pair edited", repeated(only, runs))
        return
    command("build", "--out", release)
    figures.costs("`validate`", again("validate", release))
    check()  # draws what no release takes
    figures.costs("`validate --bank`, a pair edited", repeated(check, runs))
    figures.costs("`validate --bank`, a pair without a field", repeated(fault, runs))
    figures.costs("`validate --redraw`", again("validate", release, "--redraw"))
    with LoopbackHub(folder / "hub") as hub:
        versions = (f"1.0.{number}" for number in count())
        figures.costs("`push`, the first", [push(hub, next(versions))])
        pushed = repeated(lambda: push(hub, next(versions)), runs)
        figures.costs("`push`, the same rows as a new version", pushed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("build", "check"))
    parser.add_argument("--runs", type=int, default=RUNS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(asked.what, asked.runs, Path(folder))


if __name__ == "__main__":
    main()
