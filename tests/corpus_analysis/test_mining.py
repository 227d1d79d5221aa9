"""Sources, the quality gate, and runs of `corpus mine` that are killed and go on."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loopback_hub import LoopbackHub
from refusals import assert_refused, raises

from counterprior.corpus_analysis.captions.gate import REASONS, QualityGate
from counterprior.corpus_analysis.captions.miner import Miner
from counterprior.corpus_analysis.captions.parser import ModelMissing, installed_model
from counterprior.corpus_analysis.mining.mine_shard import (
    Job,
    MineSettings,
    MineShards,
    ShardEntry,
    ShardMiner,
    write_parquet,
)
from counterprior.corpus_analysis.mining.mine_source import (
    MANIFEST,
    PAIRS,
    Funnel,
    MineError,
    mine_pairs,
)
from counterprior.corpus_analysis.pipeline import LOCK, CorpusSettings, run
from counterprior.corpus_analysis.sources.shards import (
    SourceError,
    SourceSettings,
    list_shards,
    read_shard,
)
from counterprior.errors import InUseError, UsageError
from counterprior.eval.store.shards import RunShard
from counterprior.eval.workers.farm import Scale, as_engine
from counterprior.progress import silent
from counterprior.release import sha256_file
from counterprior.storage import Lock

GOLDEN = Path(__file__).parents[1] / "golden" / "captions.jsonl"


def golden_captions(count: int) -> list[str]:
    return [json.loads(line)["caption"] for line in GOLDEN.read_text().splitlines()][:count]


# --- the quality gate --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("caption", "reason"),
    [
        ("a cat and a dog", None),
        ("two dogs in the snow with an escorted king", None),
        (None, "empty"),
        (" \n", "empty"),
        ("a <b>cat</b> and a dog", "html"),
        ("a cat < a dog", None),
        ('keywords="cat, dog" and more', "meta"),
        ("IMG_2044", "boilerplate"),
        ("cat-and-dog.JPG", "boilerplate"),
        ("a cat - click to enlarge", "boilerplate"),
        ("cat and dog free shipping", "spam"),
        ("see www.example.org for a cat", "spam"),
        ("cat|" * 13 + " and a dog", "keyword_list"),
        ("кошка и собака в парке", "script"),
        ("the cat Мурзик and a dog", "script"),
        ("the cat 山 and a dog", None),
        ("der Hund und die Katze mit dem Ball", "language"),
        ("el perro y los gatos con una pelota", "language"),
        ("the dog of Los Angeles and a cat", None),
        ("cat dog", "too_short"),
        ("cat " * 61, "too_long"),
    ],
)
def test_gate(caption: str | None, reason: str | None) -> None:
    assert QualityGate().reasons(pa.array([caption], pa.string())).to_pylist() == [reason]


def test_gate_counts_each_caption_once_and_its_thresholds_are_settings() -> None:
    captions = pa.array(["<b>free shipping</b>", "cat dog", "a cat and a dog"])
    assert QualityGate().reasons(captions).to_pylist() == ["html", "too_short", None]
    loose = QualityGate(min_words=2, max_words=4)
    assert loose.reasons(captions).to_pylist() == ["html", None, "too_long"]
    assert set(REASONS) >= {"html", "too_short"}
    assert loose.reasons(pa.array([], pa.string())).to_pylist() == []


# --- sources -----------------------------------------------------------------------------------

ROWS = [{"TEXT": f"caption {i}, a cat", "URL": f"http://x/{i}.jpg", "WIDTH": i} for i in range(30)]


def write_source(path: Path) -> Path:
    """The rows in the format that the name says."""
    table = pa.Table.from_pylist(ROWS)
    opener = gzip.open if path.name.endswith(".gz") else open
    if path.suffix == ".parquet":
        pq.write_table(table.append_column("junk", pa.array([b"x" * 999] * 30)), path)
    elif ".jsonl" in path.name:
        with opener(path, "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in ROWS)
    else:
        tab = ".tsv" in path.name
        with opener(path, "wt") as file:
            file.write("TEXT\tURL\tWIDTH\n" if tab else "TEXT,URL,WIDTH\n")
            for row in ROWS:
                text = row["TEXT"] if tab else f'"{row["TEXT"]}"'
                file.write(("\t" if tab else ",").join([text, row["URL"], str(row["WIDTH"])]))
                file.write("\n")
    return path


@pytest.mark.parametrize(
    "name",
    ["a.parquet", "a.csv", "a.tsv", "a.jsonl", "a.csv.gz", "a.tsv.gz", "a.jsonl.gz"],
)
@pytest.mark.parametrize("preset", ["laion", ""])
def test_every_format_gives_the_same_rows(tmp_path: Path, name: str, preset: str) -> None:
    settings = SourceSettings((str(write_source(tmp_path / name)),), preset)
    (shard,) = list_shards(settings)
    table = read_shard(shard, settings)
    expected = {"url", "caption", "width", "row"}
    assert set(table.column_names) == expected
    assert table["caption"].to_pylist() == [row["TEXT"] for row in ROWS]
    assert table["row"].to_pylist() == table["width"].to_pylist() == list(range(30))


def test_cc3m_has_no_header_and_quotes_are_text(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_text('a "quoted" cat\thttp://x/1\nan apple, a pear\thttp://x/2\n')
    settings = SourceSettings((str(path),), "cc3m")
    table = read_shard(list_shards(settings)[0], settings)
    assert table["caption"].to_pylist() == ['a "quoted" cat', "an apple, a pear"]
    assert table["url"].to_pylist() == ["http://x/1", "http://x/2"]


def test_only_the_columns_that_are_used_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SourceSettings((str(write_source(tmp_path / "a.parquet")),))
    asked = []
    read = pq.ParquetFile.read_row_groups
    monkeypatch.setattr(
        pq.ParquetFile,
        "read_row_groups",
        lambda self, groups, columns, **how: (
            asked.append(columns) or read(self, groups, columns, **how)
        ),
    )
    read_shard(list_shards(settings)[0], settings)
    assert asked == [["TEXT", "URL", "WIDTH"]]


def test_a_large_file_is_cut_at_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from counterprior.corpus_analysis.sources import shards as sources

    monkeypatch.setattr(sources, "SHARD_ROWS", 8)
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "a.parquet", row_group_size=5)
    settings = SourceSettings((str(tmp_path),))
    shards = list_shards(settings)
    assert [s.groups for s in shards] == [(0, 2), (2, 4), (4, 6)]
    tables = [read_shard(s, settings) for s in shards]
    assert [row for t in tables for row in t["row"].to_pylist()] == list(range(30))
    assert len({s.name for s in shards}) == 3
    limited = SourceSettings((str(tmp_path),), limit=13)
    assert [len(read_shard(s, limited)) for s in list_shards(limited)] == [10, 3]


def test_limit_counts_text_files_too(tmp_path: Path) -> None:
    for name in ("a.csv", "b.jsonl"):
        write_source(tmp_path / name)
    settings = SourceSettings((str(tmp_path),), limit=42)
    assert [len(read_shard(s, settings)) for s in list_shards(settings)] == [30, 12]


def test_sample_is_the_same_wherever_the_file_lies(tmp_path: Path) -> None:
    found = []
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        write_source(tmp_path / folder / "a.parquet")
        settings = SourceSettings((str(tmp_path / folder),), sample=0.5, seed=3)
        found.append(read_shard(list_shards(settings)[0], settings)["row"].to_pylist())
    assert found[0] == found[1]
    assert 5 < len(found[0]) < 25
    other = SourceSettings((str(tmp_path / "x"),), sample=0.5, seed=4)
    assert read_shard(list_shards(other)[0], other)["row"].to_pylist() != found[0]


READ_ALL = """
import json, sys
from counterprior.corpus_analysis.sources.shards import *
for path in sys.argv[1:]:
    settings = SourceSettings((path,), "laion")
    try:
        for shard in list_shards(settings):
            table = read_shard(shard, settings)
            print(json.dumps([shard.path.rsplit("/", 1)[1], table["caption"].to_pylist()]))
    except SourceError as error:
        print("SourceError:", error, file=sys.stderr)
