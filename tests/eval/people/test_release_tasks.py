"""A release read by people: its gold images are on the page, and their votes reach its rows."""

import json
import random
import sys
from pathlib import Path

import pytest
from refusals import raises
from releases import small_release

from counterprior.builders import suite
from counterprior.builders.bank import BankError
from counterprior.builders.suites import t2i_correctness
from counterprior.builders.votes import read_votes
from counterprior.errors import DataError, UsageError
from counterprior.eval.people.clicks import merge
from counterprior.eval.people.sampling import open_audit
from counterprior.images import open_image

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from record_votes import record


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few rows, one of them with gold images."""
    entry = "maps-peru-desert-rainforest"
    drawn = {entry: suite.SHIPPED.drawables[entry]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suite.SHIPPED.__dict__, "drawables", drawn)
        configs = ("t2i_correctness", "t2i_correctness_gold")
        out = tmp_path_factory.mktemp("read") / "release"
        return small_release(
            out, configs, lambda rows: [r for r in rows if r.provenance.entry.startswith("maps-p")]
        )


def test_people_vote_on_a_release_and_a_build_says_so(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    banks = suite.SHIPPED
    audit = open_audit([release], "bank", tmp_path / "votes")
    drawn = [task for task in audit.tasks if task.images]
    (task,) = drawn
    assert len(audit.tasks) > 1 and task.captions == ("as it should be", "exchanged")
    right, swapped = (open_image(path) for path in task.images)
    assert right.size == swapped.size and right.tobytes() != swapped.tobytes()
    assert dict(task.texts)["tell_left"] and audit.image(task.id, 1) == task.images[1]
    other = next(one for one in audit.tasks if one is not task)
    for who, said in (("ann", "accept"), ("bo", "accept")):
        audit.click(who, task.id, {"decision": said})
        audit.click(who, other.id, {"decision": "reject"})
    files = [audit.file(who) for who in ("ann", "bo")]
    merge(files, "bank", tmp_path / "merged.jsonl")
    assert record(tmp_path / "merged.jsonl", tmp_path) == 2
    votes = read_votes(tmp_path)
    entry, refused = (one.id.partition("@")[0] for one in (task, other))
    assert votes[entry].people == 2
    monkeypatch.setitem(banks.__dict__, "votes", votes)
    rows = {row.provenance.entry: row for row in t2i_correctness.build(banks, random.Random(0))}
    assert "human" in rows[entry].review
    assert sum("human" in row.review for row in rows.values()) == 1
    faults = [f for f in t2i_correctness.faults(list(rows.values()), banks) if f.field == "review"]
    assert [(f.row, f.message) for f in faults] == [
        (rows[refused].id, "people who read it say reject")
    ]
    stale = {entry: votes[entry].model_copy(update={"read": "0" * 12})}
    monkeypatch.setitem(banks.__dict__, "votes", stale)
    again = t2i_correctness.build(banks, random.Random(0))
    assert not any("human" in row.review for row in again), "it is another row by now"


def test_what_can_t_be_read_is_said(release: Path, tmp_path: Path) -> None:
    with raises("unsupported", release, "--kind bank", error=UsageError):
        open_audit([release], "worlds", tmp_path / "votes")
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "checksums.json").write_text(json.dumps({"files": {}, "version": "1"}))
    with raises("nothing-to-do", bare, "gold images", error=DataError):
        open_audit([bare], "bank", tmp_path / "votes")
    (tmp_path / "votes.yaml").write_text("- {pair: a, read: b, said: accept, people: 0}\n")
    with raises("bad-entry", tmp_path / "votes.yaml", "a: people:", "1", error=BankError):
        read_votes(tmp_path)
