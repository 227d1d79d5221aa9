"""From captions to the answer on images of known alignment, and its arithmetic."""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from corpora import Corpus, run_all
from PIL import Image, ImageOps
from refusals import raises

from counterprior.corpus_analysis.alignment.layout_judge import (
    ASPECTS,
    PROBES,
    Answers,
    PairToJudge,
    gate_questions,
    open_log,
    order_questions,
    verify,
)
from counterprior.corpus_analysis.alignment.page import render_page
from counterprior.corpus_analysis.alignment.rates import JudgedPair, align, rate
from counterprior.corpus_analysis.images.retrieve import ImageSource, Retrieved, url_key
from counterprior.corpus_analysis.mining.mine_shard import MineSettings
from counterprior.corpus_analysis.pipeline import CorpusSettings, choose, run
from counterprior.corpus_analysis.sources.shards import SourceSettings
from counterprior.eval.core import Question, Verdict
from counterprior.eval.geometry.boxes import Box
from counterprior.eval.judges import open_judge
from counterprior.eval.judges.boxes import BoxJudge
from counterprior.progress import silent

# --- end to end --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "share", [0.7, *(pytest.param(share, marks=pytest.mark.lane) for share in (0.5, 0.9))]
)
def test_recovers_true_alignment(
    images: tuple[str, dict[str, bytes]], tmp_path: Path, inline: None, share: float
) -> None:
    corpus = Corpus(*images, share, 80, draw=False)
    source, boxes = corpus.write(tmp_path)
    found = run_all(source, tmp_path / "out", f"boxes:{boxes}")
    assert found.alignment is not None and not found.warnings
    single = found.alignment.single_probe
    assert single.n > 70
    assert share in single.wilson and share in single.by_pair
    assert math.isnan(single.by_host.low)  # all images are on one host: nothing to resample
    truth = dict(zip(corpus.urls, corpus.aligned, strict=True))
    rows = pq.read_table(tmp_path / "out" / "dataset" / "pairs").to_pylist()
    assert {row["url"]: row["aligned"] for row in rows if row["aligned"] is not None}.items() <= (
        truth.items()
    )
    control = found.alignment.controls
    assert control["flips"] == control["gate_unchanged"] == 1
    assert control["side_bias"] == pytest.approx(0) and control["name_bias"] == pytest.approx(0)
    assert found.alignment.four_probes["rate"] == pytest.approx(single.rate)
    plain = json.loads((tmp_path / "out" / "alignment.json").read_text())
    assert plain["single_probe"]["aligned"] == single.aligned
    assert plain["single_probe"]["by_host"] == [None, None]


@pytest.mark.lane
@pytest.mark.parametrize("share", [0.5, 0.7, 0.9])
def test_recovers_true_alignment_in_rendered_scenes(
    images: tuple[str, dict[str, bytes]], tmp_path: Path, share: float
) -> None:
    corpus = Corpus(*images, share, 120, draw=True)
    source, _ = corpus.write(tmp_path)
    command = [
        sys.executable,
        "-m",
        "counterprior",
        "corpus",
        "mine",
        source,
        "--out",
        tmp_path / "out",
    ]
    command += "--stage layout --judge pixels --loopback-for-tests --workers 1".split()
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out" / "alignment.json").read_text())
    single = result["single_probe"]
    assert single["n"] > 80
    for interval in (single["wilson"], single["by_pair"]):
        assert interval[0] <= share <= interval[1], (done.stdout, interval)


@pytest.mark.slow
def test_controls_reveal_known_faults_of_a_judge(
    images: tuple[str, dict[str, bytes]], tmp_path: Path, inline: None
) -> None:
    corpus = Corpus(*images, 0.5, 120, draw=False)
    source, boxes = corpus.write(tmp_path)
    spec = f"boxes:{boxes}"
    right = open_judge(spec)

    class Biased:
        """Says A, the first-named, in four of ten order questions, and sometimes nothing."""

        def identity(self) -> dict[str, str]:
            return {"kind": "biased"}

        def judge(self, questions: list[Question]) -> Iterator[tuple[Question, Verdict]]:
            for question, verdict in right.judge(questions):
                draw = random.Random(question.id).random()
                if question.task == "order" and draw < 0.4:
                    verdict = Verdict(question.labels[0], "A")
                elif question.task == "order" and draw > 0.95:
                    verdict = Verdict("unparsed", "It is hard to say.")
                yield question, verdict

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "counterprior.corpus_analysis.pipeline.open_judge", lambda spec, plan: Biased()
        )
        found = run_all(source, tmp_path / "out", "biased").alignment
    assert found is not None
    assert found.single_probe.rate > 0.62  # the paper's single probe believes the bias
    low, high = found.four_probes["by_pair"]
    assert low <= 0.5 <= high  # the four probes don't
    assert found.controls["name_bias"] == pytest.approx(0.2, abs=0.06)
    assert found.funnel["stage_2"]["original"]["unparsed"] > 0
    asked = sum(found.funnel["stage_2"]["original"].values())
    assert asked == found.funnel["valid"] > found.single_probe.n


