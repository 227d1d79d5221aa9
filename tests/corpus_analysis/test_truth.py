"""Precision and recall of mined pairs against captions that were read."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
from collections import Counter
from pathlib import Path

import pytest
from refusals import raises

from counterprior.corpus_analysis.captions.parser import ModelMissing, installed_model
from counterprior.corpus_analysis.mining.accuracy import (
    WHOLE,
    GoldCaption,
    GoldPair,
    PairShare,
    check_pairs,
    digest_of,
    read_captions,
    read_gold,
)
from counterprior.corpus_analysis.sources.columns import SourceError
from counterprior.parsing import RowError

CAPTIONS = (
    "a cat and a dog",  # found, as stated
    "a teddy bear next to a lamp",  # found, but read as a bear of its own kind
    "a horse near a barn",  # stated nowhere: wrong
    "a vase with flowers",  # open
    "a spoon, I think, was left to a fork",  # stated, not found
)


def mention(caption: str, name: str) -> dict[str, object]:
    return {"name": name, "start": caption.index(name)}


def gold_rows() -> list[dict[str, object]]:
    cat, bear, horse, vase, spoon = CAPTIONS

    def row(caption: str, source: str, weight: float, *read: tuple[str, str, str, str]):  # type: ignore[no-untyped-def]
        lists: dict[str, list[object]] = {"pairs": [], "also": []}
        for which, first, relation, second in read:
            names = {"first": mention(caption, first), "second": mention(caption, second)}
            lists[which].append({**names, "relation": relation})
        draw = 2 if caption == horse else 1
        head = {"digest": digest_of(caption), "source": source, "draw": draw, "stratum": "pair"}
        return {**head, "weight": weight, **lists}

    return [
        row(cat, "A", 1, ("pairs", "cat", "and", "dog")),
        row(bear, "A", 1, ("pairs", "bear", "next to", "lamp")),
        row(horse, "B", 3),
        row(vase, "B", 1, ("also", "vase", "with", "flowers")),
        row(spoon, "B", 5, ("pairs", "spoon", "left to", "fork")),
    ]


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    try:
        installed_model()
    except ModelMissing as error:
        pytest.skip(str(error))
    # The digests of such captions fall on both sides, so here all of them are one half.
    monkeypatch.setattr(GoldCaption, "half", property(lambda gold: "held-out"))
    gold = write(tmp_path / "gold.jsonl", gold_rows())
    captions = write(tmp_path / "captions.jsonl", [{"caption": c} for c in (*CAPTIONS, "a dog")])
    return gold, captions


@pytest.mark.slow
def test_the_command_counts_right_wrong_missed_and_open(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from counterprior.cli.corpus import accuracy

    gold, captions = files
    accuracy([captions], gold=gold, json=True)
    found = json.loads(capsys.readouterr().out)
    sampled = {row["group"]: row for row in found["sampled"]}
    everything = sampled["all"]
    # The bear is found under a longer name with the same head: "bear" is in "teddy bear".
    assert (everything["precision"]["hits"], everything["precision"]["n"]) == (2, 3)
    assert (everything["recall"]["hits"], everything["recall"]["n"]) == (2, 3)
    assert everything["open"] == 1 and everything["captions"] == 5
    assert sampled["A"]["precision"]["value"] == 1 and sampled["B"]["recall"]["value"] == 0
    assert sampled["coordination"]["recall"]["n"] == 1
    assert sampled["preposition"]["recall"]["n"] == 2
    weighted = {row["group"]: row for row in found["weighted"]}["all"]
    assert weighted["precision"]["value"] == pytest.approx(2 / (2 + 3))
    assert weighted["recall"]["value"] == pytest.approx(2 / (2 + 5))
    low, high = weighted["recall"]["interval"]
    assert 0 <= low < 2 / 7 < high <= 1
    assert found["missing"] == 0
    assert found["wrong"] == found["missed"] == []  # never shown of the held-out half
    accuracy([captions], gold=gold, draw=2, json=True)
    (second, *_) = json.loads(capsys.readouterr().out)["sampled"]
    assert second["captions"] == second["precision"]["n"] == 1 and second["recall"]["n"] == 0


def test_missing_captions_are_counted_and_no_captions_are_an_error(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    gold, _ = files
    other = write(tmp_path / "other.jsonl", [{"caption": "a dog"}])
    with raises("different-rows", "the 5", error=SourceError):
        check_pairs([other], "held-out", gold)
    coco = tmp_path / "captions_val2017.json"
    coco.write_text(json.dumps({"images": [], "annotations": [{"id": 1, "caption": "a dog"}]}))
    assert read_captions(coco) == ["a dog"]
    with raises("missing-column", "caption", error=SourceError):
        check_pairs([write(tmp_path / "text.jsonl", [{"text": "a dog"}])], "held-out", gold)
    with raises("unknown-name", "bad.jsonl", "1", error=RowError):
        read_gold(write(tmp_path / "bad.jsonl", [{**gold_rows()[0], "stratum": "some"}]))


def test_shorter_name_is_a_different_kind() -> None:
    rows = gold_rows()
    bear = GoldPair.model_validate(rows[1]["pairs"][0])  # type: ignore[index]
    toy = bear.first.model_copy(update={"name": "teddy bear", "start": 2})

    class Mention:
        start, end, category, phrase, quantifier = 8, 12, "animals", "bear", ""

    assert bear.first.fits(Mention())  # type: ignore[arg-type]
    assert not toy.fits(Mention())  # type: ignore[arg-type]
    elsewhere = bear.first.model_copy(update={"category": "devices_leisure"})
    assert not elsewhere.fits(Mention())  # type: ignore[arg-type]

    class Slice(Mention):
        start, end, phrase, quantifier = 11, 15, "A slice of cake", "A slice of"

    piece = bear.first.model_copy(update={"name": "slice", "start": 2})
    assert piece.fits(Slice())  # type: ignore[arg-type]
    assert not piece.model_copy(update={"start": 20}).fits(Slice())  # type: ignore[arg-type]


def test_shipped_gold_captions_are_consistent() -> None:
    gold = read_gold()
    assert len({g.digest for g in gold}) == len(gold)
    first, second = (Counter(g.source for g in gold if g.draw == draw) for draw in (1, 2))
    assert set(first.values()) == {150} and len(first) == len(second) == 4
    assert all(100 < count <= 110 for count in second.values())
    halves = Counter((g.draw, g.half) for g in gold if g.draw not in WHOLE)
    assert len(halves) == 4 and min(halves.values()) > 200
    assert all(g.half == WHOLE[g.draw] for g in gold if g.draw in WHOLE)
    assert all(g.weight >= 1 for g in gold)
    assert all(p.first.start < p.second.start for g in gold for p in (*g.pairs, *g.also))
    assert sum(len(g.pairs) for g in gold) > 440


def test_whole_draw_can_belong_to_one_half() -> None:
    rows = [GoldCaption.model_validate({**gold_rows()[0], "digest": d * 16}) for d in "0f"]
    assert [row.half for row in rows] == ["tuned", "held-out"]
    for draw, half in ((3, "tuned"), (4, "tuned"), (5, "tuned")):
        rows = [row.model_copy(update={"draw": draw}) for row in rows]
        assert [row.half for row in rows] == [half, half]


def settle(path: Path, what: str, drawn: list[str], readings: tuple[str, str], settled: str) -> str:
    """What `tools/settle_gold.py` prints."""
    files = [path / name for name in ("drawn.jsonl", "a.txt", "b.txt", "settled.json")]
    head = {"source": "A", "draw": 3, "stratum": "pair", "weight": 2.0}
    rows = ({**head, "digest": digest_of(c), "caption": c} for c in drawn)
    files[0].write_text("".join(json.dumps(row) + "\n" for row in rows))
    for file, text in zip(files[1:], (*readings, settled), strict=True):
        file.write_text(text)
    return run_tool("settle_gold", what, *map(str, files[:3]), "--settled", str(files[3]))


def run_tool(name: str, *arguments: str) -> str:
    """What a tool prints."""
    tool = Path(__file__).parents[2] / "tools" / f"{name}.py"
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(sys, "argv", [str(tool), *arguments])
        runpy.run_path(str(tool), run_name="__main__")
    return out.getvalue()


@pytest.mark.slow
def test_a_draw_weighs_each_caption_by_its_stratum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = "small large old young wet clean quiet tired".split()
    paired = [f"a {size} cat and a dog on a sofa" for size in sizes]
    alone = [f"the {size} history of a country" for size in sizes]
    file, out = tmp_path / "captions.jsonl", tmp_path / "drawn"
    file.write_text("".join(json.dumps({"caption": c}) + "\n" for c in (*paired, *alone)))
    draw = [f"A={file}", "--number", "99", "--each", "10", "--of", "160", "--out", str(out)]
    run_tool("draw_gold", *draw)
    rows = [json.loads(line) for line in (out / "drawn.jsonl").read_text().splitlines()]
    by_stratum = Counter((row["stratum"], row["weight"]) for row in rows)
    assert by_stratum == {("pair", 20.0): 4, ("nouns", 16.0): 5}  # each 8 of 16, so 80 of 160
    blind = "".join((out / f"{half}.txt").read_text() for half in ("tuned", "held-out"))
    assert {line.split("\t")[1] for line in blind.splitlines()} == {r["caption"] for r in rows}

    with pytest.raises(SystemExit, match="2"):  # of which corpus?
        run_tool("draw_gold", f"B={file}", *draw)
    known = [GoldCaption.model_validate({**gold_rows()[0], "digest": digest_of(c)}) for c in paired]
    monkeypatch.setattr("counterprior.corpus_analysis.mining.accuracy.read_gold", lambda: known)
    with pytest.raises(SystemExit, match="A: all captions with a pair were read"):
        run_tool("draw_gold", *draw)


def test_two_readings_become_rows(tmp_path: Path) -> None:
    drawn = [
        "A cat and a dog, a wire fence near a dog and a teddy bear",
        "a horse with the sun behind it, a wooden pig and a cardboard box",
    ]
    first = (
        "0: wire fence [near] dog; dog [and] teddy bear; cat [and] dog\n"
        "1: wooden pig [and] cardboard box ?? sun [behind] horse"
    )
    second = (
        "0: fence [near] dog; dog [and] teddy bear ?? cat [and] dog\n"
        "1: cardboard box [beside] wooden pig"  # the same pair, the other way round
    )
    readings = (first, second)
    differences = settle(tmp_path, "differences", drawn, readings, "{}")
    assert differences.split("\n") == [f"0\t{drawn[0]}", "\tcat [and] dog", ""]
    with pytest.raises(SystemExit, match="not settled"):
        settle(tmp_path, "rows", drawn, readings, "{}")
    said = {"0": {"pair": ["cat", "and", "dog"], "settled": "open"}}
    lines = settle(tmp_path, "rows", drawn, readings, json.dumps(said)).splitlines()
    found = {
        g.digest: g for g in read_gold(write(tmp_path / "gold.jsonl", list(map(json.loads, lines))))
    }
    one, other = (found[digest_of(caption)] for caption in drawn)

    def at(pair: GoldPair) -> tuple[object, ...]:
        return pair.first.name, pair.first.start, pair.second.name, pair.second.start

    assert list(map(at, one.pairs)) == [("fence", 24, "dog", 37), ("dog", 37, "teddy bear", 47)]
    assert list(map(at, one.also)) == [("cat", 2, "dog", 12)]
    # What is wooden is no pig; what is of cardboard is still a box.
    assert list(map(at, other.pairs)) == [("wooden pig", 34, "box", 61)]
    assert list(map(at, other.also)) == [("horse", 2, "sun", 17)]
    with pytest.raises(SystemExit, match="is not in"):
        settle(tmp_path, "rows", drawn, ("0: cow [and] dog\n1:", "0: cow [and] dog\n1:"), "{}")


@pytest.mark.lane
def test_the_rates_on_the_half_that_rules_were_tuned_on(shared_data: Path) -> None:
    names = ("captions/cc3m_val.parquet", "captions/laion400m_10k.parquet")
    files = [shared_data / name for name in names]
    files.append(shared_data / "tifa" / "tifa_v1.0" / "tifa_v1.0_text_inputs.json")
    found = check_pairs(files, "tuned")
    tuned = [g for g in read_gold() if g.half == "tuned" and g.source == "COCO"]
    assert found.missing == sum(g.draw > 10 for g in tuned) > 0  # in COCO's own file of captions
    everything = found.sampled[0]
    assert everything.precision.value > 0.96 and everything.recall.value > 0.9
    assert isinstance(everything.recall, PairShare) and everything.recall.n == 1413
    assert found.missed and found.wrong
