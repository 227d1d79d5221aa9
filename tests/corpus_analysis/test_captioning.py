"""Who names the left one first: known truth, readings, photographs, people, and the command."""

from __future__ import annotations

import base64
import gc
import json
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageOps
from refusals import raises

from counterprior.corpus_analysis.captioning.judge import NamesJudge
from counterprior.corpus_analysis.captioning.people import read_people
from counterprior.corpus_analysis.captioning.recorded import read_recorded
from counterprior.corpus_analysis.captioning.run import (
    CaptionerResult,
    CaptioningSettings,
    measure_captions,
)
from counterprior.corpus_analysis.captioning.things import photographs, scenes
from counterprior.corpus_analysis.captions.parser import ModelMissing, installed_model
from counterprior.errors import DataError, RunFailed, UsageError
from counterprior.eval.captioners import as_captioner
from counterprior.eval.core import Caption, CaptionRequest, Question
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import evaluate_run
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.eval.suites.caption_order import (
    UNPUBLISHED,
    USUAL_WORDINGS,
    CaptionOrderSuite,
)
from counterprior.images import open_image, pixels_digest
from counterprior.schema import CaptionOrder

TEMPLATES = (
    "A photo of a {a} and a {b}.",
    "The image shows a cartoon {a}. Next to it, a {b} stands on the ground.",
    "**{a}**: there is one {a} here,\n\nand a {b}, too.",
)
COLORS = {"cat": (200, 30, 30), "dog": (30, 30, 200), "bench": (30, 200, 30)}


@pytest.fixture(autouse=True)
def spacy_model() -> None:
    try:
        installed_model()
    except ModelMissing as error:
        pytest.skip(str(error))


def logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))


class Scripted:
    """Names the left one first with a set logit, and entities by their own logits; sometimes it
    names one thing only, declines, or fails."""

    def __init__(
        self, images: Sequence[CaptionOrder], left: float, sd: float, faults: float
    ) -> None:
        self.left, self.faults = left, faults
        rng = random.Random(7)
        names = {one.left for one in images} | {one.right for one in images}
        self.logits = {name: rng.gauss(0, sd) for name in sorted(names)}
        self.shown: dict[str, tuple[str, str]] = {}
        for one in images:
            image, sides = open_image(Path(one.file)), (one.left, one.right)
            self.shown[pixels_digest(image)] = sides
            self.shown[pixels_digest(ImageOps.mirror(image))] = sides[::-1]

    def truth(self, images: Sequence[CaptionOrder]) -> float:
        """Expected `left_first`, percent."""
        shares = []
        for one in images:
            more = self.logits[one.left] - self.logits[one.right]
            shares.append((logistic(self.left + more) + logistic(self.left - more)) / 2)
        return 100 * sum(shares) / len(shares)

    def __call__(self, image: Image.Image, instruction: str) -> Any:
        assert not image.info
        digest = pixels_digest(image)
        left, right = self.shown[digest]
        rng = random.Random(f"{digest}/{instruction}")
        if rng.random() < self.faults:
            kind = rng.choice(("one", "refused", "error"))
            return f"A lone {left}." if kind == "one" else Caption("no", kind)
        chance = logistic(self.left + self.logits[left] - self.logits[right])
        a, b = (left, right) if rng.random() < chance else (right, left)
        return rng.choice(TEMPLATES).format(a=a, b=b)