@pytest.mark.slow
def test_load_dataset_reads_the_result_and_a_finished_run_asks_and_fetches_nothing(
    images: tuple[str, dict[str, bytes]], tmp_path: Path, inline: None
) -> None:
    import datasets

    corpus = Corpus(*images, 0.7, 20, draw=False)
    source, boxes = corpus.write(tmp_path)
    run_all(source, tmp_path / "out", f"boxes:{boxes}")
    pairs = datasets.load_dataset(str(tmp_path / "out" / "dataset"), "pairs", split="test")
    verdicts = datasets.load_dataset(str(tmp_path / "out" / "dataset"), "verdicts", split="test")
    assert len(pairs) >= 18 and pairs[0]["first"]["name"] and pairs[0]["picture"] == "ok"
    assert set(verdicts["probe"]) == set(PROBES)
    assert len(verdicts) == 10 * sum(pairs["valid"]) + 6 * (len(pairs) - sum(pairs["valid"]))

    before = {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    images[1].clear()
    for name in ("alignment.json.1.partial", "dataset/pairs/test-0.parquet.1.partial"):
        (tmp_path / "out" / name).write_text("what kill -9 leaves")
    run_all(source, tmp_path / "out", f"boxes:{boxes}")
    after = {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert before == after
    assert not [p for p in after if p.suffix == ".partial"]


def test_failed_downloads_give_a_warning(
    images: tuple[str, dict[str, bytes]], tmp_path: Path, inline: None
) -> None:
    corpus = Corpus(*images, 0.7, 10, draw=False)
    source, boxes = corpus.write(tmp_path)
    images[1].clear()
    found = run_all(source, tmp_path / "out", f"boxes:{boxes}")
    assert len(found.warnings) == 1 and "100% of the downloads failed" in found.warnings[0]
    assert found.alignment is not None and found.alignment.single_probe.n == 0
    assert (tmp_path / "out" / "index.html").exists()


def test_stage_and_judge_are_checked_before_any_work(tmp_path: Path) -> None:
    mined = MineSettings(SourceSettings(("nothing.csv",)))
    with raises("missing-option", "--stage layout", "--judge"):
        run(CorpusSettings(mined, tmp_path, stage="layout"), silent)
    with raises("unknown-name", "more"):
        run(CorpusSettings(mined, tmp_path, stage="more"), silent)
    with raises("unknown-name", "oracle"):
        run(CorpusSettings(mined, tmp_path, stage="layout", judge="oracle"), silent)


# --- choosing ----------------------------------------------------------------------------------


def pair_row(number: int, first: str = "cat", second: str = "dog", **fields: Any) -> dict[str, Any]:
    def half(name: str) -> dict[str, Any]:
        category = "people" if name in ("man", "woman") else "animals"
        return {"name": name, "category": category, "phrase": f"a {name}"}

    return {
        "id": f"pair-{number}",
        "source": "c.parquet",
        "row": number,
        "image": None,
        "url": f"http://host{number % 3}/{number}.jpg",
        "text": f"a {first} and a {second}",
        "caption": f"a {first} and a {second}",
        "first": half(first),
        "second": half(second),
        "pattern": "coordination",
        "relation": "and",
        "spatial_words": [],
        "tokens": 5,
        **fields,
    }


def record(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "status": "success",
        "reason": "ok",
        "sha256": f"s{number}",
        "dhash": f"d{number}",
    } | fields


def test_chooses_one_caption_per_address_and_one_of_equal_images() -> None:
    same = {"url": "http://host/same.jpg", "row": 2}
    pairs = [
        pair_row(1),
        pair_row(2, **same),
        pair_row(3, **same),  # another pair of the same caption
        pair_row(4, "cow", "pig", **same | {"row": 4}),  # another caption of the same address
        pair_row(5),  # the same bytes as 1
        pair_row(6),  # the same image as 1, encoded anew
        pair_row(7),  # not there
        pair_row(8, url=None),
    ]
    records = {
        url_key(pairs[0]["url"]): record(1),
        url_key(same["url"]): record(2),
        url_key(pairs[4]["url"]): record(5, sha256="s1"),
        url_key(pairs[5]["url"]): record(6, dhash="d1"),
        url_key(pairs[6]["url"]): {"status": "failed_to_download", "reason": "dns"},
    }
    chosen, counts = choose(pairs, Retrieved(records, Path("x")))
    assert [c.pair["id"] for c in chosen] == ["pair-1", "pair-2", "pair-3"]
    assert counts == {
        "pairs_with_source": 7,
        "pairs_with_image": 6,
        "pairs_distinct": 3,
        "duplicate_url": 1,
        "duplicate_image": 2,
        "addresses": 5,
        "reasons": {"ok": 4, "dns": 1},
        "opt_outs": {},
    }


def test_an_address_counts_once_where_images_come_with_the_rows() -> None:
    same = "http://host/same.jpg"
    pairs = [
        pair_row(1, url=same, image="a.parquet#0", row=1),
        pair_row(2, url=same, image="a.parquet#0", row=1),  # another pair of the same caption
        pair_row(3, url=same, image="a.parquet#3", row=3),  # the same address, encoded anew
        pair_row(4, url="", image="b.tar#4", row=4),
        pair_row(5, url="", image="b.tar#5", row=5),  # no address: nothing is shared
    ]
    sources = [ImageSource.of(pair) for pair in pairs]
    records = {s.key: record(n) for n, s in enumerate(sources) if s}
    chosen, counts = choose(pairs, Retrieved(records, Path("x")))
    assert [c.pair["id"] for c in chosen] == ["pair-1", "pair-2", "pair-4", "pair-5"]
    assert (counts["duplicate_url"], counts["pairs_distinct"]) == (1, 4)
    # The first row of an address may have no image; then the next one stands for it.
    records[sources[0].key] = {"status": "failed_to_decode", "reason": "decode"}  # type: ignore[union-attr]
    chosen, counts = choose(pairs, Retrieved(records, Path("x")))
    assert [c.pair["id"] for c in chosen] == ["pair-3", "pair-4", "pair-5"]


# --- questions ---------------------------------------------------------------------------------


def test_four_probes_ask_the_same_question() -> None:
    image = Image.new("RGB", (10, 10), "blue")
    image.paste("red", (0, 0, 5, 10))
    asked = {q.id.rsplit("/", 1)[1]: q for q in order_questions(pair_row(1, "cat", "dog"), image)}
    assert tuple(asked) == PROBES
    # The cat is red and on the left: the truthful answers, A or B, and what they mean.
    truth = {"original": "A", "swap": "B", "mirror": "B", "mirror_swap": "A"}
    for probe, question in asked.items():
        left = question.images[0].getpixel((1, 5))
        assert left == ((255, 0, 0) if "mirror" not in probe else (0, 0, 255))
        assert question.answers[truth[probe]] == "first_left"
        assert set(question.answers) == {"A", "B"}
        named = re.findall(r"^([AB]): (\w+)$", question.prompt, re.MULTILINE)
        assert named == (
            [("A", "dog"), ("B", "cat")] if "swap" in probe else [("A", "cat"), ("B", "dog")]
        )
        assert question.prompt.rstrip().endswith("Answer ONLY with A or B.")
    assert len({q.id for q in asked.values()}) == 4


def test_gate_asks_three_questions_about_image_and_mirror_image() -> None:
    asked = list(gate_questions(pair_row(1), Image.new("RGB", (10, 10))))
    assert [q.facts["aspect"] for q in asked] == [*ASPECTS, *ASPECTS]
    assert {q.facts["mirrored"] for q in asked[:3]} == {"no"}
    assert {q.facts["mirrored"] for q in asked[3:]} == {"yes"}
    assert len({q.prompt for q in asked}) == 3


class Scripted:
    """Answers by question name, and counts."""

    def __init__(self, **labels: str) -> None:
        self.labels = labels
        self.asked: list[str] = []

    def identity(self) -> dict[str, str]:
        return {"kind": "scripted-here"}

    def judge(self, questions: list[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in reversed(list(questions)):
            self.asked.append(question.id)
            name = question.id.split("/")[1]
            default = "yes" if question.task == "gate" else "first_left"
            yield question, Verdict(self.labels.get(name, default), "said")


def candidate(tmp_path: Path, number: int = 1) -> PairToJudge:
    path = tmp_path / f"{number}.jpg"
    ImageOps.mirror(Image.new("RGB", (120, 120))).save(path)
    return PairToJudge(pair_row(number), path, f"{number:064x}")


@pytest.mark.parametrize("label", ["no", "unparsed", "refused", "missing"])
def test_stage_2_asks_only_about_valid_pairs(tmp_path: Path, label: str) -> None:
    judge = Scripted(separation=label)
    answers = verify([candidate(tmp_path)], judge, open_log(tmp_path, judge), silent)["pair-1"]
    assert not answers.valid and answers.order == {}
    assert answers.gate["separation", "original"] == label
    assert len(judge.asked) == 6


def test_records_verdicts_and_repeats_errors(tmp_path: Path) -> None:
    judge = Scripted(order="error")
    first = verify([candidate(tmp_path)], judge, open_log(tmp_path, judge), silent)["pair-1"]
    assert set(first.order.values()) == {"error"} and len(judge.asked) == 10
    again = Scripted()
    second = verify([candidate(tmp_path)], again, open_log(tmp_path, again), silent)["pair-1"]
    assert set(second.order.values()) == {"first_left"} and len(again.asked) == 4
    other = replace(candidate(tmp_path), sha256="f" * 64)
    anew = Scripted()
    verify([other], anew, open_log(tmp_path, anew), silent)
    assert len(anew.asked) == 10


def test_boxes_match_any_name_of_a_class(tmp_path: Path) -> None:
    # COCO's classes "tv" and "sports ball": boxes that are there must not count as absent.
    there = {"tv": [Box(0, 0.3, 0.3, 0.7)], "sports ball": [Box(0.6, 0.3, 1, 0.7)]}
    boxes = {"http://x/1.jpg": there}
    row = pair_row(1, first="television", second="ball", url="http://x/1.jpg")
    image = Image.new("RGB", (8, 8))
    asked = [*gate_questions(row, image), *order_questions(row, image)]
    labels = {BoxJudge(boxes, "").verdict(question).label for question in asked}
    assert labels == {"yes", "first_left"}


def test_an_image_without_any_box_shows_neither() -> None:
    boxes: dict[str, dict[str, list[Box]]] = {"http://x/1.jpg": {}}
    image = Image.new("RGB", (8, 8))
    asked = [*order_questions(pair_row(1, url="http://x/1.jpg"), image)]
    labels = {BoxJudge(boxes, "").verdict(question).label for question in asked}
    assert labels == {asked[0].labels[2]} != {"missing"}


def test_unreadable_image_gets_no_answers(tmp_path: Path) -> None:
    broken = replace(candidate(tmp_path), image=tmp_path / "gone.jpg")
    judge = Scripted()
    answers = verify([broken, candidate(tmp_path, 2)], judge, open_log(tmp_path, judge), silent)
    assert answers["pair-1"].gate == {} and not answers["pair-1"].valid
    assert answers["pair-2"].valid


# --- arithmetic --------------------------------------------------------------------------------

YES = {(aspect, probe): "yes" for aspect in ASPECTS for probe in ("original", "mirror")}


def judged(number: int, label: str, others: str | None = None, **fields: Any) -> JudgedPair:
    order = {probe: others or label for probe in PROBES} | {"original": label}
    return JudgedPair(pair_row(number, **fields), Answers(dict(YES), order))


def test_rate_counts_sides_only() -> None:
    labels = ["first_left"] * 3 + ["first_right"] + ["invalid", "unparsed", "refused", "error"]
    found = rate([judged(i, label) for i, label in enumerate(labels)])
    assert (found.aligned, found.n, found.rate) == (3, 4, 0.75)
    assert rate([]).n == 0 and math.isnan(rate([]).rate)


def test_intervals_follow_clusters() -> None:
    # One image described forty times is one image.
    alike = [judged(i, "first_left", url="http://one/1.jpg") for i in range(20)]
    alike += [judged(i, "first_right", url="http://two/2.jpg") for i in range(20)]
    found = rate(alike)
    assert found.wilson.high - found.wilson.low < 0.35
    assert found.by_image.low < 0.01 and found.by_image.high > 0.99
    assert found.by_host.low < 0.01 and found.by_host.high > 0.99
    assert math.isnan(found.by_pair.low)


def test_thing_and_its_kind_form_a_separate_group() -> None:
    pairs = [
        judged(1, "first_left"),
        judged(2, "first_right", first="dog", second="animal"),
        judged(3, "first_right", first="person", second="man"),
        judged(4, "first_left", first="blicket", second="dog"),  # in no ontology
    ]
    groups = align({"kind": "x"}, {"captions": {}, "images": {}}, pairs).groups["kinds"]
    assert {name: (r.aligned, r.n) for name, r in groups.items()} == {
        "neither": (2, 2),
        "one is a kind of the other": (0, 2),
    }


def test_groups_controls_and_both_orders() -> None:
    pairs = [
        judged(1, "first_left", "first_left"),
        judged(2, "first_right", "first_left"),  # says A first, then thinks
        judged(3, "first_right", None, first="dog", second="cat", spatial_words=["left"]),
        judged(
            4,
            "first_left",
            None,
            first="man",
            second="dog",
            tokens=30,
            relation="next to",
            pattern="preposition",
            spatial_words=["behind"],
        ),
    ]
    found = align({"kind": "x"}, {"captions": {}, "images": {}}, pairs)
    assert {name: r.n for name, r in found.groups["layout words"].items()} == {
        "none": 2,
        "left or right": 1,
        "other layout words": 1,
    }
    assert found.groups["all"]["no left or right in the caption"].n == 3
    assert found.groups["people"]["person first"].rate == 1
    assert found.groups["caption length"]["more than 24 tokens"].n == 1
    assert found.groups["relation"]["next to"].aligned == 1
    assert found.consistent.n == 3
    assert found.controls["flips"] == 0.75
    assert found.both_orders["entity_pairs"] == 1
    # cat first: half aligned; dog first: reversed. Each way weighs the same.
    assert found.both_orders["rate"] == 0.25
    assert found.funnel["stage_1"]["existence"] == {"yes": 4}
    assert found.funnel["aligned"] == 2


def test_always_answering_first_is_bias_not_alignment() -> None:
    """A judge that says that the first-mentioned is on the left, mirrored or not."""
    order = {
        "original": "first_left",
        "swap": "first_left",
        "mirror": "first_right",
        "mirror_swap": "first_right",
    }
    pairs = [JudgedPair(pair_row(i), Answers(dict(YES), order)) for i in range(10)]
    found = align({}, {}, pairs)
    assert found.single_probe.rate == 1 and found.four_probes["rate"] == 0.5
    assert found.controls["side_bias"] == 0.5 and found.controls["flips"] == 0
    assert found.controls["name_bias"] == 0 and found.consistent.n == 0


def test_the_page_escapes_captions_and_shows_every_stage() -> None:
    evil = judged(1, "first_left", caption="<script>alert(1)</script> a cat & a dog")
    captions = {
        "rows": 9,
        "passed": 8,
        "parsed": 8,
        "captions": 7,
        "pairs": 6,
        "dropped": {"spam": 1},
        "damaged": {"00007.tar": "not a tar"},
    }
    images = {
        "pairs_with_source": 5,
        "pairs_with_image": 4,
        "pairs_distinct": 3,
        "duplicate_url": 77,
        "duplicate_image": 0,
        "reasons": {"http_404": 2, "opted_out": 3},
        "opt_outs": {"X-Robots-Tag: noai": 3},
    }
    found = align({"kind": "x<y"}, {"captions": captions, "images": images}, [evil])
    page = render_page(found, "a <b> run")
    assert "<td>opted out by</td><td>X-Robots-Tag: noai</td>" in page
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "a &lt;b&gt; run" in page and "x&lt;y" in page
    assert "for other items (other pairs of things)" in page
    assert "for these items (other images that name the same pairs)" in page
    assert (
        "100.0%" in page
        and "http_404" in page
        and "spam" in page
        and "00007.tar" in page
        and ">77<" in page
    )
    assert "http://" not in re.sub(r'xmlns="[^"]+"', "", page)
    empty = render_page(align({}, {"captions": captions, "images": images}, []), "nothing")
    assert "No pair." in empty and "nan" not in empty.lower().replace("tabular-nums", "")


def test_chat_judge_answers_with_letters(
    images: tuple[str, dict[str, bytes]], tmp_path: Path, inline: None
) -> None:
    """A model that always says A: through ledger and parser, and seen through."""
    corpus = Corpus(*images, 0.7, 6, draw=False)
    source, _ = corpus.write(tmp_path)
    script = tmp_path / "script.json"
    rules = [
        {"role": "judge", "contains": ["Is that so?", "apart"], "answer": "<think>hm</think>1"},
        {"role": "judge", "contains": ["Is that so?"], "answer": "1"},
        {"role": "judge", "contains": ["Answer ONLY with A or B."], "answer": "A"},
    ]
    script.write_text(json.dumps(rules))
    found = run_all(source, tmp_path / "out", f"scripted:{script}").alignment
    assert found is not None and found.single_probe.n == found.funnel["valid"] == 6
    assert found.single_probe.rate == 1
    assert found.four_probes["rate"] == 0.5
    assert found.controls["name_bias"] == 0.5 and found.controls["flips"] == 0
    assert list((tmp_path / "out" / "ledgers").glob("*.jsonl"))  # the ledger
