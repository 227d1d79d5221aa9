"""The best of N seeds: nested, kept, judged once; the selecting judge's score is too good."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from refusals import raises

from counterprior.eval.core import GeneratorError, ImageRequest, Question, Verdict
from counterprior.eval.engine.costs import Cost, capped, count_images
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import evaluate_run, generate
from counterprior.eval.generators import PaidByImage, as_generator, open_generator
from counterprior.eval.methods import apply_methods
from counterprior.eval.methods.best_of import BestOf
from counterprior.eval.methods.candidates import (
    Candidate,
    best_of,
    candidate_path,
    candidate_seed,
    read_candidates,
)
from counterprior.eval.selftest.trials import grounding_trials, homogenization_trials
from counterprior.eval.studies.best_of import best_of_curve

SUITE = "t2i_correctness"
GENERATOR = "render:?grounding=0.3"

asked: list[str] = []


def noisy() -> Any:
    """A judge that sees the truth half of the time, and gives a measured number."""

    def judge(question: Question) -> Verdict:
        asked.append(question.id)
        scene = question.images[-1].tobytes()
        rng = random.Random(scene[:3000])
        return Verdict(question.labels[0], number=rng.random())

    return judge


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    (tmp_path / "judging.py").write_text(Path(__file__).read_text())
    monkeypatch.syspath_prepend(str(tmp_path))
    return "python:judging:noisy"


def rows(count: int) -> Rows:
    """Rows that the renderer can draw, two cases each."""
    (trial,) = grounding_trials()
    return Rows.of(trial.rows[:count])


def make(out: Path, method: str, count: int = 6) -> Path:
    settings = RunSettings(SUITE, "trial", out)
    generate(settings, apply_methods(GENERATOR, [method]), rows=rows(count))
    return out


def test_smaller_numbers_are_prefixes_and_nothing_is_made_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[str, int]] = []
    real = type(open_generator("render:")).generate

    def counted(self: Any, request: ImageRequest) -> Any:
        drawn.append((request.prompt, request.seed))
        return real(self, request)

    monkeypatch.setattr(type(open_generator("render:")), "generate", counted)
    four = make(tmp_path / "four", "best-of:4?by=pixels", count=2)
    assert len(drawn) == len(set(drawn)) == 4 * 4  # two orders of two rows
    two = make(tmp_path / "two", "best-of:2?by=pixels", count=2)

    def known(root: Path) -> dict[tuple[str, int], tuple[int, str, float]]:
        return {(c.case, c.number): (c.seed, c.sha256, c.score) for c in read_candidates(root)}

    assert known(two) == {key: c for key, c in known(four).items() if key[1] < 2}
    # A killed run goes on with the candidates that are there.
    drawn.clear()
    (four / "images.jsonl").unlink()
    (four / "candidates.jsonl").write_text(
        "".join((four / "candidates.jsonl").read_text().splitlines(keepends=True)[:-3])
    )
    shutil.rmtree(four / "images")
    before = known(four)
    make(four, "best-of:4?by=pixels", count=2)
    assert len(drawn) == 3 and before.items() <= known(four).items()


def test_the_chosen_image_is_the_best_and_says_so(tmp_path: Path) -> None:
    out = make(tmp_path / "run", "best-of:4?by=pixels", count=3)
    by_case: dict[str, list[Candidate]] = {}
    for candidate in read_candidates(out):
        by_case.setdefault(candidate.case, []).append(candidate)
    records = [json.loads(line) for line in (out / "images.jsonl").read_text().splitlines()]
    for record in records:
        candidates = by_case[record["case"]]
        best = best_of(candidates)
        assert best is not None and best.score == max(c.score for c in candidates)
        assert record["sha256"] == best.sha256
        report = json.loads(record["report"])
        assert report == {
            "candidates": 4,
            "chosen": best.number,
            "failed": 0,
            "score": best.score,
        }
    assert len(by_case) == 6


@pytest.mark.slow
def test_a_choice_among_noise_looks_good_only_to_who_chose(tmp_path: Path, on_path: str) -> None:
    out = make(tmp_path / "run", f"best-of:4?by={on_path}", count=5)
    curve = best_of_curve(out, ["pixels"], rows=rows(5))["curve"]
    assert [point["n"] for point in curve] == [1, 2, 4]
    own = [point["chosen"] for point in curve]
    (others,) = ([point["others"][name] for point in curve] for name in curve[0]["others"])
    assert own == sorted(own) and own[0] == pytest.approx(0.5, abs=0.15) and own[-1] > own[0] + 0.15
    assert max(others) - min(others) < 0.3  # noise chooses nothing
    assert curve[0]["other_intervals"]["pixels"][0] < others[0]
    assert "<svg" in (out / "best_of.html").read_text()


def test_the_selecting_judge_asks_once_of_each_image(tmp_path: Path) -> None:
    settings = RunSettings(SUITE, "trial", tmp_path / "run")
    generator = apply_methods(GENERATOR, ["best-of:3?by=pixels"])
    done = evaluate_run(settings, generator, ["pixels"], rows=rows(2))
    log, tally = done.judged[0]
    # Its own verdicts of the chosen images were there already.
    assert tally.recorded == 4 and not tally.labels
    assert len(log.newest) == len({c.sha256 for c in read_candidates(settings.out)}) == 12


def test_seeds_of_candidates_are_the_cases_own_first() -> None:
    assert candidate_seed(7, 0) == 7
    seeds = {candidate_seed(seed, number) for seed in (7, 8) for number in range(50)}
    assert len(seeds) == 100 and all(0 <= seed < 2**31 for seed in seeds)


def test_failed_candidates_are_counted_and_refused_ones_not_asked_again(tmp_path: Path) -> None:
    calls: list[int] = []

    class Declining:
        def identity(self) -> dict[str, str]:
            return {"kind": "declining"}

        def generate(self, request: ImageRequest) -> Any:
            calls.append(request.seed)
            assert request.case is not None
            if request.seed == request.case.seed:
                raise GeneratorError("no", "refused")
            if request.case.variant == "reverse":
                raise GeneratorError("broken")
            return open_generator("render:").generate(request)

    settings = RunSettings(SUITE, "trial", tmp_path / "run")
    for _ in range(2):
        made = generate(settings, BestOf(Declining(), 3, "pixels"), rows=rows(1)).run.images()
    status = {name.rsplit("-", 2)[1]: image.status for name, image in made.items()}
    assert status == {"aligned": "made", "reverse": "error"}
    assert json.loads(next(i.report for i in made.values() if i.report))["failed"] == 1
    # Once more: of the case without an image, what failed; not what was declined.
    assert len(calls) == 3 + 3 + 2


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("best-of:?by=pixels", ("missing-option", "best-of:NUMBER")),
        ("best-of:0?by=pixels", ("out-of-range", "number of seeds", "1 to 1024", "'0'")),
        ("best-of:4", ("missing-option", "option by", "by=")),
        ("best-of:4?by=nobody", ("unknown-name", "nobody")),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(spec: str, reason: tuple[str, ...]) -> None:
    with raises(*reason):
        apply_methods("render:", [spec])


def test_the_curve_is_a_command(
    text_release: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    out = tmp_path / "run"
    suite = ("--suite", "spatial_uc", "--data", text_release, "--limit", 8)
    method = ("--method", "best-of:2?by=pixels")
    made = cli("generate", *suite, "--generator", "render:", *method, "--out", out)
    assert made.returncode == 0, made.stderr
    shown = cli("study", "best-of", out, "--judge", "pixels")
    assert "by who chose" in shown.stdout and "best_of.html" in shown.stderr, shown.stderr
    with raises("nothing-to-do", "best-of:"):
        best_of_curve(tmp_path, [])


def test_equal_images_of_two_cases_are_rated_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "by_variant.py").write_text(
        "from counterprior.eval.core import Verdict\n"
        "def judge():\n"
        "    return lambda q: Verdict(q.labels[0], number=float('aligned' in q.case))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    image = open_generator("render:").generate(ImageRequest("a cat", 1))
    assert isinstance(image, Image.Image)
    same = as_generator(lambda prompt, seed: image.copy(), {"kind": "same"})
    settings = RunSettings(SUITE, "trial", tmp_path / "run")
    generate(settings, BestOf(same, 1, "pixels"), rows=rows(1))
    (point,) = best_of_curve(tmp_path / "run", ["python:by_variant:judge"], rows=rows(1))["curve"]
    assert point["others"] == {"python:by_variant:judge": 0.5}


def test_a_suite_without_right_images_needs_a_scorer(text_release: Path, tmp_path: Path) -> None:
    settings = RunSettings("t2i_homogenization", str(text_release), tmp_path / "run", limit=2)
    with raises("unsupported", "best-of", "scorer"):
        generate(settings, apply_methods(GENERATOR, ["best-of:2?by=pixels"]))


def test_a_scorer_chooses_on_any_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "darkest.py").write_text(
        "class Scorer:\n"
        "    def identity(self): return {'kind': 'darkest'}\n"
        "    def score(self, pairs):\n"
        "        import numpy as np\n"
        "        return [-float(np.asarray(image, float).mean()) for _, image in pairs]\n"
    )
    settings = RunSettings("t2i_homogenization", "trial", tmp_path / "run")
    neutral = Rows.of(next(homogenization_trials()).rows[:2])
    method = "best-of:3?by=python:darkest:Scorer"
    made = generate(settings, apply_methods("render:", [method]), rows=neutral).run
    for name, image in made.images().items():
        candidates = [c for c in read_candidates(tmp_path / "run") if c.case == name]
        means = [
            np.asarray(Image.open(candidate_path(tmp_path / "run", c)), float).mean()
            for c in candidates
        ]
        assert image.sha256 == candidates[int(np.argmin(means))].sha256
        assert [c.score for c in candidates] == [pytest.approx(-mean) for mean in means]


class Paid(PaidByImage):
    def identity(self) -> dict[str, str]:
        return {"kind": "openai-image", "model": "m"}

    def generate(self, request: ImageRequest, permit: Any = None) -> Image.Image:
        made = open_generator("render:").generate(request)
        assert isinstance(made, Image.Image)
        return made


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.yaml"
    path.write_text("openai-image:m: {image: 0.25, edit: 1}\n")
    return path


def test_all_candidates_count_under_the_cap(tmp_path: Path, prices: Path) -> None:
    settings = RunSettings(SUITE, "trial", tmp_path / "run")

    def make_images(cap: float) -> list[str]:
        cost = Cost(concurrency=2, max_usd=cap, prices=prices)
        run = generate(settings, BestOf(Paid(), 3, "pixels"), cost, rows=rows(1)).run
        return [image.usd for image in run.images().values()]

    with raises("over-budget", "--max-usd"):
        make_images(1.0)
    assert len(read_candidates(tmp_path / "run")) == 4
    with raises("over-budget", "--max-usd"):
        make_images(1.25)  # goes on with what was paid
    assert make_images(1.5) == ["0.75", "0.75"]
    assert len(read_candidates(tmp_path / "run")) == 6


def test_images_of_each_run_of_a_method_are_paid_for_once(tmp_path: Path, prices: Path) -> None:
    method = BestOf(Paid(), 2, "pixels")
    cost = Cost(concurrency=3, max_usd=10, prices=prices)
    with cost.plan(tmp_path) as plan:
        for name in ("first", "second"):
            settings = RunSettings(SUITE, "trial", tmp_path / name)
            run = generate(settings, method, plan, rows=rows(1)).run
            assert capped(method, plan, run)[1] == 3
        assert plan.budget.spent == 2  # of each run, two candidates of two cases
    with cost.plan(tmp_path) as plan:
        for name in ("first", "second"):
            count_images(plan, Run.open(tmp_path / name))
        assert plan.budget.spent == 2


@pytest.mark.slow
def test_scores_by_the_judge_that_chose_are_marked(
    text_release: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    run, plain, other = tmp_path / "run", tmp_path / "plain", "faulty:pixels?swap=0.3"
    suite = ("--suite", "spatial_uc", "--data", text_release, "--limit", 8)
    common = (*suite, "--generator", "render:?grounding=0.3", "--judge", "faulty:pixels?swap=0.1")
    method = ("--method", "best-of:3?by=faulty:pixels&swap=0.1")
    legend = "§ the images were chosen by the judge itself"

    def marks() -> list[set[str]]:
        results = json.loads(cli("score", run, "--json").stdout)
        results.sort(key=lambda result: "swap=0.3" in result["judge"])
        return [{name for s in result["scores"] for name in s["marks"]} for result in results]

    for folder, methods in ((run, method), (plain, ())):
        made = cli("eval", *common, *methods, "--out", folder)
        assert made.returncode == 0, made.stderr
        assert ("§" in made.stdout) == (folder == run)
        assert " ".join(made.stdout.split()).count(legend) == (folder == run)
        assert cli("judge", folder, "--judge", other).returncode == 0
    assert marks() == [{"judge-chose"}, set()]
    compared = cli("quality", plain, run).stdout
    signs = [
        ["§" in line for line in compared.splitlines() if judge in line]
        for judge in ("swap=0.1", "swap=0.3")
    ]
    assert signs == [[False, True, True], [False] * 3], compared
    assert " ".join(compared.split()).count(legend) == 1
    report = cli("report", run, "--out", tmp_path / "site")
    assert report.returncode == 0, report.stderr
    page = (tmp_path / "site" / "spatial_uc.html").read_text()
    assert legend in page and page.count("§") > 2
    # A judge of the candidates that smaller numbers choose did not choose itself.
    assert cli("study", "best-of", run, "--judge", other).returncode == 0
    assert marks() == [{"judge-chose"}, set()]


def test_the_chooser_of_noise_sees_n_over_n_plus_1_and_another_judge_a_half() -> None:
    rng = np.random.default_rng(5)
    for n in (1, 2, 4, 8, 16):
        chosen, seen = [], []
        for case in range(4_000):
            candidates = [
                Candidate(str(case), number, number, "0" * 64, float(score))
                for number, score in enumerate(rng.random(n))
            ]
            best = best_of(candidates)
            assert best is not None
            chosen.append(best.score)
            seen.append(rng.random(n)[best.number])
        assert np.mean(chosen) == pytest.approx(n / (n + 1), abs=4 * np.std(chosen) / 4_000**0.5)
        assert np.mean(seen) == pytest.approx(0.5, abs=4 * np.std(seen) / 4_000**0.5)