@pytest.mark.slow
def test_recovers_known_habit_from_captions_of_rendered_scenes(tmp_path: Path) -> None:
    images = scenes(32, 3, tmp_path / "drawn")
    scripted = Scripted(images, left=1.2, sd=1.5, faults=0.2)
    settings = CaptioningSettings(
        tmp_path,
        captioners=(as_captioner(scripted, identity="v1"),),
        scenes=32,
        seed=3,
        wordings=("describe", "tell"),
    )
    whole = measure_captions(settings)
    (found,) = whole.results
    truth = scripted.truth(images)
    left_first = found.score("left_first")
    assert 50 < left_first.interval.low < truth < left_first.interval.high < 85
    assert left_first.n + sum(left_first.excluded.values()) == 32 * 2
    # Every caption that names both is read as it was written, and nothing is dropped.
    assert sum(found.labels.values()) == 32 * 2 * 2
    assert all(found.labels[label] for label in ("one_named", "refused", "error"))
    assert not found.labels.keys() & {"none_named", "unparsed", "missing"}
    assert found.score("left_alone").value > 80  # "remote" is also read as an adjective
    first = max(scripted.logits, key=scripted.logits.__getitem__)
    last = min(scripted.logits, key=scripted.logits.__getitem__)
    prefers = {s.group: s.value for s in found.scores if s.name == "named_first"}
    assert prefers.get(f"entity={first}", 100) > prefers.get(f"entity={last}", 0)
    # Errors are asked again, and fail again.
    assert measure_captions(settings).to_json() == whole.to_json()


@pytest.mark.parametrize(
    ("text", "left", "right", "label"),
    [
        ("A cat and a dog.", "cat", "dog", "left_first"),
        ("Two animals: to the right of the dog sits a kitten.", "cat", "dog", "right_first"),
        ("A dog. There is no cat.", "cat", "dog", "right_only"),
        ("Some animals near a bicycle.", "cat", "bicycle", "left_first"),
        ("Two animals.", "cat", "dog", "none_named"),
        ("A woman in a hat holds an umbrella.", "umbrella", "person", "right_first"),
        ("A teddy bear on a chair.", "bear", "chair", "right_only"),
        ("# Scene\n\n* **Clock**: on a wall\n* **Dog**: below", "dog", "clock", "right_first"),
        ("Ein Hund.", "cat", "dog", "none_named"),
        ("  \n", "cat", "dog", "unparsed"),
    ],
)
def test_reads_which_thing_a_caption_names_first(
    text: str, left: str, right: str, label: str
) -> None:
    (mention, words) = (verdict for _, verdict in NamesJudge().judge(about(text, left, right)))
    assert mention.label == label
    if label == "unparsed":
        assert words.label == "unparsed"
    else:
        assert words.label == ("yes" if "right" in text else "no")


def about(text: str, left: str, right: str) -> list[Question]:
    """The suite's questions about a text on an image with these things."""
    suite = CaptionOrderSuite()
    sides = {"left": left, "right": right, "left_category": "", "right_category": ""}
    row = CaptionOrder(image="i", place=0, **sides, **UNPUBLISHED)
    case = next(suite.cases(row, 1))
    return [replace(q, text=text) for q in suite.questions(row, case, [], "original")]


def test_the_judge_says_what_it_cannot_read() -> None:
    judge = NamesJudge()
    assert judge.identity().keys() == {"kind", "model", "code", "ontology"}
    (unknown, _) = (verdict for _, verdict in judge.judge(about("A cat.", "cat", "gizmo")))
    assert unknown.label == "error" and "gizmo" in unknown.raw
    mention, words = about("A dog, a cat.", "cat", "dog")
    other = replace(words, facts={})  # a free question
    (verdict,) = (verdict for _, verdict in judge.judge([other]))
    assert verdict.label == "error" and "yes_no" in verdict.raw
    # Questions about one caption come in any number, each answered once.
    many = [replace(mention, case=str(n), text=f"Dog {n} and cat.") for n in range(300)]
    answered = list(judge.judge(many))
    assert [question for question, _ in answered] == many
    assert {verdict.label for _, verdict in answered} == {"right_first"}


def instances(**images: dict[str, list[tuple[int, int, int, int]]]) -> dict[str, Any]:
    """COCO's format: images of 100 x 100 with boxes by class; a class `X*` is a crowd of X."""
    names = sorted({name.rstrip("*") for boxes in images.values() for name in boxes})
    annotations = [
        {
            "image_id": number,
            "category_id": names.index(name.rstrip("*")),
            "bbox": box,
            "iscrowd": int(name.endswith("*")),
        }
        for number, boxes in enumerate(images.values(), 1)
        for name, many in boxes.items()
        for box in many
    ]
    return {
        "images": [
            {"id": number, "file_name": f"{name}.png", "width": 100, "height": 100}
            for number, name in enumerate(images, 1)
        ],
        "categories": [{"id": number, "name": name} for number, name in enumerate(names)],
        "annotations": annotations,
    }


