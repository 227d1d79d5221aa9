"""Who names the left one first: known truth, readings, photographs, people, and the command."""

from __future__ import annotations

import base64
import json
import math
import random
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps
from refusals import raises

from counterprior.corpus_analysis.captioning.people import read_people
from counterprior.corpus_analysis.captioning.reading import Reading, ToRead, read
from counterprior.corpus_analysis.captioning.run import (
    CaptionerResult,
    CaptioningSettings,
    measure_captions,
)
from counterprior.corpus_analysis.captioning.scores import (
    ImageReading,
    MirrorReadings,
    against_people,
    captioner_scores,
    people_scores,
)
from counterprior.corpus_analysis.captioning.things import TwoThings, drawn, photographs
from counterprior.corpus_analysis.captions.ontology import Ontology
from counterprior.corpus_analysis.captions.parser import ModelMissing, installed_model
from counterprior.errors import DataError, RunFailed, UsageError
from counterprior.eval.captioners import as_captioner
from counterprior.eval.core import Caption, CaptionRequest, Score
from counterprior.images import pixels_digest

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


def entity(name: str) -> Any:
    return Ontology.read().entities[name]


def things(name: str, left: str, right: str) -> TwoThings:
    return TwoThings(name, entity(left), entity(right), name, lambda: Image.new("RGB", (48, 32)))


def score_of(scores: Sequence[Score], name: str, group: str = "all") -> Score:
    (found,) = [score for score in scores if (score.name, score.group) == (name, group)]
    return found


class Scripted:
    """Names the left one first with a set logit, and entities by their own logits; sometimes it
    names one thing only, declines, or fails."""

    def __init__(self, images: Sequence[TwoThings], left: float, sd: float, faults: float) -> None:
        self.left, self.faults = left, faults
        self.logits = {t.left.name: 0.0 for t in images} | {t.right.name: 0.0 for t in images}
        rng = random.Random(7)
        self.logits = {name: rng.gauss(0, sd) for name in sorted(self.logits)}
        self.shown: dict[str, tuple[str, str]] = {}
        for one in images:
            image, names = one.open(), (one.left.name, one.right.name)
            self.shown[pixels_digest(image)] = names
            self.shown[pixels_digest(ImageOps.mirror(image))] = names[::-1]

    def truth(self, images: Sequence[TwoThings]) -> float:
        """Expected `left_first`, percent."""
        shares = []
        for one in images:
            more = self.logits[one.left.name] - self.logits[one.right.name]
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


def test_recovers_known_habit_from_captions_of_rendered_scenes(tmp_path: Path) -> None:
    images = drawn(24, seed=3)
    scripted = Scripted(images, left=1.2, sd=1.5, faults=0.15)
    settings = CaptioningSettings(
        tmp_path,
        captioners=(as_captioner(scripted, identity="v1"),),
        scenes=24,
        seed=3,
        wordings=("describe", "tell"),
    )
    whole = measure_captions(settings)
    (found,) = whole.results
    truth = scripted.truth(images)
    left_first = found.score("left_first")
    assert 55 < left_first.interval.low < truth < left_first.interval.high < 85
    assert left_first.n + sum(left_first.excluded.values()) == 24 * 2
    # Every caption that names both is read as it was written, and nothing is dropped.
    assert sum(found.labels.values()) == 24 * 2 * 2
    assert all(found.labels[label] for label in ("one_named", "refused", "error"))
    assert not found.labels.keys() & {"none_named", "unparsed", "missing"}
    assert found.score("left_alone").value > 80  # "remote" is also read as an adjective
    first = max(scripted.logits, key=scripted.logits.__getitem__)
    last = min(scripted.logits, key=scripted.logits.__getitem__)
    prefers = {s.group: s.value for s in found.scores if s.name == "named_first"}
    assert prefers.get(f"entity={first}", 100) > prefers.get(f"entity={last}", 0)
    # Errors are asked again, and fail again.
    assert measure_captions(settings).to_json() == whole.to_json()


