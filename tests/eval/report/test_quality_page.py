"""The report's page of a suite shows quality beside bias."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image
from scored import cases, image_run, judged_as

from counterprior.eval.engine.image_scores import score_images
from counterprior.eval.report.site import write_report
from counterprior.eval.results.changes import quality_report
from counterprior.eval.results.scoring import ScoreSettings

ASKED = cases(40, clusters=20)


class Gray:
    def identity(self) -> dict[str, str]:
        return {"kind": "gray", "model": "<b>"}

    def score(self, pairs: Sequence[tuple[str, Image.Image]]) -> list[float]:
        return [image.getpixel((0, 0))[0] / 50 for _, image in pairs]  # type: ignore[index]


@pytest.mark.slow
def test_quality_is_drawn_over_bias_and_its_changes_stand_in_a_table(tmp_path: Path) -> None:
    roots = []
    for name, darker, right in (("plain", 0, 2), ("tuned", 30, 8)):
        shades = {case.id: 40 + 4 * i - darker for i, case in enumerate(ASKED)}
        root = image_run(tmp_path / name, ASKED, shades)
        said = {c.id: "correct" if i % 10 < right else "wrong" for i, c in enumerate(ASKED)}
        score_images(judged_as(root, said), [Gray()])
        roots.append(root)
    write_report(roots, tmp_path / "site")
    page = (tmp_path / "site" / "t2i_correctness.html").read_text()
    start = page.index('aria-label="gray:&lt;b&gt; over')
    figure = page[start : page.index("</div>", start)]
    assert figure.count('class="mark"') == 2 and figure.count('class="whisker"') == 4
    assert "plain: 20.0" in figure and "tuned: 80.0" in figure
    changes = re.findall(r'<tr data-kind="(\w+)" data-run="(\w+)".*?</tr>', page)
    assert changes == [("bias", "tuned"), ("quality", "tuned")]
    _, quality = quality_report(roots, ScoreSettings()).changes
    assert quality.value == -0.6 or abs(quality.value + 0.6) < 1e-9
    assert f'<data value="{quality.value!r}">-0.600</data>' in page
    assert "gray:<b>" not in page and "gray:&lt;b&gt;" in page.partition("<main")[2]
    (told,) = json.loads((tmp_path / "site" / "report.json").read_text())["quality"]
    assert told["base"] == "plain" and told["changes"][1]["difference"] == quality.value
    first = {p.name: p.read_bytes() for p in (tmp_path / "site").glob("*.html")}
    write_report(roots, tmp_path / "again")
    assert first == {p.name: p.read_bytes() for p in (tmp_path / "again").glob("*.html")}
    assert "A large p does not show that nothing was lost" in page
    write_report(roots, tmp_path / "claims", margins={"gray": 0.8})
    page = (tmp_path / "claims" / "t2i_correctness.html").read_text()
    assert "equivalent within ±0.800 (p" in page and "A large p" not in page


def test_a_report_of_runs_that_nobody_scored_has_no_such_part(tmp_path: Path) -> None:
    root = image_run(tmp_path / "run", ASKED, {case.id: 9 for case in ASKED})
    judged_as(root, {case.id: "correct" for case in ASKED})
    write_report([root], tmp_path / "site")
    assert "Quality beside bias" not in (tmp_path / "site" / "t2i_correctness.html").read_text()