LEFT, RIGHT, BELOW = (0, 40, 40, 40), (60, 40, 40, 40), (5, 85, 35, 15)


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_chooses_two_things_of_a_photograph(tmp_path: Path) -> None:
    boxes = write(
        tmp_path / "boxes.json",
        instances(
            good={"cat": [LEFT], "dog": [RIGHT]},
            # Several cats, a crowd of dogs and a tiny vase are not the two that are meant.
            more={"cat": [LEFT, BELOW], "tv": [RIGHT], "bench": [LEFT], "vase": [(0, 0, 5, 5)]},
            crowd={"cat": [LEFT], "dog": [RIGHT], "dog*": [BELOW]},
            above={"cat": [LEFT], "dog": [BELOW]},
            inside={"cat": [(0, 0, 100, 100)], "dog": [(60, 40, 20, 40)]},
            unknown={"person": [LEFT], "thingamajig": [RIGHT]},
            small={"cat": [LEFT], "vase": [(95, 40, 5, 5)]},
        ),
    )
    found = photographs(boxes, None)
    assert [(one.image, one.place, one.left, one.right) for one in found.rows] == [
        ("1", 0, "cat", "dog"),
        ("2", 1, "bench", "television"),
    ]
    assert (found.rows[0].left_category, found.rows[1].left_category) == ("animals", "furniture")
    assert found.skipped == {"few_classes": 3, "not_beside": 2, "no_file": 0}
    assert [one.image for one in photographs(boxes, None, limit=1).rows] == ["1"]
    with raises("nothing-to-do", "no_file", "2", error=UsageError):
        photographs(boxes, tmp_path)
    with raises("missing-option", "--captioner", "--people", error=UsageError):
        measure_captions(CaptioningSettings(tmp_path, boxes=boxes))
    with raises("missing-option", "people", "--boxes", error=UsageError):
        measure_captions(CaptioningSettings(tmp_path, people=boxes))


def test_reads_peoples_captions_in_every_format(tmp_path: Path) -> None:
    ids = {"1": "1", "a.png": "1", "2": "2", "b.png": "2"}
    entries = [{"image_id": n, "caption": f"caption {n}"} for n in (7, 2, 9)]
    named = [{"id": 7, "file_name": "a.png"}, {"id": 9, "file_name": "z.png"}]
    coco = write(tmp_path / "coco.json", {"images": named, "annotations": entries})
    found = read_people(coco, ids)
    assert [(one.image, one.text) for one in found.captions] == [
        ("1", "caption 7"),
        ("2", "caption 2"),
    ]
    assert found.of_other_images == 1
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"image": "b.png", "caption": "two"}\n{"image_id": 1, "caption": "one"}\n')
    assert [one.image for one in read_people(rows, ids).captions] == ["2", "1"]
    with raises("nothing-to-do", "its 2", error=UsageError):
        read_people(rows, {"x": "x"})
    rows.write_text('{"image": "b.png", "text": "two"}\n')
    with raises("missing-field", ":1:", "rows.jsonl", error=DataError):
        read_people(rows, ids)
    with raises("bad-format", "bad.json", "caption", error=DataError):
        read_people(write(tmp_path / "bad.json", {"annotations": [{"image_id": 1}]}), ids)


def halves(left: str, right: str) -> Image.Image:
    image = Image.new("RGB", (64, 48), COLORS[right])
    image.paste(COLORS[left], (0, 0, 32, 48))
    return image


