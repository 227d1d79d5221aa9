"""Runs of clips: made, found and broken ones, judged frame by frame, whose truth is known."""

import hashlib
import json
from pathlib import Path
from typing import Any

import datasets
import pytest
from refusals import raises

from counterprior.clip_files import Clip, encode_mp4, encode_webp, read_clip
from counterprior.errors import UsageError
from counterprior.eval.api import write_prompts
from counterprior.eval.core import ImageRequest
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import Evaluation, RunSettings, outcomes
from counterprior.eval.engine.run import Run, RunError
from counterprior.eval.engine.steps import JudgeSettings, judge_run
from counterprior.eval.generators import REPORT
from counterprior.eval.generators.folder import ImageFolder
from counterprior.eval.generators.render import RenderGenerator
from counterprior.eval.judges.pixels import PixelJudge
from counterprior.eval.publishing.building import PublishSettings, build_publication
from counterprior.eval.publishing.hub import PublishedImages
from counterprior.eval.publishing.publication import iter_rows, read_publication
from counterprior.eval.publishing.restoring import recompute
from counterprior.eval.report.site import write_report
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.eval.selftest import rows
from counterprior.scenes.drawing import draw_scene

SUITE = "t2i_homogenization"
ANIMALS = rows.pairs(rows.STOUT)[:2]


def whole(run: Path) -> dict[str, Any]:
    """Score -> its value, of a run under one judge."""
    (judged,) = score_run(run, ScoreSettings())
    return {name: score.value for name, score in judged.whole.items()}


@pytest.mark.slow
def test_what_the_renderer_is_set_to_do_over_time_is_found_again(tmp_path: Path) -> None:
    generator = RenderGenerator(order_bias=1, video=5, swaps_at=0.6, swaps=0.5)
    settings = RunSettings(SUITE, "memory", tmp_path / "run")
    found = Rows.of([rows.neutral(a, b) for a, b in ANIMALS])
    truth = {}
    with Evaluation.start(settings, generator.identity(), found) as evaluation:
        evaluation.make(generator)
        # Killed in the middle: what is judged is not asked again.
        evaluation.ask(PixelJudge(), cases=evaluation.cases[:2], frames="count=5")
        log, tally = evaluation.ask(PixelJudge(), frames="count=5")
        assert tally.recorded == 10 and tally.labels.total() == 5 * 2
        for case in evaluation.cases:
            scenes = generator.scenes(ImageRequest(case.prompt, case.seed))
            first = sorted(case.clusters[1:], key=case.prompt.lower().index)[0]
            truth[case.id] = [scene.left_to_right()[0] == first for scene in scenes]
        judged = outcomes(evaluation.run, log)
    for outcome in judged:
        said = [outcome.frames[n]["order", "original"].label for n in sorted(outcome.frames)]
        assert said == ["first_left" if left else "first_right" for left in truth[outcome.case.id]]
    shares = list(truth.values())
    changed = [one[0] != one[-1] for one in shares]
    assert any(changed) and not all(changed)
    expected = {
        "signed_index": sum(1 if sum(one) > 2 else -1 for one in shares),
        "order_first_frame": sum(one[0] for one in shares),
        "order_last_frame": sum(one[-1] for one in shares),
        "order_most_frames": sum(sum(one) > 2 for one in shares),
        "order_frame_share": sum(sum(one) / 5 for one in shares),
        "order_changed": sum(changed),
    }
    scores = whole(tmp_path / "run")
    for name, value in expected.items():
        assert scores[name] == pytest.approx(100 * value / len(shares)), name
    # Three of five frames come before the walk.
    assert scores["order_first_frame"] == scores["order_most_frames"]
    # The same bytes and verdicts when it is made again.
    image = next(iter(Run.open(tmp_path / "run").images().values()))
    case = Run.open(tmp_path / "run").cases()[0]
    again = generator.generate(ImageRequest(case.prompt, case.seed))
    assert isinstance(again, Clip)
    assert again.data == (tmp_path / "run" / image.file).read_bytes()
    with (
        Evaluation.start(settings, generator.identity(), found) as evaluation,
        raises("no-frame", case.id, "9", "of 5", error=UsageError),
    ):
        evaluation.ask(PixelJudge(), frames="0,9")


