"""People's captions and boxes: which box a word means, the rates, and a judge beside them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_files import BENCHMARKS, opened
from PIL import Image
from refusals import raises
from wire import Fault

from counterprior.agents.chat import UnusableModelError
from counterprior.cli.corpus import control
from counterprior.cli.options import CallOptions
from counterprior.corpus_analysis.alignment.control.boxed_pairs import BoxedPair, How, match, side
from counterprior.corpus_analysis.alignment.control.subsets import SUBSETS, subset_rate
from counterprior.corpus_analysis.captions.extract import CaptionMention, CaptionPair, Extractor
from counterprior.corpus_analysis.captions.miner import Miner
from counterprior.corpus_analysis.captions.parser import ModelMissing, installed_model
from counterprior.errors import UsageError
from counterprior.eval.core import Question, Verdict
from counterprior.eval.geometry.boxes import Box
from counterprior.eval.geometry.instances import BoxedImage
from counterprior.eval.judges import open_judge

CLASSES = ("person", "cat", "dog", "dining table", "chair", "vase")
LEFT, RIGHT = Box(0.1, 0.3, 0.3, 0.7), Box(0.6, 0.3, 0.8, 0.7)
FAR = Box(0.9, 0.1, 1.0, 0.9)


def mention(name: str, head: str = "", quantifier: str = "a", category: str = "animals"):  # type: ignore[no-untyped-def]
    head = head or name.split(" ")[-1]
    return CaptionMention(name, category, head, f"{quantifier} {head}", quantifier, 0, len(head))


def said(first: CaptionMention, second: CaptionMention, relation: str = "and") -> CaptionPair:
    pattern = "coordination" if relation == "and" else "preposition"
    return CaptionPair(first, second, pattern, relation, "")  # type: ignore[arg-type]


def image(crowds: tuple[str, ...] = (), **boxes: list[Box]) -> BoxedImage:
    named = {name.replace("_", " "): found for name, found in boxes.items()}
    return BoxedImage("1", ("1.jpg",), named, set(crowds))


CAT, DOG = mention("cat"), mention("dog")


@pytest.mark.parametrize(
    ("pair", "shown", "hows"),
    [
        (said(CAT, DOG), image(cat=[LEFT], dog=[RIGHT]), ("single", "single")),
        (said(mention("kitten"), DOG), image(cat=[LEFT], dog=[RIGHT]), ("single", "single")),
        (said(CAT, mention("table")), image(cat=[LEFT], dining_table=[RIGHT]), ("single",) * 2),
        (said(mention("cat", "cats", "two"), DOG), image(cat=[LEFT, FAR], dog=[RIGHT]), "group"),
        (said(mention("cat", "cats", ""), DOG), image(cat=[LEFT, FAR], dog=[RIGHT]), "group"),
        (
            said(mention("cat", "cats", "three"), DOG),
            image(cat=[LEFT, FAR], dog=[RIGHT]),
            "largest",
        ),
        (said(CAT, DOG), image(cat=[LEFT, FAR], dog=[RIGHT]), "largest"),
        (said(CAT, DOG, "on"), image(cat=[LEFT, RIGHT], dog=[RIGHT]), "touching"),
        (said(CAT, DOG, "on"), image(cat=[LEFT, FAR], dog=[RIGHT]), "largest"),
        (said(CAT, DOG, "on"), image(cat=[RIGHT, RIGHT, LEFT], dog=[RIGHT]), "largest"),
        (said(CAT, DOG, "near"), image(cat=[LEFT, RIGHT], dog=[RIGHT]), "largest"),
        (said(CAT, mention("lamp")), image(cat=[LEFT], dog=[RIGHT]), "no_class"),
        (said(mention("animal"), mention("chair")), image(cat=[LEFT], dog=[LEFT]), "no_class"),
        (
            said(mention("animal"), mention("chair")),
            image(cat=[LEFT], chair=[FAR]),
            ("single",) * 2,
        ),
        (said(CAT, DOG), image(cat=[LEFT]), "no_box"),
        (said(CAT, DOG), image(("dog",), cat=[LEFT], dog=[FAR]), "crowd"),
        (said(mention("man"), mention("woman")), image(person=[LEFT, RIGHT]), "one_class"),
    ],
)
def test_matches_words_to_boxes(
    pair: CaptionPair, shown: BoxedImage, hows: str | tuple[How, How]
) -> None:
    found = match(pair, shown, CLASSES)
    if isinstance(found, str):
        assert found == hows
        return
    expected = hows if isinstance(hows, tuple) else (hows, "single")
    assert (found[0].how, found[1].how) == expected
    if found[0].how == "group":
        assert found[0].box == Box(0.1, 0.1, 1.0, 0.9) and found[0].largest == LEFT
    if found[0].how == "touching":
        assert found[0].box == RIGHT


def test_side_is_reversed_in_the_mirror_image() -> None:
    assert (side(LEFT, RIGHT), side(RIGHT, LEFT), side(LEFT, LEFT)) == (1, 0, 0.5)


def test_subsets_are_nested_and_count_guesses() -> None:
    def pair(number: int, caption: int, cats: list[Box], dog: Box) -> BoxedPair:
        both = match(said(CAT, DOG), image(cat=cats, dog=[dog]), CLASSES)
        assert not isinstance(both, str)
        return BoxedPair(str(number), caption, said(CAT, DOG), (), *both)

    over = Box(0.2, 0.2, 0.7, 0.9)  # shares columns with both
    pairs = [pair(n, 2 * n + k, [LEFT], RIGHT) for n in range(3) for k in range(2)]
    pairs += [pair(3, 6, [LEFT, FAR], RIGHT), pair(4, 7, [LEFT], over), pair(5, 8, [RIGHT], RIGHT)]
    found = {name: subset_rate(pairs, subset) for name, subset in SUBSETS.items()}
    counts = {name: (one.n, one.aligned, one.images, one.guessed) for name, one in found.items()}
    assert counts == {
        "one_caption": (5, 5, 5, 1),
        "all": (8, 8, 5, 1),
        "matched": (7, 7, 4, 0),
        "single": (7, 7, 4, 0),
        "disjoint": (6, 6, 3, 0),
        "beside": (7, 7, 4, 0),
    }
    assert found["all"].level == 1
    low, high = found["all"].by_image
    assert 0 < low < found["all"].wilson.low and high == 1  # eight pairs, but five images


# --- the command ---------------------------------------------------------------------------------


def photographs(folder: Path, share: float) -> tuple[Path, Path, Path]:
    """Boxes of half of 40 photographs, boxes of all, and captions: the first-mentioned is on the
    left in `share` of both halves."""
    rng = random.Random(1)
    names = [f"{number:03}.png" for number in range(40)]
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    images, annotations, captions = [], [], []
    (folder / "photos").mkdir()
    for number, name in enumerate(names):
        shade = (4 * number, 255 - 4 * number, number)
        Image.new("RGB", (64, 48), shade).save(folder / "photos" / name)
        images.append({"id": number, "file_name": name, "width": 100, "height": 100})
        first = rng.choice([1, 2])
        left = first if number % 20 < share * 20 else 3 - first
        for category in (1, 2):
            x = 10 if category == left else 60
            box = [x, 40, 25, 30 + rng.randrange(5)]
            annotations.append({"image_id": number, "category_id": category, "bbox": box})
        one, other = ("a cat", "a dog") if first == 1 else ("a dog", "a cat")
        captions.append({"image": name, "caption": f"{one} next to {other}"})
    captions += [{"image": "else.png", "caption": "a cat"}, {"image": "000.png", "caption": "cats"}]

    def write(name: str, most: int) -> Path:
        kept = [a for a in annotations if a["image_id"] < most]
        data = {"images": images[:most], "annotations": kept, "categories": categories}
        (folder / name).write_text(json.dumps(data))
        return folder / name

    people = folder / "people.jsonl"
    people.write_text("".join(json.dumps(row) + "\n" for row in captions))
    return write("part.json", 20), write("all.json", 40), people


@pytest.mark.slow
def test_bias_of_a_judge_is_measured_and_corrected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        installed_model()
    except ModelMissing as error:
        pytest.skip(str(error))
    part, everything, people = photographs(tmp_path, 0.5)
    right, asked = open_judge(f"boxes:{everything}"), []

    class Habit:
        """Says that the first-mentioned is on the left in half of the questions, unseen."""

        def identity(self) -> dict[str, str]:
            return {"kind": "habit"}

        def judge(self, questions: list[Question]) -> Iterator[tuple[Question, Verdict]]:
            for question, verdict in right.judge(questions):
                asked.append(question.id)
                if question.task == "order" and random.Random(question.id).random() < 0.5:
                    verdict = Verdict(question.prior, "A")
                yield question, verdict

    monkeypatch.setattr(
        "counterprior.corpus_analysis.alignment.control.box_control.open_judge",
        lambda spec, plan: Habit(),
    )
    out, photos = tmp_path / "out", tmp_path / "photos"
    with raises("missing-option", "--images", error=UsageError):
        control(part, people, out, CallOptions(), judge="habit")
    control(part, people, out, CallOptions(), judge="habit", images=photos, json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["funnel"]["captions"] == 42 and found["funnel"]["of_images"] == 41
    assert found["funnel"]["with_boxes"] == 21 and found["funnel"]["boxed"] == 20
    for subset in ("all", "single", "beside"):
        assert found["subsets"][subset]["n"] == 20 and found["subsets"][subset]["rate"] == 0.5
    judge = found["judge"]
    measures = "said true agrees bias four_probes left_if_left left_if_right unboxed corrected"
    assert list(judge) == ["judge", "gate", "failed", *measures.split()]
    assert all(list(judge[name]) == ["n", "value", "interval"] for name in measures.split())
    assert judge["gate"] == {"beside": {"accepted": 20}, "not_beside": {}}
    assert judge["true"]["value"] == 0.5 and judge["said"]["value"] > 0.65
    assert judge["left_if_left"]["value"] == 1 and judge["left_if_right"]["value"] > 0.3
    assert judge["bias"]["value"] > 0.15 and judge["bias"]["interval"][0] > -0.01
    assert judge["bias"]["value"] == pytest.approx(judge["said"]["value"] - 0.5)
    assert abs(judge["four_probes"]["value"]) < judge["bias"]["value"] / 2
    assert judge["unboxed"]["n"] == 20 and judge["unboxed"]["value"] > 0.65
    assert judge["corrected"]["interval"][0] < 0.5 < judge["corrected"]["interval"][1]
    assert judge["corrected"]["value"] < judge["unboxed"]["value"]
    page = (out / "index.html").read_text()
    assert "corrected by the boxes" in page and "the largest of several" in page
    assert "these items (by image)" in page and "other items (by entity pair)" in page
    count, before = len(asked), (out / "control.json").read_bytes()
    control(part, people, out, CallOptions(), judge="habit", images=photos, json=True)
    assert len(asked) == count and (out / "control.json").read_bytes() == before
    capsys.readouterr()
    control(part, people, out, CallOptions(), judge="habit", images=photos)
    printed = " ".join(capsys.readouterr().out.split())
    assert "95 %, these pairs" in printed and "95 %, other pairs" in printed
    assert "for other images of these pairs), its four probes" in printed


@pytest.mark.slow
def test_a_control_that_its_judge_ended_leaves_the_ledger_free(tmp_path: Path, server: Any) -> None:
    try:
        installed_model()
    except ModelMissing as error:
        pytest.skip(str(error))
    boxes, _, people = photographs(tmp_path, 0.5)
    spec = server.spec("openai", "attempts=1&timeout=5")

    def run() -> None:
        photos, calls = tmp_path / "photos", CallOptions(concurrency=1)
        control(boxes, people, tmp_path / "out", calls, judge=spec, images=photos, limit=2)

    server.answer = lambda body: "1"
    server.faults.extend([Fault(400, message="unknown model: m-1")] * 99)
    with pytest.raises(UnusableModelError) as caught:
        run()
    server.faults.clear()
    asked = len(server.asked)
    run()
    assert len(server.asked) > asked and caught.value  # kept, as a notebook keeps the last error


def test_a_rule_that_moves_the_share_is_seen_and_others_are_not() -> None:
    program = opened(BENCHMARKS / "order_share.py")
    rng = np.random.default_rng(1)
    sides = rng.random((600, 2)) < 0.5  # of two pairs of each image
    base = np.stack([sides.sum(axis=1), np.full(600, 2)], axis=1)
    lost = rng.random((600, 2)) < 0.1
    evenly = np.stack([(sides & ~lost).sum(axis=1), (~lost).sum(axis=1)], axis=1)
    only_right = np.stack([sides.sum(axis=1), (sides | ~lost).sum(axis=1)], axis=1)
    errors, spans = program.shifts(base, [evenly, only_right], 500)
    shifts = [100 * (program.share(one) - program.share(base)) for one in (evenly, only_right)]
    assert spans > 1.96  # for both at once
    assert abs(shifts[0]) < spans * errors[0]
    assert shifts[1] > spans * errors[1]


def test_each_rule_of_the_miner_can_be_left_out() -> None:
    program = opened(BENCHMARKS / "order_share.py")
    rules = {str(rule): rule for rule in program.rules()}
    assert len(rules) > 40
    try:
        miner = Miner()
    except ModelMissing as error:
        pytest.skip(str(error))
    text = "a cat next to a dog and a vase"

    def links() -> set[str]:
        pairs = Extractor(miner.ontology).pairs(miner.parser.parse([text])[0], text)
        return {pair.relation for pair in pairs}

    assert links() == {"next to", "and"}
    with rules["Prepositions.of_preposition"].left_out():
        assert links() == {"and"}
    with rules["prepositions._is_spatial"].left_out():
        assert links() == {"and"}
    assert links() == {"next to", "and"}