def left_first(body: dict[str, Any]) -> str:
    """A server that sees colors, and names what is left first."""
    url = next(
        part["image_url"]["url"]
        for part in body["messages"][-1]["content"]
        if part["type"] == "image_url"
    )
    image = Image.open(BytesIO(base64.b64decode(url.partition(",")[2])))
    names = {color: name for name, color in COLORS.items()}
    return "A {} and a {}.".format(*(names[image.getpixel((x, 20))] for x in (5, 60)))  # type: ignore[index]


@pytest.mark.slow
def test_command_asks_once_and_compares_with_people(
    tmp_path: Path, server: Any, fault: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from counterprior.cli import captioning as commands
    from counterprior.cli.options import with_option_groups

    grouped = with_option_groups(commands.captioning)

    def captioning(**values: Any) -> None:
        grouped(**values)
        gc.collect()  # a command ends with its process, and that frees its ledgers

    server.answer = left_first
    shown = {"a": ("cat", "dog"), "b": ("dog", "bench"), "c": ("bench", "cat")}
    boxes = {name: dict(zip(two, ([LEFT], [RIGHT]), strict=True)) for name, two in shown.items()}
    for name, two in shown.items():
        halves(*two).save(tmp_path / f"{name}.png")
    (tmp_path / "c.png").write_bytes(b"broken")
    people = tmp_path / "people.jsonl"
    said = {"a": "A dog and a cat.", "b": "A dog on a bench.", "z": "A cat."}
    rows = [{"image": f"{name}.png", "caption": text} for name, text in said.items()]
    people.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given: dict[str, Any] = {
        "captioner": [server.spec("openai")],
        "boxes": write(tmp_path / "boxes.json", instances(**boxes)),
        "images": tmp_path,
        "people": people,
        "wording": ["tell", "shows"],
        "concurrency": 1,
        "json": True,
    }
    server.faults += [None, fault(finish="refusal"), fault(status=400)]
    captioning(out=tmp_path / "run", **given, limit=1)
    assert server.paid == 3 and len(server.asked) == 4
    capsys.readouterr()
    captioning(out=tmp_path / "run", **given)
    assert len(server.asked) == 4 + 4  # about the new image; the third can't be read
    model, control = json.loads(capsys.readouterr().out)["results"]
    assert model["labels"] == {"error": 1, "left_first": 6, "missing": 4, "refused": 1}
    scores = {s["name"]: s for s in model["scores"] if s["group"] == "all"}
    assert scores["left_first"]["value"] == 100 and scores["left_first"]["n"] == 2
    assert scores["left_first"]["excluded"] == {"error": 1, "missing": 2, "refused": 1}
    assert scores["left_first_found"]["n"] == 3 and scores["above_people"]["value"] == 50
    assert control["name"] == "people"
    assert control["labels"] == {"left_first": 1, "right_first": 1}
    captioning(out=tmp_path / "run", **{**given, "json": False})
    assert len(server.asked) == 8
    halves("bench", "dog").save(tmp_path / "a.png")
    captioning(out=tmp_path / "run", **{**given, "json": False})
    assert len(server.asked) == 8 + 4  # another image of the same name
    printed = capsys.readouterr().out
    assert "left_first_balanced" in printed and "3 images with two things" in printed
    assert "95 % is for other images of these things; left_first of other things: " in printed
    assert "can't be told apart" not in printed  # one captioner has nobody to be compared with
    lines = (tmp_path / "run" / "readings.jsonl").read_text().splitlines()
    assert len(lines) == 12 and json.loads(lines[0])["first"] == "dog"
    assert "<svg" in (tmp_path / "run" / "captioning.svg").read_text()
    given["captioner"] = [server.spec("openai"), server.spec("openai", "max_tokens=9")]
    captioning(out=tmp_path / "run", **{**given, "json": False})
    shown = " ".join(capsys.readouterr().out.split())
    assert "captioners that share a letter can't be told apart" in shown
    result = json.loads((tmp_path / "run" / "captioning.json").read_text())
    ranking, names = result["ranking"], [one["name"] for one in result["results"][:2]]
    assert len({*names}) == 2 and {one["name"] for one in ranking["captioners"]} == {*names}
    (pair,) = ranking["pairs"]
    assert pair["n"] and (pair["difference"], pair["adjusted"]) == (0, 1)
    with raises("duplicate-id", "openai:m-1", error=UsageError):
        captioning(out=tmp_path / "run", **{**given, "captioner": given["captioner"][:1] * 2})


class Dying:
    """Writes some captions and is killed."""

    def __init__(self, lives: int, status: Any = "ok") -> None:
        self.lives, self.status, self.asked = lives, status, list[str]()

    def identity(self) -> dict[str, str]:
        return {"kind": "dying"}

    def caption(self, requests: Any) -> Iterator[tuple[CaptionRequest, Caption]]:
        for request in requests:
            if len(self.asked) == self.lives:
                raise KeyboardInterrupt
            self.asked.append(request.id)
            yield request, Caption("A cat and a dog.", self.status)


@pytest.mark.parametrize(("status", "again"), [("ok", 2), ("refused", 2), ("error", 4)])
def test_killed_run_requests_no_caption_twice(tmp_path: Path, status: str, again: int) -> None:
    def run(captioner: Dying) -> CaptionerResult:
        settings = CaptioningSettings(tmp_path, (captioner,), scenes=2, wordings=("tell",))
        return measure_captions(settings).results[0]

    first, second, third = Dying(2, status), Dying(9), Dying(9)
    with pytest.raises(KeyboardInterrupt):
        run(first)
    run(second)
    assert len(first.asked) == 2 and len(second.asked) == again
    assert len({*first.asked, *second.asked}) == 4
    run(third)
    assert not third.asked


def test_captioner_that_always_fails_ends_the_run(tmp_path: Path) -> None:
    def failing(image: Image.Image, instruction: str) -> str:
        raise OSError("no such device")

    settings = CaptioningSettings(tmp_path, (as_captioner(failing),), scenes=2, wordings=("tell",))
    with raises("all-failed", "4 error", "OSError", error=RunFailed):
        measure_captions(settings)


def test_captioner_that_always_refuses_stands_beside_the_others(tmp_path: Path) -> None:
    def refusing(image: Image.Image, instruction: str) -> Caption:
        return Caption("I can't.", "refused")

    captioners = (as_captioner(refusing), as_captioner(lambda image, text: "A cat."))
    settings = CaptioningSettings(tmp_path, captioners, scenes=2, wordings=("tell",))
    result = measure_captions(settings)
    refuser, other = result.results
    assert refuser.labels == {"refused": 4} and sum(other.labels.values()) == 4
    assert refuser.score("left_first").excluded == {"refused": 2}
    assert not result.ranking.comparisons


def test_a_run_of_the_command_is_a_run_of_the_engine(tmp_path: Path) -> None:
    captioner = as_captioner(lambda image, text: "A cat and a dog.", identity="v1")
    settings = CaptioningSettings(tmp_path / "out", (captioner,), scenes=3, wordings=("sees",))
    (result,) = measure_captions(settings).results
    folder = tmp_path / "out" / result.folder
    (judged,) = score_run(folder, ScoreSettings())
    reread = json.loads((folder / "scores.json").read_text())
    assert [score.to_json() for score in judged.result.scores] == [
        score.to_json() for score in result.scores
    ]
    assert reread[0]["scores"][0]["name"] == "left_first"
    # The same by `eval` on the rows that the command wrote: all wordings, in a folder of its own.
    images = str(tmp_path / "out" / "images.jsonl")
    run = RunSettings(CaptionOrderSuite.name, images, tmp_path / "run")
    spec = f"python:{NamesJudge.__module__}:{NamesJudge.__name__}"
    done = evaluate_run(run, captioner, [spec])  # type: ignore[arg-type]
    assert len(done.run.cases()) == 3 * 10
    assert {image.is_text for image in done.run.images().values()} == {True}
    (judged,) = score_run(tmp_path / "run", ScoreSettings())
    of_wording = [s for s in judged.result.scores if s.group == "wording=sees"]
    same = [s for s in result.scores if s.group == "wording=sees"]
    assert [score.to_json() for score in of_wording] == [score.to_json() for score in same]


def test_the_paper_s_wording_is_used_where_it_is_named(tmp_path: Path) -> None:
    asked = Counter[str]()

    def captioner(image: Image.Image, instruction: str) -> str:
        asked[instruction] += 1
        return "A cat and a dog."

    for wordings in (("sentence",), USUAL_WORDINGS):
        settings = CaptioningSettings(
            tmp_path, (as_captioner(captioner, identity="v1"),), scenes=1, wordings=wordings
        )
        measure_captions(settings)
    assert asked.pop("Describe this image in one sentence.") == 2
    assert len(asked) == 5 and set(asked.values()) == {2}
    assert CaptioningSettings(tmp_path).wordings == USUAL_WORDINGS


def test_a_folder_of_an_older_version_is_named(tmp_path: Path) -> None:
    (tmp_path / "captions" / "openai-1").mkdir(parents=True)
    captioner = as_captioner(lambda image, text: "A cat.")
    with raises("another-version", tmp_path, "--captioner recorded:", error=UsageError):
        measure_captions(CaptioningSettings(tmp_path, (captioner,), scenes=2))


def test_a_recorded_caption_that_was_cut_off_is_named(tmp_path: Path) -> None:
    readings = tmp_path / "readings.jsonl"
    row = {"captioner": "a", "image": "i", "wording": "tell", "mirrored": False, "caption": "A cat"}
    lines = [json.dumps({**row, "image": image}) for image in "ij"]
    readings.write_text("\n".join(lines) + "\n")
    (recorded,) = read_recorded(readings)
    readings.write_text("\n".join(lines))  # as an editor may leave it
    (unended,) = read_recorded(readings)
    assert unended.identity() == recorded.identity()
    readings.write_text("\n".join(lines)[:-9])
    with raises("bad-json", f"{readings}:2", "cut off", error=DataError):
        read_recorded(readings)


@pytest.mark.slow
def test_recorded_captions_have_the_scores_of_their_captioners(tmp_path: Path) -> None:
    images = scenes(4, 0, tmp_path / "drawn")
    captioners = tuple(
        as_captioner(Scripted(images, left, sd=1, faults=0.3), identity=str(left))
        for left in (2.0, -1.0)
    )
    settings = CaptioningSettings(tmp_path / "old", captioners, scenes=4, wordings=("tell", "sees"))
    old = measure_captions(settings)
    readings = tmp_path / "old" / "readings.jsonl"
    again = replace(settings, out=tmp_path / "new", captioners=(f"recorded:{readings}",))
    new = measure_captions(again)
    assert len(new.results) == 2 and {"refused", "left_first"} <= new.results[0].labels.keys()
    for before, after in zip(old.results, new.results, strict=True):
        assert after.name == f"recorded:{before.name}" and after.labels == before.labels
        plain = [[score.to_json() for score in one.scores] for one in (before, after)]
        assert plain[0] == plain[1]
    texts = [json.loads(line) for line in readings.read_text().splitlines()]
    copied = (tmp_path / "new" / "readings.jsonl").read_text().splitlines()
    assert [{**json.loads(line), "captioner": ""} for line in copied] == [
        {**text, "captioner": ""} for text in texts
    ]
    # What the file has no caption of is missing.
    more = measure_captions(replace(again, out=tmp_path / "more", scenes=5))
    assert more.results[0].labels["missing"] == 4
    readings.write_text('{"captioner": "a", "image": "i", "caption": "c"}\n')
    with raises("missing-field", "readings.jsonl:1", "wording", error=DataError):
        measure_captions(replace(again, out=tmp_path / "bad"))


def test_scenes_are_reproducible_for_a_seed(tmp_path: Path) -> None:
    def listed(count: int, seed: int) -> list[tuple[str, str, str]]:
        rows = scenes(count, seed, tmp_path)
        return [(one.left, one.right, one.image_sha256) for one in rows]

    assert listed(20, 0) == listed(30, 0)[:20] != listed(20, 1)