def test_an_edit_shows_its_source_first() -> None:
    prompt = "A cat and a dog."
    before = RenderGenerator().generate(ImageRequest(prompt, 3))
    assert not isinstance(before, Clip)
    request = ImageRequest("The dog is lying down on the ground.", 3, source=before)
    scenes = RenderGenerator(video=3, swaps_at=0.5).scenes(request)
    assert [scene.pose_of("dog") for scene in scenes] == ["", "lying", "lying"]


@pytest.mark.slow
def test_clips_of_a_folder_are_judged_and_broken_ones_named(
    text_release: Path, tmp_path: Path, cli: Any
) -> None:
    folder, run = tmp_path / "clips", tmp_path / "run"
    folder.mkdir()
    asked = ("--suite", SUITE, "--data", text_release, "--limit", 2)
    prompts = tmp_path / "prompts.jsonl"
    write_prompts(prompts, SUITE, data=str(text_release), limit=2)
    cases = [json.loads(line) for line in prompts.read_text().splitlines()]
    makers = {".mp4": encode_mp4, ".webp": encode_webp}
    renderer = RenderGenerator(video=4, swaps_at=0.5)
    for number, case in enumerate(cases):
        ending = list(makers)[number % 2]
        scenes = renderer.scenes(ImageRequest(case["prompt"], case["seed"]))
        clip = makers[ending]([draw_scene(scene) for scene in scenes], 4)
        (folder / f"{case['id']}{ending}").write_bytes(clip.data)
    broken, empty = (folder / f"{cases[n]['id']}.mp4" for n in (0, 2))
    broken.write_bytes(broken.read_bytes()[:2000])
    empty.write_bytes(b"")
    done = cli(
        "eval", *asked, "--generator", f"folder:{folder}", "--judge", "pixels",
        "--frames", "first,last", "--out", run, "--json",
    )  # fmt: off
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)
    scores = {s["name"]: s for s in result["scores"] if s["group"] == "all"}
    assert scores["order_changed"]["value"] == 100.0
    assert scores["order_changed"]["n"] + scores["order_changed"]["excluded"].get("short", 0) == 2
    assert scores["order_changed"]["excluded"]["error"] == 2
    images = Run.open(run).images()
    failed = {case: image.message for case, image in images.items() if image.status == "error"}
    assert set(failed) == {cases[0]["id"], cases[2]["id"]}
    assert str(broken) in failed[cases[0]["id"]] and "clip" in failed[cases[0]["id"]]
    assert str(empty) in failed[cases[2]["id"]]
    kept = {path.name.partition("-")[0] for path in (run / "frames").glob("*/*")}
    assert kept == {"0", "3"}


@pytest.mark.lane
def test_clips_are_published_as_mp4_and_score_the_same(tmp_path: Path) -> None:
    generator = RenderGenerator(video=4, swaps_at=0.5)
    settings = RunSettings(SUITE, "memory", tmp_path / "run")
    found = Rows.of([rows.neutral(*ANIMALS[0])])
    with Evaluation.start(settings, generator.identity(), found) as evaluation:
        evaluation.make(generator)
        evaluation.ask(PixelJudge())
        cases = list(evaluation.cases)
    out = tmp_path / "published"
    build_publication([tmp_path / "run"], out, PublishSettings("cc-by-4.0"))
    published = read_publication(out)
    assert published.runs[0].clips == 2 and "as MP4" in (out / "README.md").read_text()
    shown = list(iter_rows(out, published.of("images")))
    assert [(row["image"], row["frames"], row["rate"]) for row in shown] == [(None, 4, 8.0)] * 2
    for row in shown:
        clip = read_clip(row["video"]["bytes"])
        assert (clip.ending, clip.frames, clip.fps) == (".mp4", 4, 8)
        assert row["video"]["path"] == f"{row['case']}.mp4"
    assert {row["frame"] for row in iter_rows(out, published.of("verdicts"))} == {0, 1, 3}
    assert recompute(out).problems == []
    # Somebody else can judge them, and is told that they are not the judged bytes.
    images = PublishedImages(out, published)
    again = images.generate(ImageRequest(cases[0].prompt, cases[0].seed, case=cases[0]))
    assert isinstance(again, Clip) and again.ending == ".mp4"
    assert "encoded anew" in again.info[REPORT]
    loaded = datasets.load_dataset(str(out), "images", split="test")
    assert isinstance(loaded.features["video"], datasets.Video)