@pytest.mark.parametrize(("left", "sd"), [(0.0, 3.0), (2.0, 0.0), (-1.0, 1.5)])
def test_entity_preference_changes_no_score(left: float, sd: float) -> None:
    rng = random.Random(f"{left}/{sd}")
    names = ("cat", "dog", "bench", "clock", "vase", "horse", "sheep", "guitar")
    own = {name: rng.gauss(0, sd) for name in names}
    pairs, truth = [], []
    for number in range(120):
        # The one that is liked stands left in most images as found, as it might in photographs.
        a, b = sorted(rng.sample(names, 2), key=lambda n: -own[n])
        a, b = (b, a) if rng.random() < 0.2 else (a, b)
        image, more = things(str(number), a, b), own[a] - own[b]
        truth.append((logistic(left + more) + logistic(left - more)) / 2)
        for wording in ("describe", "tell"):
            found, mirrored = (rng.random() < logistic(left + sign * more) for sign in (1, -1))
            pairs.append(
                MirrorReadings(
                    image,
                    wording,
                    Reading("left_first", a) if found else Reading("right_first", b),
                    Reading("left_first", b) if mirrored else Reading("right_first", a),
                )
            )
    scores = captioner_scores(pairs)
    left_first = score_of(scores, "left_first")
    assert 100 * sum(truth) / len(truth) in left_first.interval
    assert left_first.interval.high - left_first.interval.low < 16
    assert left_first.wide.low < left_first.value < left_first.wide.high
    # Without a preference, the order differs between the two images by chance alone.
    same = score_of(scores, "same_entity_first")
    assert (same.null in same.interval) == (sd == 0)
    if sd == 3:
        assert score_of(scores, "left_first_found").value > 75


@pytest.mark.lane
@pytest.mark.parametrize(("left", "sd"), [(0.0, 0.0), (0.0, 3.0), (1.2, 1.5), (3.0, 1.0)])
def test_interval_covers_known_habits_at_its_level(left: float, sd: float) -> None:
    images, held, runs = drawn(100, seed=1), 0, 100
    for run in range(runs):
        rng = random.Random(f"{run}/{left}/{sd}")
        own = {name: rng.gauss(0, sd) for name in sorted({n for one in images for n in one.names})}
        pairs, truth = [], 0.0
        for one in images:
            more = own[one.left.name] - own[one.right.name]
            chances = [logistic(left + sign * more) for sign in (1, -1)]
            truth += sum(chances) / 2
            for wording in ("describe", "tell", "shows"):
                found, mirrored = (
                    Reading("left_first" if rng.random() < chance else "right_first")
                    for chance in chances
                )
                pairs.append(MirrorReadings(one, wording, found, mirrored))
        held += truth in score_of(captioner_scores(pairs), "left_first").interval
    assert held >= 90


LABELS = st.sampled_from(["left_first", "right_first", "one_named", "refused", "error", "missing"])


@settings(max_examples=6)
@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=8))
def test_excluded_readings_are_counted(labels: list[tuple[Any, Any]]) -> None:
    pairs = [
        MirrorReadings(things(str(n), "cat", "dog"), "tell", Reading(found), Reading(mirrored))
        for n, (found, mirrored) in enumerate(labels)
    ]
    for name in ("left_first", "left_first_found", "left_first_mirrored", "same_entity_first"):
        score = score_of(captioner_scores(pairs), name)
        assert score.n + sum(score.excluded.values()) == len(pairs)
        assert math.isnan(score.value) if not score.n else 0 <= score.value <= 100
    # Whoever always names the same entity first has no habit of position.
    same = [
        p for p in pairs if {p.original.label, p.mirrored.label} == {"left_first", "right_first"}
    ]
    if same:
        assert score_of(captioner_scores(same), "left_first").value == 50


