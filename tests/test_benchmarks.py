"""The programs of `benchmarks/` run, and docs/ has the figures that they kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from benchmark_files import BENCHMARKS, opened


def test_tables_of_figures_are_those_of_the_results() -> None:
    figures = opened(BENCHMARKS / "figures.py")
    stale = [page.name for page in figures.stale_pages()]
    assert not stale, "run: python benchmarks/figures.py"
    text = (figures.DOCS / "scale.md").read_text()
    markers = re.findall("<!-- figures of ([a-z -]+?)(?:: .*)? -->", text)
    shown = {part for parts in markers for part in parts.split()}
    assert shown == {path.stem for path in figures.RESULTS.iterdir()}


def test_a_figure_is_kept_with_its_least_median_and_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = opened(BENCHMARKS / "figures.py")
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    kept = figures.Figures("drawing", "python benchmarks/drawing.py")
    kept.add("a drawing", {"s of CPU": [3.0, 1.25, 2.0], "MB at the peak": [1234.5] * 3})
    kept.add("a copy", {"s of CPU": [0.5]})
    head, _, first, second, _, made = figures.table(["drawing"]).splitlines()
    assert head == "| what | s of CPU | MB at the peak |"
    assert first == "| a drawing | 2.00 (1.25 to 3.00) | 1,234 |"
    assert second == "| a copy | 0.50 |  |"
    assert made.startswith("`python benchmarks/drawing.py`, 20") and "load up to" in made
    assert made.endswith(", 1 to 3 runs.")
    assert figures.median("drawing", "a draw", "s of CPU") == 2
    with pytest.raises(ValueError, match="not \\['s by the clock'\\]"):
        figures.table(["drawing"], ["s by the clock"])
    chosen = "<!-- figures of drawing: MB at the peak; s of CPU -->\nold\n<!-- end -->\n"
    assert "| a drawing | 1,234 | 2.00 (1.25 to 3.00) |" in figures.with_tables(chosen)
    page = "<!-- figures of drawing -->\nold\n<!-- end -->\n"
    assert figures.with_tables(page) != page
    assert figures.with_tables(figures.with_tables(page)) == figures.with_tables(page)


@pytest.mark.parametrize("how", ["ours", "by hand"])
def test_the_cost_of_images_is_measured(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    opened(BENCHMARKS / "study.py").once(how, 16)
    measured = json.loads(capsys.readouterr().out)
    assert measured["cpu_s"] > 0 and measured["peak_mb"] > 0


def test_costs_on_paper_divide_what_gpus_share(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = opened(BENCHMARKS / "cost.py")
    monkeypatch.setattr(cost, "median", lambda part, name, unit: 2.0)
    assumed = cost.Assumptions(image_seconds=64, api_seconds=9.6, load_seconds=0)
    lines = {line[0]: line for line in cost.study_lines(assumed)}
    assert lines["images"][2:] == (67_500 * 64, True)
    assert lines["judge behind an API"][2:] == (6750, False)
    assert lines["records, files, questions"][2] == 67_500 * 2 * 0.002
    images = next(line for line in cost.study_table(assumed) if line.startswith("| images"))
    assert images == "| images | 64 s each | 1,200 h | 150 h | 18.8 h |"
    assert "| spaCy, at the rate of CC3M | 277,778 | 13,889 |" in cost.mining_table(assumed)
    mining = cost.mining_summary(assumed)
    assert "277,778 to 277,778 core-hours (13,889 to 13,889 USD) with `corpus mine`" in mining
    rest = sum(seconds for *_, seconds, is_shared in lines.values() if not is_shared)
    (row,) = [x for x in cost.study_table(assumed, is_summary=True) if x.startswith("| the rest")]
    assert row.count(f" {cost.duration(rest)} ") == len(cost.GPUS)