@pytest.mark.lane
def test_a_judge_may_be_shown_all_frames_at_once(tmp_path: Path, server: Any) -> None:
    server.answer = lambda body: "1"
    generator = RenderGenerator(video=4, swaps_at=0.5)
    settings = RunSettings(SUITE, "memory", tmp_path / "run")
    found = Rows.of([rows.neutral(*ANIMALS[0])])
    with Evaluation.start(settings, generator.identity(), found) as evaluation:
        evaluation.make(generator)
    spec = server.spec("openai", "attempts=1&timeout=5&clips=together")
    for _ in range(2):  # the second time nothing is open
        done = judge_run(tmp_path / "run", [spec], JudgeSettings(frames="count=4"), rows=found)
    assert done.judged[0][1].recorded == 2 and len(server.asked) == 2
    for asked in server.asked:
        *shown, text = asked.body["messages"][-1]["content"]
        assert len({part["image_url"]["url"] for part in shown}) == 4
        assert text["text"].startswith("The last 4 pictures that you see are frames of one video")
        assert "A: " in text["text"]
    (judged,) = score_run(tmp_path / "run", ScoreSettings())
    assert judged.result.card.asked == 2 and judged.whole["valid"].n == 2
    assert not [name for name in judged.whole if "frame" in name]
    assert judged.log.identity["clips"].startswith("together ")
    with raises("bad-option", "openai: clips", "frames", "together", "'all'", error=UsageError):
        judge_run(tmp_path / "run", [spec.replace("together", "all")], rows=found)


@pytest.mark.lane
def test_a_report_plays_clips_and_a_replaced_clip_is_judged_anew(tmp_path: Path) -> None:
    folder, run = tmp_path / "clips", tmp_path / "run"
    folder.mkdir()
    generator = RenderGenerator(video=4, swaps_at=0.5)
    found = Rows.of([rows.neutral(*ANIMALS[0])])
    settings = RunSettings(SUITE, "memory", run)
    with Evaluation.start(settings, ImageFolder(folder).identity(), found) as evaluation:
        for case in evaluation.cases:
            scenes = generator.scenes(ImageRequest(case.prompt, case.seed))
            clip = encode_mp4([draw_scene(scene) for scene in scenes], 4)
            (folder / f"{case.id}.mp4").write_bytes(clip.data)
        evaluation.make(ImageFolder(folder))
        evaluation.ask(PixelJudge(), frames="first,last")
    # A clip of which one frame was not judged, as after a kill, is not scored.
    (verdicts,) = run.glob("verdicts/*/verdicts.jsonl")
    whole_file = verdicts.read_text()
    verdicts.write_text("".join(whole_file.splitlines(keepends=True)[:-1]))
    with raises("incomplete-run", run, "1 of 2", error=RunError):
        score_run(run, ScoreSettings())
    verdicts.write_text(whole_file)
    page = (write_report([run], tmp_path / "site").parent / "gallery-run.html").read_text()
    held = page.partition('<script type="application/json" id="data">')[2]
    shown = json.loads(held.partition("</script>")[0])["images"]
    for image in shown:
        digest = hashlib.sha256((tmp_path / "site" / image["clip"]).read_bytes()).hexdigest()
        assert digest == Run.open(run).images()[image["id"]].sha256
        assert image["thumbnail"] and image["clip"].endswith(".mp4")
    frames = [a["frame"] for image in shown for part in image["answers"] for a in part]
    assert sorted(frames) == [0, 0, 3, 3]
    other = encode_mp4([draw_scene(scene) for scene in scenes], 2)
    (folder / f"{case.id}.mp4").write_bytes(other.data)
    done = judge_run(run, ["pixels"], JudgeSettings(frames="first,last"), rows=found)
    ((_, tally),) = done.judged
    assert (tally.labels.total(), tally.recorded) == (2, 2)