"""


def read_from_hub(hub: LoopbackHub, *paths: str) -> subprocess.CompletedProcess[str]:
    """Every caption below some paths, by file, read by a process of its own."""
    hub.requests.clear()
    command = [sys.executable, "-c", READ_ALL, *paths]
    return subprocess.run(command, capture_output=True, text=True, env=hub.environment)


@pytest.mark.slow
def test_hub_datasets_are_read_column_by_column(loopback_hub: LoopbackHub, tmp_path: Path) -> None:
    junk = pa.array([os.urandom(20_000) for _ in ROWS])
    columns = {name: pa.array([row[name] for row in ROWS]) for name in ROWS[0]}
    mixed = {"a": junk, "TEXT": columns["TEXT"], "b": junk, "URL": columns["URL"], "c": junk}
    target = tmp_path / "a.parquet"
    pq.write_table(pa.table(mixed | {"WIDTH": columns["WIDTH"]}), target, row_group_size=10)
    text = write_source(tmp_path / "b.csv.gz").read_bytes()
    files = {"data/a.parquet": target.read_bytes(), "data/b.csv.gz": text, "README.md": b"no"}
    loopback_hub.create("someone/captions")
    loopback_hub.commit("someone/captions", files)
    texts = [row["TEXT"] for row in ROWS]
    places = [f"hf://datasets/someone/captions{path}" for path in ("/data/*", "@main/data", "")]
    both, one = [["a.parquet", texts], ["b.csv.gz", texts]], f"{places[2]}/data/b.csv.gz"
    for some, expected in (((*places[:2], one), [*both * 2, both[1]]), (places[2:], both)):
        done = read_from_hub(loopback_hub, *some)
        assert done.returncode == 0, done.stderr
        assert [json.loads(line) for line in done.stdout.splitlines()] == expected
    # Bytes from storage, where the parquet file is: the columns, and a footer to list and to read.
    metadata = pq.read_metadata(target)
    wanted = sum(
        metadata.row_group(group).column(column).total_compressed_size
        for group in range(3)
        for column in (1, 3, 5)
    )
    fetched = [r.bytes for r in loopback_hub.requests if r.path.startswith("/storage")]
    assert wanted < sum(fetched) <= wanted + 2 * 2**16 < len(files["data/a.parquet"]) / 10


@pytest.mark.slow
def test_hub_failures_name_the_dataset(loopback_hub: LoopbackHub, tmp_path: Path) -> None:
    loopback_hub.create("someone/captions")
    path = write_source(tmp_path / "a.parquet")
    loopback_hub.commit("someone/captions", {"a.parquet": path.read_bytes()})
    loopback_hub.fail("GET", "/resolve/")  # asked again
    wrong = {
        "hf://datasets/someone/nothing": "not found on the Hub",
        "hf://datasets/someone/captions/none.csv": "no such file",
        "hf://datasets/someone/captions@v9": "not found on the Hub",
    }
    done = read_from_hub(loopback_hub, "hf://datasets/someone/captions", *wrong)
    assert done.returncode == 0 and json.loads(done.stdout)[0] == "a.parquet", done.stderr
    for name, message in wrong.items():
        assert f"SourceError: {name}: {message}" in done.stderr
    loopback_hub.stop()
    done = read_from_hub(loopback_hub, "hf://datasets/someone/captions")
    assert "SourceError: hf://datasets/someone/captions: not found on the Hub (" in done.stderr


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"caption_column": "body"}, ("missing-column", "body", "TEXT", "URL", "WIDTH")),
        ({"preset": "datacomp"}, ("missing-column", "text")),
        ({"preset": "imagenet"}, ("unknown-name", "imagenet")),
        ({"caption_column": "WIDTH"}, ("wrong-type", "int64")),
        ({"sample": 0.0}, ("out-of-range", "0.0")),
    ],
)
def test_unsuitable_source_is_named(
    tmp_path: Path, settings: dict[str, str], message: tuple[str, ...]
) -> None:
    asked = SourceSettings((str(write_source(tmp_path / "a.parquet")),), **settings)  # type: ignore[arg-type]
    with raises(*message, error=SourceError):
        read_shard(list_shards(asked)[0], asked)


def test_captions_that_pandas_wrote_as_a_category_are_read(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(ROWS)
    captions = table["TEXT"].dictionary_encode()
    numbers = table["WIDTH"].dictionary_encode()
    table = table.set_column(table.column_names.index("TEXT"), "TEXT", captions)
    table = table.set_column(table.column_names.index("WIDTH"), "WIDTH", numbers)
    pq.write_table(table, tmp_path / "a.parquet")
    settings = SourceSettings((str(tmp_path / "a.parquet"),))
    read = read_shard(list_shards(settings)[0], settings)
    assert read.column("caption").to_pylist() == [row["TEXT"] for row in ROWS]
    settings = replace(settings, caption_column="WIDTH")
    with raises("wrong-type", "int64", error=SourceError):
        read_shard(list_shards(settings)[0], settings)


def test_broken_missing_and_repeated_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with raises("unreadable-file", "bad.parquet", error=SourceError):
        list_shards(SourceSettings((str(tmp_path),)))
    with raises("no-such-file", "tsv.gz", "jsonl.gz", error=SourceError):
        list_shards(SourceSettings((str(tmp_path / "none.csv"),)))
    (tmp_path / "x.txt").write_text("a cat")
    with raises("unknown-format", ".parquet", error=SourceError):
        list_shards(SourceSettings((str(tmp_path / "x.txt"),)))
    path = str(write_source(tmp_path / "a.csv"))
    with raises("duplicate-id", "a.csv", error=SourceError):
        list_shards(SourceSettings((path, path)))
    (tmp_path / "torn.jsonl").write_text('{"caption": "a cat"')
    settings = SourceSettings((str(tmp_path / "torn.jsonl"),))
    with raises("unreadable-file", "torn.jsonl", error=SourceError):
        read_shard(list_shards(settings)[0], settings)


# --- runs --------------------------------------------------------------------------------------

SHARDS = 6


@pytest.fixture(scope="module")
def captions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small parquet files."""
    try:
        installed_model()
    except ModelMissing as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("captions")
    texts = [text or "x" for text in golden_captions(900)]
    size = len(texts) // SHARDS + 1
    for number in range(SHARDS):
        part = texts[number * size :][:size]
        urls = [f"http://x/{number}/{i}" for i in range(len(part))]
        pq.write_table(pa.table({"url": urls, "caption": part}), folder / f"{number}.parquet")
    return folder


