"""Figures of benchmark programs: printed, and kept in benchmarks/results/ for tables of docs/.

    python benchmarks/figures.py

A figure has a name and, by unit, its values over some runs, of which the least, the median and the
most are kept. A program keeps the figures of one part of it in one file, together with the machine.
The command above writes them into the pages, as a table between ``<!-- figures of PART ... -->``
or ``<!-- costs -->`` (see `cost.py`) and ``<!-- end -->``; ``<!-- figures of PART ...: UNIT; UNIT
-->`` shows these units alone. A test says which pages are stale.
"""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from counterprior import __version__

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parents[1] / "docs"
CPU, CLOCK, PEAK = "s of CPU", "s by the clock", "MB at the peak"
RUNS = 5
LONG_SECONDS = 30
"""A run that takes longer is repeated `LONG_RUNS` times."""
LONG_RUNS = 3


class Cost(NamedTuple):
    """What a command took, with the processes that it started."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    """Of its largest process."""


def command(*arguments: str, exit_code: int = 0, environment: Mapping[str, str] = {}) -> Cost:
    """Runs `counterprior` in a process of its own, with the modules of this folder on its path.

    Raises SystemExit with the end of its output if it ends with another exit code.
    """
    places = [str(Path(__file__).parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    path = {"PYTHONPATH": os.pathsep.join(filter(None, places))}
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "counterprior", *arguments],
            stdout=output,
            stderr=output,
            env=os.environ | path | environment,
        )
        _, status, used = os.wait4(process.pid, 0)  # its memory alone: others ran before
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != exit_code:
            output.seek(0)
            raise SystemExit(f"{' '.join(arguments)}: {output.read().decode()[-2000:]}")
    return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def repeated(run: Callable[[], Cost], runs: int = RUNS) -> list[Cost]:
    """The costs of some runs, of fewer if the first is a long one."""
    costs = [run()]
    if costs[0].seconds > LONG_SECONDS:
        runs = min(runs, LONG_RUNS)
    return costs + [run() for _ in range(runs - 1)]


class Figures:
    """The figures of one part of a program, kept after each."""

    def __init__(self, part: str, program: str) -> None:
        """The part names the file; the program is the command that makes it anew."""
        self._file = RESULTS / f"{part}.json"
        self._kept: dict[str, Any] = {
            "program": program,
            "date": time.strftime("%Y-%m-%d"),
            "version": __version__,
            "python": platform.python_version(),
            "machine": machine(),
            "load": round(os.getloadavg()[0], 1),
            "figures": [],
        }

    def add(self, name: str, values: Mapping[str, Sequence[float]]) -> None:
        """Prints and keeps a figure: by unit, its values over the runs."""
        units = {unit: summary(runs) for unit, runs in values.items()}
        runs = len(next(iter(values.values())))
        self._kept["load"] = max(self._kept["load"], round(os.getloadavg()[0], 1))
        self._kept["figures"].append({"name": name, "runs": runs, "units": units})
        texts = [f"{cell(unit)} {called}" for called, unit in units.items()]
        print(f"{name}: {'; '.join(texts)}; runs: {runs}", flush=True)
        RESULTS.mkdir(exist_ok=True)
        self._file.write_text(json.dumps(self._kept, indent=1) + "\n")

    def costs(
        self, name: str, costs: Sequence[Cost], cpu_by: Mapping[str, float] | None = None
    ) -> None:
        """Adds what the runs of a command took. cpu_by: a further unit -> how many of it there
        are, by which the CPU time is divided."""
        divided = {
            unit: [cost.cpu_seconds / number for cost in costs]
            for unit, number in (cpu_by or {}).items()
        }
        self.add(
            name,
            {
                CPU: [cost.cpu_seconds for cost in costs],
                CLOCK: [cost.seconds for cost in costs],
                PEAK: [cost.peak_mb for cost in costs],
                **divided,
            },
        )


def summary(values: Sequence[float]) -> dict[str, float]:
    """The least, the median and the most, with four digits."""
    least, median, most = min(values), statistics.median(values), max(values)
    return {
        name: float(f"{value:.4g}")
        for name, value in (("min", least), ("median", median), ("max", most))
    }


def machine() -> str:
    """The cores that this process may use, and their kind."""
    cores, kind = len(os.sched_getaffinity(0)), platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            kind = line.partition(": ")[2]
            break
    return f"{cores} cores of {kind}"


def cell(values: Mapping[str, float]) -> str:
    """The median, and the least and the most of several runs."""
    least, median, most = (number(values[name]) for name in ("min", "median", "max"))
    return median if least == most else f"{median} ({least} to {most})"


def number(value: float) -> str:
    """A number with at least two digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


_MARKED = re.compile(
    r"(?P<start><!-- (?:figures of (?P<parts>[a-z -]+?)(?:: (?P<units>[^>]+))?|costs) -->\n)"
    r".*?(?P<end><!-- end -->)",
    re.DOTALL,
)


def median(part: str, start: str, unit: str) -> float:
    """The median of the first figure whose name starts so. Raises KeyError where there is none."""
    for figure in json.loads((RESULTS / f"{part}.json").read_text())["figures"]:
        if figure["name"].startswith(start) and unit in figure["units"]:
            return float(figure["units"][unit]["median"])
    raise KeyError(f"{part}: {start}: {unit}")


def table(parts: Sequence[str], shown: Sequence[str] = ()) -> str:
    """The figures of some parts of programs as a table, below it where and when they were made.

    shown: units that are columns, in their order; all if empty. Raises ValueError for others.
    """
    kept = [json.loads((RESULTS / f"{part}.json").read_text()) for part in parts]
    figures = [figure for part in kept for figure in part["figures"]]
    known = list(dict.fromkeys(unit for figure in figures for unit in figure["units"]))
    if unknown := [unit for unit in shown if unit not in known]:
        raise ValueError(f"{' '.join(parts)} has {known}, not {unknown}")
    units = list(shown) or known
    lines = [("what", *units), ["---"] * (len(units) + 1)]
    for figure in figures:
        cells = [cell(figure["units"][u]) if u in figure["units"] else "" for u in units]
        lines.append((figure["name"], *cells))
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    made = dict.fromkeys(
        f"`{part['program']}`, {part['date']}, {part['machine']}, load up to {part['load']}, "
        f"{runs_of(part)}."
        for part in kept
    )
    return f"{text}\n\n{' '.join(made)}\n"


def runs_of(part: Mapping[str, Any]) -> str:
    """The number of runs of its figures, in words."""
    least, most = (end(figure["runs"] for figure in part["figures"]) for end in (min, max))
    counts = str(most) if least == most else f"{least} to {most}"
    return f"{counts} run{'s' * (most > 1)}"


def with_tables(text: str) -> str:
    """A page with its tables as the results are now."""
    import cost  # it reads figures

    def written(marked: re.Match[str]) -> str:
        parts, units = marked["parts"], marked["units"]
        shown = units.split("; ") if units else ()
        text = table(parts.split(), shown) if parts else f"{cost.summary(cost.Assumptions())}\n"
        return f"{marked['start']}\n{text}\n{marked['end']}"

    return _MARKED.sub(written, text)


def stale_pages() -> dict[Path, str]:
    """Page whose tables are out of date -> its text with current ones."""
    texts = {page: page.read_text() for page in sorted(DOCS.rglob("*.md"))}
    current = {page: with_tables(text) for page, text in texts.items()}
    return {page: text for page, text in current.items() if text != texts[page]}


def main() -> None:
    for page, text in stale_pages().items():
        page.write_text(text)
        print(page)


if __name__ == "__main__":
    main()
