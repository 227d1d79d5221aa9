"""People's quality ratings: blind, drawn once, and analyzed run against run."""

from __future__ import annotations

import http.client
import io
import json
import random
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import raises
from scipy import stats
from scored import cases, image_run

from counterprior.errors import DataError, UsageError
from counterprior.eval.engine.image_scores import score_images
from counterprior.eval.engine.run import Run
from counterprior.eval.people.clicks import merge
from counterprior.eval.people.ratings import analyze_ratings, signed_rank
from counterprior.eval.people.sampling import SAMPLE, LabelingSample, draw_sample, open_audit
from counterprior.eval.people.serve import AuditServer
from counterprior.eval.results.quality import read_quality
from counterprior.eval.scorers import as_scorer
from counterprior.eval.stats.agreement import krippendorff_alpha
from counterprior.parsing import RowError
from counterprior.storage import RecordLog

Cli = Callable[..., subprocess.CompletedProcess[str]]
ASKED = cases(40, clusters=20)
FIELDS = ("overall", "alignment", "fidelity")


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Two runs of 40 images; what made them stands in their files."""
    found = []
    for name, shade in (("secretbase", 40), ("secrettuned", 200)):
        shades = {case.id: shade for case in ASKED}
        found.append(image_run(tmp_path / name, ASKED, shades, model=name))
    return found


def rate(folder: Path, who: str, said: Callable[[int, str], str], fields: tuple[str, ...]) -> None:
    """Labels of one annotator. said: from case number and runs to a value."""
    sample = LabelingSample.read(folder / SAMPLE)
    with RecordLog(folder / f"{who}.jsonl") as log:
        for item in sample.items:
            number = next(i for i, case in enumerate(ASKED) if case.id == item.case)
            values = {field: said(number, "/".join(item.runs)) for field in fields}
            log.append({"item": item.id, **values, "annotator": who})


def test_the_page_of_ratings_is_blind(runs: list[Path], tmp_path: Path) -> None:
    audit = open_audit(runs, "quality", tmp_path / "labels", n=10)
    assert len(audit.tasks) == 20
    with AuditServer(audit) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()

        def ask(path: str) -> bytes:
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
            connection.request("GET", path, headers={"X-Token": server.token})
            body = connection.getresponse().read()
            connection.close()
            return body

        state = ask("/state?annotator=ann")
        assert b"secret" not in state and b"row" not in state and b"prompt" in state
        told = json.loads(state)
        assert [field["name"] for field in told["fields"]] == list(FIELDS)
        assert [key for _, key in told["fields"][0]["options"]] == list("1234567")
        image = ask(f"/image?task={told['tasks'][0]['id']}&index=0")
        server.shutdown()
        thread.join()
    with Image.open(io.BytesIO(image)) as shown:
        assert shown.size == (24, 24) and not shown.info
    assert b"secret" not in image
    # Both images of a case are in it, far apart in the order in which they are seen.
    sample = LabelingSample.read(tmp_path / "labels" / SAMPLE)
    assert set(Counter(item.case for item in sample.items).values()) == {2}
    assert [task.id for task in audit.tasks] != [task["id"] for task in told["tasks"]]


def test_a_sample_is_drawn_once_and_its_labels_go_on(runs: list[Path], tmp_path: Path) -> None:
    first = draw_sample(runs, "quality", tmp_path / "a", 10, seed=3)
    assert draw_sample(runs, "quality", tmp_path / "a", 10, seed=3) == first
    assert draw_sample(runs, "quality", tmp_path / "b", 10, seed=3).items == first.items
    other = draw_sample(runs, "quality", tmp_path / "c", 10, seed=4)
    assert {item.case for item in other.items} != {item.case for item in first.items}
    with raises("another-run", "10", "secretbase, secrettuned", error=UsageError):
        draw_sample(runs, "quality", tmp_path / "a", 11, seed=3)
    with raises("too-few-items", "draw 41", "of 40", error=UsageError):
        draw_sample(runs, "quality", tmp_path / "d", 41)
    with raises("too-few-items", "two runs", error=UsageError):
        draw_sample(runs[:1], "compare", tmp_path / "d", 4)
    with raises("duplicate-id", "a run", error=UsageError):
        draw_sample([runs[0], runs[0]], "compare", tmp_path / "d", 4)
    with raises("not-a-run", "rows.jsonl", error=UsageError):
        open_audit([tmp_path / "rows.jsonl"], "quality", tmp_path / "d", n=4)
    with raises("missing-option", error=UsageError):
        open_audit([runs[0], tmp_path / "rows.jsonl"], "quality", tmp_path / "d")


def test_a_known_difference_is_found(runs: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "labels"
    draw_sample(runs, "quality", folder, 40)
    for who in ("ann", "bo"):
        rng = random.Random(who)

        def said(number: int, run: str, rng: random.Random = rng) -> str:
            level = 2 + number % 3 + (1 if run == "secrettuned" else 0)
            return str(min(7, level + (rng.random() < 0.2)))

        rate(folder, who, said, FIELDS[:2])
    found = analyze_ratings(folder)
    assert found["labels"] == {"ann": 80, "bo": 80} and found["items"] == 80
    assert 0.7 < found["alpha"]["overall"] < 1 and found["alpha"]["fidelity"] is None
    (pair,) = found["fields"]["overall"]["pairs"]
    assert (pair["first"], pair["second"]) == ("secretbase", "secrettuned")
    low, high = pair["interval"]
    assert low < 1 < high and high - low < 0.4 and pair["difference"] == pytest.approx(1, abs=0.15)
    assert (
        pair["n"] == 40 and pair["clusters"] == 20 and pair["adjusted"] == pair["p_value"] < 0.001
    )
    base = found["fields"]["overall"]["runs"]["secretbase"]
    assert base["n"] == 40 and base["mean"] == pytest.approx(3.2, abs=0.15)
    nothing = found["fields"]["fidelity"]
    assert nothing["pairs"][0]["difference"] is None and nothing["runs"]["secretbase"]["n"] == 0


def test_sides_do_not_count_in_comparisons(runs: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "labels"
    sample = draw_sample(runs, "compare", folder, 40)
    shown = Counter(item.runs[0] for item in sample.items)
    assert shown == {"secretbase": 20, "secrettuned": 20}

    def said(number: int, order: str) -> str:
        if number % 4 == 0:
            return "same"
        if number % 4 == 1:
            return "left"  # whatever stands there
        return "left" if order.startswith("secrettuned") else "right"

    rate(folder, "ann", said, FIELDS)
    (pair,) = analyze_ratings(folder)["fields"]["overall"]["pairs"]
    assert (pair["first_better"] + pair["second_better"], pair["even"]) == (30, 10)
    assert pair["second_better"] >= 20 and 0.35 < pair["preference"] <= 0.75
    assert pair["interval"][0] > 0 and pair["p_value"] < 0.01 and pair["sign_test"] < 0.01
    other = tmp_path / "other"
    draw_sample(runs[::-1], "compare", other, 40)
    rate(other, "ann", said, FIELDS)
    (turned,) = analyze_ratings(other)["fields"]["overall"]["pairs"]
    assert turned["first"] == "secrettuned" and turned["preference"] < -0.35


def test_what_can_not_be_analyzed_says_why(runs: list[Path], tmp_path: Path) -> None:
    with raises("no-such-file", "sample.json", error=UsageError):
        analyze_ratings(tmp_path)
    folder = tmp_path / "labels"
    draw_sample(runs, "quality", folder, 5)
    with raises("nothing-to-do", "labels"):
        analyze_ratings(folder)
    with RecordLog(folder / "ann.jsonl") as log:
        log.append({"item": "elsewhere", "overall": "3"})
    with raises("unknown-reference", "elsewhere", error=RowError):
        analyze_ratings(folder)
    with raises("unsupported", "quality", error=UsageError):
        merge([folder / "ann.jsonl"], "quality", tmp_path / "m.jsonl")


def test_alpha_is_that_of_krippendorffs_own_example() -> None:
    # Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C: four observers.
    rows = ("123321412...", "123322412 5.3", ".33323422 51.", "123324412 51.")
    rows = tuple(row.replace(" ", "") for row in rows)
    raters = [[None if label == "." else label for label in row] for row in rows]
    assert krippendorff_alpha(raters) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(raters, "ordinal", "12345") == pytest.approx(0.815, abs=5e-4)
    # The labels that nobody gave change nothing; an order that lacks one is refused.
    assert krippendorff_alpha(raters, "ordinal", "1234567") == pytest.approx(0.815, abs=5e-4)
    with pytest.raises(ValueError, match="are not in"):
        krippendorff_alpha(raters, "ordinal", "123")


def test_the_rank_test_is_wilcoxons() -> None:
    values = np.random.default_rng(0).normal(0.5, 1, 25)
    assert signed_rank(values) == pytest.approx(stats.wilcoxon(values).pvalue)
    assert signed_rank(np.zeros(4)) == 1.0


def test_the_commands_draw_and_show(runs: list[Path], tmp_path: Path, cli: Cli) -> None:
    folder = tmp_path / "labels"
    draw_sample(runs, "quality", folder, 40)
    rate(folder, "ann", lambda number, run: "6" if run == "secrettuned" else "3", FIELDS)
    shown = cli("audit", "analyze", folder)
    assert shown.returncode == 0, shown.stderr
    for text in ("ann 80 of 80", "overall, 1 to 7", "6.000", "3.000", "secrettuned", "Wilcoxon"):
        assert text in shown.stdout, text
    assert (
        json.loads(json.dumps(analyze_ratings(folder)))["fields"]["fidelity"]["pairs"][0]["n"] == 40
    )
    with raises("unknown-name", "worlds", error=UsageError):
        open_audit(runs, "worlds", tmp_path / "w")


def test_what_people_said_scores_their_runs(tmp_path: Path) -> None:
    """`ratings:FOLDER` of a folder that the page filled: for a study's table, as any scorer."""
    folder, runs = tmp_path / "labels", []
    for name, darkest in (("secretbase", 10), ("secrettuned", 100)):  # no two images are the same
        shades = {case.id: darkest + number for number, case in enumerate(ASKED)}
        runs.append(image_run(tmp_path / name, ASKED, shades, model=name))
    draw_sample(runs, "quality", folder, 30)
    tuned = {"ann": "6", "bob": "5"}
    rate(folder, "ann", lambda _, run: "1", FIELDS)  # clicked first, and changed below
    for who, number in tuned.items():
        rate(folder, who, lambda _, run, n=number: n if run == "secrettuned" else "2", FIELDS)
    for root, expected in zip(runs, (2.0, 5.5), strict=True):
        ((_, tally),) = score_images(root, [f"ratings:{folder}?field=fidelity"])
        assert (tally.scored, tally.failed) == (30, 10) and "nobody" in tally.first_error
        (quality,) = read_quality(Run.open(root))
        assert (quality.score.value, quality.score.n) == (expected, 30)
    with raises("nothing-to-do", "'style'", error=DataError):
        as_scorer(f"ratings:{folder}?field=style")