FARM = "counterprior.corpus_analysis.mining.mine_source.farm"


def settings_for(captions: Path, out: Path) -> CorpusSettings:
    return CorpusSettings(MineSettings(SourceSettings((str(captions),))), out)


def mine(captions: Path, out: Path) -> Funnel:
    settings = settings_for(captions, out)
    return mine_pairs(settings.mine, out, settings.scale, silent)


def jobs_of(settings: CorpusSettings) -> list[Job]:
    shards = list_shards(settings.mine.source)
    return [Job.of(shard, settings.out, settings.mine) for shard in shards]


class InlineFarm:
    """Stands in for `farm`: mines in this process; after `stop_after` shards it is interrupted."""

    miner: ShardMiner | None = None

    def __init__(self, stop_after: int = 99) -> None:
        self.stop_after = stop_after
        self.mined: list[str] = []

    def __call__(
        self, task: MineShards, work: Sequence[Job], scale: Scale, **options: object
    ) -> Iterator[tuple[Job, ShardEntry]]:
        InlineFarm.miner = InlineFarm.miner or task.open()
        for job in work:
            if len(self.mined) == self.stop_after:
                raise KeyboardInterrupt
            entry = InlineFarm.miner.mine(job)
            self.mined.append(job.shard.name)
            yield job, entry


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> InlineFarm:
    inline_farm = InlineFarm()
    monkeypatch.setattr(FARM, inline_farm)
    return inline_farm