@pytest.mark.parametrize(
    ("text", "left", "right", "label"),
    [
        ("A cat and a dog.", "cat", "dog", "left_first"),
        ("Two animals: to the right of the dog sits a kitten.", "cat", "dog", "right_first"),
        ("A dog. There is no cat.", "cat", "dog", "one_named"),
        ("Some animals near a bicycle.", "cat", "bicycle", "left_first"),
        ("Two animals.", "cat", "dog", "none_named"),
        ("A woman in a hat holds an umbrella.", "umbrella", "person", "right_first"),
        ("A teddy bear on a chair.", "bear", "chair", "one_named"),
        ("# Scene\n\n* **Clock**: on a wall\n* **Dog**: below", "dog", "clock", "right_first"),
        ("Ein Hund.", "cat", "dog", "none_named"),
        ("  \n", "cat", "dog", "unparsed"),
    ],
)
def test_reads_which_thing_a_caption_names_first(
    text: str, left: str, right: str, label: str
) -> None:
    (reading,) = read([ToRead(Caption(text), entity(left), entity(right))])
    assert reading.label == label
    assert reading.sides == ("right" in text)
    if label in ("left_first", "right_first"):
        assert reading.first == (left if label == "left_first" else right)


def test_failures_have_their_own_readings() -> None:
    cat, dog = entity("cat"), entity("dog")
    said = [None, Caption("a cat", "refused"), Caption("a cat", "error"), Caption("dog, cat")]
    labels = [one.label for one in read([ToRead(caption, cat, dog) for caption in said])]
    assert labels == ["missing", "refused", "error", "right_first"]


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
    assert [(t.id, t.left.name, t.right.name) for t in found.things] == [
        ("1", "cat", "dog"),
        ("2", "bench", "television"),
    ]
    assert found.skipped == {"few_classes": 3, "not_beside": 2, "no_file": 0}
    assert [t.id for t in photographs(boxes, None, limit=1).things] == ["1"]
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


def test_people_scores_are_the_control() -> None:
    def told(number: int, left: str, right: str, first: str) -> ImageReading:
        label = "left_first" if first == left else "right_first"
        return ImageReading(things(str(number), left, right), Reading(label, first))  # type: ignore[arg-type]

    # People name the dog first wherever it stands, and it stands left in 30 of 40 images.
    people = [told(n, *(("dog", "cat") if n < 30 else ("cat", "dog")), "dog") for n in range(40)]
    people.append(
        ImageReading(things("x", "dog", "cat"), Reading("one_named", "dog", True, alone=1.0))
    )
    scores = people_scores(people)
    assert score_of(scores, "left_first_found").value == 75
    assert score_of(scores, "left_first_found").excluded == {"one_named": 1}
    assert score_of(scores, "left_first_found", "words=neither").excluded == {}
    one_order = told(99, "horse", "sheep", "sheep")
    for heard in (people, [*people, one_order]):
        assert score_of(people_scores(heard), "left_first_balanced").value == 50
    assert score_of(scores, "left_alone").value == 100
    pairs = [
        MirrorReadings(one.things, "tell", Reading("left_first"), Reading("left_first"))
        for one in people[:20] + people[30:]
    ]
    above = score_of(against_people(pairs, people), "above_people")
    assert above.n == 30 and above.value == pytest.approx(100 - 100 * 20 / 30)
    assert above.interval.low < above.value < above.interval.high
    assert math.isnan(score_of(against_people(pairs, people[40:]), "above_people").value)


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


def test_command_asks_once_and_compares_with_people(
    tmp_path: Path, server: Any, fault: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from counterprior.cli import captioning as commands
    from counterprior.cli.options import with_option_groups

    captioning = with_option_groups(commands.captioning)

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
    with raises("all-failed", "all 4", "OSError", error=RunFailed):
        measure_captions(settings)


def test_scenes_are_reproducible_for_a_seed() -> None:
    def listed(count: int, seed: int) -> list[tuple[str, str, str]]:
        return [(t.left.name, t.right.name, t.digest) for t in drawn(count, seed)]

    assert listed(20, 0) == listed(30, 0)[:20] != listed(20, 1)