def results(out: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted((out / PAIRS).iterdir())}


@pytest.fixture(scope="module")
def expected(captions: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What an undisturbed run writes."""
    out = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FARM, InlineFarm())
        funnel = mine(captions, out)
    rows = sum(pq.read_metadata(p).num_rows for p in (out / PAIRS).iterdir())
    assert rows == funnel.pairs > 350
    assert funnel.rows == sum(funnel.dropped.values()) + funnel.passed
    assert funnel.passed >= funnel.candidates == funnel.parsed >= funnel.captions > 350
    return results(out)


def test_rows_contain_everything_needed_to_check_them(
    captions: Path, expected: dict[str, bytes]
) -> None:
    table = pq.read_table(pa.BufferReader(next(iter(expected.values()))))
    for row in table.to_pylist():
        for half in (row["first"], row["second"]):
            assert half["head"] in row["text"][half["start"] : half["end"]]
        assert row["first"]["end"] <= row["second"]["start"]
        assert row["pattern"] in ("coordination", "preposition")
        assert row["source"].endswith(".parquet") and row["url"].startswith("http")
    assert len(set(table["id"].to_pylist())) == len(table)


def test_load_dataset_reads_the_pairs(expected: dict[str, bytes], tmp_path: Path) -> None:
    import datasets

    for name, data in expected.items():
        (tmp_path / name).write_bytes(data)
    loaded = datasets.load_dataset("parquet", data_dir=str(tmp_path), split="train")
    assert loaded[0]["first"]["category"] == "animals" or loaded[0]["first"]["name"]


@pytest.mark.slow
def test_worker_reloads_its_model_after_many_words(
    captions: Path, tmp_path: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    from counterprior.corpus_analysis.mining import mine_shard as shards

    loaded: list[Miner] = []

    def counted(**options: bool) -> Miner:
        loaded.append(Miner(**options))
        return loaded[-1]

    monkeypatch.setattr(shards, "Miner", counted)
    settings = settings_for(captions, tmp_path)
    jobs = jobs_of(settings)[:3]
    worker = ShardMiner(settings.mine)
    strings = len(worker.miner.parser.nlp.vocab.strings)
    monkeypatch.setattr(shards, "MOST_WORDS", strings - 1)
    entries = [worker.mine(job) for job in jobs]
    assert [Path(job.target).read_bytes() for job in jobs] == list(expected.values())[:3]
    assert len(loaded) == 4  # at the start, and before each shard
    assert sum(entry["parsed"] for entry in entries) > 100


@pytest.mark.slow
def test_worker_skips_optional_imports(captions: Path, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; "
        "from counterprior.corpus_analysis.mining.mine_shard import Job, ShardMiner; "
        "from counterprior.corpus_analysis.mining.mine_shard import MineSettings; "
        "from counterprior.corpus_analysis.sources.shards import SourceSettings, list_shards; "
        f"settings = MineSettings(SourceSettings(({str(captions)!r},))); "
        "worker = ShardMiner(settings); shard = list_shards(settings.source)[0]; "
        f"entry = worker.mine(Job.of(shard, Path({str(tmp_path)!r}), settings)); "
        "print(entry['pairs'], {'spacy', 'spacy.cli', 'torch', 'pandas'} & set(sys.modules)); "
        "import pandas, spacy.cli, pyarrow; "
        "print(pyarrow.array([1]).to_pandas().sum(), callable(spacy.cli.download))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pairs, left, *after = done.stdout.split(maxsplit=2)
    assert int(pairs) > 0 and left == "{'spacy'}"
    assert "".join(after).split() == ["1", "True"]


def test_interrupted_run_resumes(
    captions: Path, tmp_path: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = InlineFarm(stop_after=2), InlineFarm()
    environment = dict(os.environ)
    monkeypatch.setattr(FARM, first)
    with pytest.raises(KeyboardInterrupt):
        mine(captions, tmp_path)
    # What a kill leaves: a half-written file, a finished one that was never noted, a torn line.
    half, whole, *_ = (name for name in sorted(expected) if Path(name).stem not in first.mined)
    (tmp_path / PAIRS / f"{half}.123.partial").write_bytes(b"half")
    (tmp_path / PAIRS / whole).write_bytes(b"not noted")
    with (tmp_path / MANIFEST).open("a") as log:
        log.write('{"key": "torn')
    monkeypatch.setattr(FARM, second)
    mine(captions, tmp_path)
    assert len(first.mined) == 2 and not set(first.mined) & set(second.mined)
    assert results(tmp_path) == expected
    assert dict(os.environ) == environment, "the caller's environment is not ours"


def test_files_of_others_are_refused_and_kept(captions: Path, tmp_path: Path) -> None:
    notes = tmp_path / PAIRS / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    with raises("folder-not-empty", "notes.txt", error=UsageError):
        mine(captions, tmp_path)
    assert notes.read_text() == "mine"


def test_hidden_files_of_others_are_kept(
    captions: Path, tmp_path: Path, inline: InlineFarm
) -> None:
    hidden = tmp_path / PAIRS / ".DS_Store"
    hidden.parent.mkdir()
    hidden.touch()
    mine(captions, tmp_path)
    assert hidden.exists()


def test_an_unknown_preset_is_refused_before_any_shard(captions: Path) -> None:
    with raises("unknown-name", "cc3n", "cc3m", error=SourceError):
        list_shards(SourceSettings((str(captions),), preset="cc3n"))


@pytest.mark.slow
def test_finished_run_reads_nothing_and_changed_settings_start_anew(
    captions: Path, tmp_path: Path, inline: InlineFarm
) -> None:
    mine(captions, tmp_path)
    assert len(inline.mined) == SHARDS
    mine(captions, tmp_path)
    assert len(inline.mined) == SHARDS
    changed = MineSettings(SourceSettings((str(captions),)), gate=QualityGate(max_words=8))
    InlineFarm.miner = None
    try:
        mine_pairs(changed, tmp_path, Scale(), silent)
    finally:
        InlineFarm.miner = None
    assert len(inline.mined) == 2 * SHARDS


def test_a_shard_of_other_settings_is_not_taken_for_one_of_these(
    captions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mined: list[str] = []

    def write_key(
        task: MineShards, work: Sequence[Job], scale: Scale, **options: object
    ) -> Iterator[tuple[Job, ShardEntry]]:
        """Stands in for `farm`: a shard's pairs are its key."""
        for job in work:
            mined.append(job.key)
            Path(job.target).write_text(job.key)
            counts = dict.fromkeys("rows passed candidates parsed tokens errors".split(), 0)
            texts = {"damage": "", "model": "", "speedup": ""}
            yield (
                job,
                {"key": job.key, "shard": job.shard.name, "file": job.shard.path, "dropped": {}}
                | {**counts, **texts, "captions": 0, "pairs": 0}
                | {"sha256": sha256_file(Path(job.target))},
            )

    monkeypatch.setattr(FARM, write_key)
    source = SourceSettings((str(captions),))
    settings, others = MineSettings(source), MineSettings(source, gate=QualityGate(max_words=8))
    for number, chosen in enumerate((settings, settings, others, settings, settings)):
        mine_pairs(chosen, tmp_path, Scale(), silent)
        assert len(mined) == SHARDS * (1, 1, 2, 3, 3)[number]
    assert {data.decode() for data in results(tmp_path).values()} == set(mined[:SHARDS])


def test_pairs_of_another_source_or_sample_are_refused_and_kept(
    captions: Path, tmp_path: Path, inline: InlineFarm
) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    shutil.copytree(captions, source)
    mine(source, out)
    before, count = results(out), len(inline.mined)
    chosen = SourceSettings((str(source),))

    def refused(changed: SourceSettings, *words: str, shard: RunShard | None = None) -> None:
        with raises("another-run", out, *words, "--out", error=UsageError):
            mine_pairs(MineSettings(changed), out, Scale(shard=shard), silent)
        assert results(out) == before and len(inline.mined) == count

    refused(replace(chosen, limit=10), "no --limit there, --limit 10 asked")
    refused(replace(chosen, limit=10), "--limit 10 asked", shard=(1, 2))
    refused(replace(chosen, sample=0.5, seed=3), "--sample 0.5 asked", "--seed 3 asked")
    refused(replace(chosen, caption_column="caption"), "no --caption-column there")
    refused(replace(chosen, paths=(str(source / "0.parquet"),)), "pairs of 1.parquet")
    shutil.copytree(source, tmp_path / "moved")
    mine(tmp_path / "moved", out)
    assert len(inline.mined) == count, "a source may be moved"
    new = {"caption": ["a cat and a dog"], "url": ["http://x/"]}
    pq.write_table(pa.table(new), source / "-first.parquet")
    mine(source, out)
    rows = sum(pq.read_metadata(path).num_rows for path in (out / PAIRS).iterdir())
    assert rows > sum(pq.read_metadata(io.BytesIO(data)).num_rows for data in before.values())
    before, count = results(out), len(inline.mined)
    pq.write_table(pa.table(new), source / "0.parquet")
    refused(chosen, "0.parquet of ", " bytes there, ")


def test_a_bad_shard_stops_no_other(captions: Path, tmp_path: Path, inline: InlineFarm) -> None:
    source = tmp_path / "source"
    source.mkdir()
    write_source(source / "a.csv")
    pq.write_table(pa.table({"text": ["a cat and a dog"]}), source / "b.parquet")
    with raises("failed-shards", "1", "of 2", "b.parquet", "SourceError", error=MineError):
        mine(source, tmp_path / "out")
    assert len(inline.mined) == 2
    assert len(results(tmp_path / "out")) == 1


def test_a_folder_in_use_is_refused_before_any_work(tmp_path: Path) -> None:
    settings = CorpusSettings(MineSettings(SourceSettings(("nothing.csv",))), tmp_path)
    with Lock(tmp_path / LOCK, "the folder"):
        with raises("in-use", tmp_path, error=InUseError) as refused:
            run(settings, silent)
        assert refused.value.exit_code == 1
    with raises("no-such-file", "tsv.gz", "jsonl.gz", error=SourceError):
        run(settings, silent)


def test_shards_of_a_run_give_the_whole_run(
    captions: Path, expected: dict[str, bytes], tmp_path: Path, inline: InlineFarm
) -> None:
    out = tmp_path / "out"
    whole = settings_for(captions, out)

    def part(number: int, count: int = 2, stage: str = "pairs") -> CorpusSettings:
        scale = Scale(shard=(number, count))
        return replace(whole, scale=scale, stage=stage, judge="boxes:b.json")

    counts = run(part(2), silent).funnel
    (out / PAIRS / "other.partial").write_text("of a part that is at work")
    first = list(inline.mined)
    counts_again = run(part(2), silent).funnel
    assert counts_again == counts and inline.mined == first and len(first) == SHARDS // 2
    run(part(1), silent)
    assert sorted(inline.mined) == sorted(Path(name).stem for name in expected)
    assert (out / PAIRS / "other.partial").exists()
    done = len(inline.mined)
    finished = run(whole, silent)  # reads what the parts wrote
    assert len(inline.mined) == done and results(out) == expected
    assert finished.funnel.rows > counts.rows > 0
    with Lock(out / LOCK, "it", shared=True), raises("in-use", out, error=InUseError):
        run(whole, silent)  # while a part is at work
    with Lock(out / LOCK, "it", shared=True):
        run(part(1), silent)  # beside another part
    with Lock(out / LOCK, "it"), raises("in-use", out, error=InUseError):
        run(part(1), silent)
    with raises("conflicting-options", "--shard", error=UsageError):
        run(part(1, stage="layout"), silent)


def test_failed_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        write_parquet(pa.table({"a": [1]}), tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_refuses_unknown_engine(
    tmp_path: Path, cli: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    for name in ("daft", "pool", "spark"):
        with raises("unknown-name", name, "choose from local, ray"):
            as_engine(name)
    done = cli("corpus", "mine", "nothing.csv", "--out", tmp_path, "--engine", "daft")
    assert_refused(done, "unknown-name")


def test_records_shard_that_kills_its_workers_as_failed(captions: Path, tmp_path: Path) -> None:
    job, *_ = jobs_of(settings_for(captions, tmp_path))
    entry = MineShards(settings_for(captions, tmp_path).mine).lost(job, 3)
    assert entry == {
        "key": job.key,
        "shard": job.shard.name,
        "file": job.shard.path,
        "error": "3 workers died mining it",
    }


def start(captions: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "counterprior",
        "corpus",
        "mine",
        str(captions),
        "--out",
        str(out),
    ]
    return subprocess.Popen(
        [*command, "--workers", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def processes(pid: int) -> list[tuple[int, bytes]]:
    """Everything below a process: id and command line, parents first."""
    found: dict[int, tuple[int, bytes]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text, line = stat.read_text(), stat.with_name("cmdline").read_bytes()
        except OSError:
            continue
        found[int(stat.parent.name)] = (int(text.rsplit(")", 1)[1].split()[1]), line)
    below, level = [], [pid]
    while level:
        level = [child for child, (parent, _) in found.items() if parent in level]
        below += [(child, found[child][1]) for child in level]
    return below


def wait_for_lines(path: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.02)
    raise AssertionError("the run never came so far")


@pytest.mark.lane
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds workers in /proc")
@pytest.mark.parametrize("victim", ["run", "worker"])
def test_kill_9(captions: Path, tmp_path: Path, expected: dict[str, bytes], victim: str) -> None:
    process = start(captions, tmp_path)
    wait_for_lines(tmp_path / MANIFEST, 1, process)
    started = processes(process.pid)
    pid = process.pid if victim == "run" else started[-1][0]
    os.kill(pid, signal.SIGKILL)
    _, message = process.communicate(timeout=120)
    noted = (tmp_path / MANIFEST).read_bytes().count(b"\n")
    deadline = time.monotonic() + 10
    left = started
    while left and time.monotonic() < deadline:
        left = [(p, line) for p, line in started if alive(p, line)]
        time.sleep(0.05)
    assert not left
    if victim == "run":
        assert 1 <= noted < SHARDS
        again = start(captions, tmp_path)
        _, message = again.communicate(timeout=120)
        assert again.returncode == 0, message.decode()
    else:
        assert process.returncode == 0, message.decode()
        assert message.count(b"a worker died, restart 1") == 1
        assert b"restart 2" not in message
    # One line a shard: what was noted was not done again.
    assert (tmp_path / MANIFEST).read_bytes().count(b"\n") == SHARDS
    assert results(tmp_path) == expected


def alive(pid: int, line: bytes) -> bool:
    """Whether a process is still the one that had this command line."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() == line
    except OSError:
        return False


@pytest.mark.lane
def test_an_interrupt_ends_a_run_at_once_and_keeps_what_is_done(
    captions: Path, tmp_path: Path
) -> None:
    process = start(captions, tmp_path)
    wait_for_lines(tmp_path / MANIFEST, 1, process)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 130
    assert message.decode().splitlines()[-1].endswith("run the same command again to continue")
    assert 1 <= (tmp_path / MANIFEST).read_bytes().count(b"\n") < SHARDS


@pytest.mark.lane
def test_workers_write_the_same_bytes(
    captions: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    process = start(captions, tmp_path)
    _, message = process.communicate(timeout=120)
    assert process.returncode == 0, message.decode()
    assert results(tmp_path) == expected


@pytest.mark.slow
def test_the_command_prints_the_funnel(
    captions: Path, tmp_path: Path, cli: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    def run_mine(source: Path | str, options: str = "") -> subprocess.CompletedProcess[str]:
        return cli("corpus", "mine", source, "--out", tmp_path, *options.split())

    done = run_mine(captions / "0.parquet", "--workers 1 --limit 200")
    assert done.returncode == 0, done.stderr
    assert "passed the quality gate" in done.stdout and "pairs; en_core_web_sm" in done.stdout
    wrong = run_mine("nothing.csv")
    assert wrong.returncode == 2
    assert wrong.stderr.strip().startswith("counterprior: nothing.csv: no such file")
