"""A release read by people: rows of every config are on the page, and votes reach rows and card."""

import json
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest
from refusals import raises
from releases import small_release
from typer.testing import CliRunner

from counterprior.builders import suite
from counterprior.builders.bank import BankError
from counterprior.builders.build import BuildError, rebuilt, released_with, row_checks
from counterprior.builders.seeds import draw_seeds
from counterprior.builders.votes import RowVotes, read_votes, review_by_people
from counterprior.cards.config_checks import Origin
from counterprior.cards.manifest import read_manifest
from counterprior.cards.validate import validate
from counterprior.cli.main import app
from counterprior.errors import DataError, UsageError
from counterprior.eval.people.sampling import open_audit
from counterprior.eval.people.serve import Audit
from counterprior.images import open_image
from counterprior.schema import Row

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from record_votes import record

RULES, UC, SEEDED = "rule_decoupling", "spatial_uc", "i2i_homogenization"
CONFIGS = (SEEDED, "t2i_correctness", "t2i_correctness_gold", RULES, UC)
MORE = (*CONFIGS, "altered_worlds", "order_beyond_multilingual", "real_gold")


def with_seed_images(rows: list[Row]) -> list[Row]:
    """Three rows of a config of edits, which other rows need not wait for."""
    return list(draw_seeds(rows[:3], "render:", lambda done: None))  # type: ignore[arg-type]


def released(out: Path, configs: tuple[str, ...]) -> Path:
    entry = "maps-peru-desert-rainforest"
    drawn = {entry: suite.SHIPPED.drawables[entry]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suite.SHIPPED.__dict__, "drawables", drawn)
        return small_release(out, configs, with_seed_images, seed_images="none")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of several kinds, one of them with gold images."""
    return released(tmp_path_factory.mktemp("read") / "release", CONFIGS)


@pytest.fixture(scope="module")
def large_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of more kinds."""
    return released(tmp_path_factory.mktemp("read") / "release", MORE)


def configs_of(audit: Audit) -> Counter[str]:
    """Number of tasks by config."""
    return Counter(task.id.rpartition("-")[0] for task in audit.tasks)


def texts(audit: Audit, config: str) -> list[dict[str, str]]:
    return [dict(task.texts) for task in audit.tasks if task.id.startswith(f"{config}-")]


FEW = {SEEDED: 3, "t2i_correctness_gold": 7}
"""Configs with few rows, which are all on the page."""


def check_page(audit: Audit, configs: tuple[str, ...]) -> None:
    """Rows of all of these, ten of each with more, and each with its images."""
    counts = configs_of(audit)
    assert counts.keys() == set(configs)
    assert all(counts[name] == n for name, n in FEW.items())
    assert {counts[name] for name in counts.keys() - FEW} == {10}
    for task in audit.tasks:
        own = task.id.startswith((SEEDED, "t2i_correctness_gold"))
        assert len(task.images) == 1 if own else len(task.images) in (0, 2)
        assert all(min(open_image(path).size) > 100 for path in task.images)
    instruction = texts(audit, SEEDED)[0]
    assert {"config", "seed_prompt", "instruction", "left", "right"} <= instruction.keys()
    assert "seed_image" not in instruction and "license" not in instruction


def test_rows_of_each_config_are_on_the_page(release: Path, tmp_path: Path) -> None:
    check_page(open_audit([release], "bank", tmp_path / "votes", n=40), CONFIGS)


@pytest.mark.slow
def test_rows_of_more_configs_are_on_the_page(large_release: Path, tmp_path: Path) -> None:
    audit = open_audit([large_release], "bank", tmp_path / "votes", n=60)
    # Without the images nobody can read `real_gold`.
    check_page(audit, tuple(name for name in MORE if name != "real_gold"))
    world = texts(audit, "altered_worlds")[0]
    assert world["level"] in ("L0", "L1", "L2", "L3")
    assert world["point_factual"].endswith("(yes: real)")
    state = audit.state("ann")
    hinted = next(t for t in state["tasks"] if t["id"].startswith("altered_worlds"))
    assert hinted["hints"]["level"].startswith("L0 the scene under an irrelevant")


def test_gold_images_stand_beside_the_row_that_they_show(release: Path, tmp_path: Path) -> None:
    family = next(
        row.family
        for row in rebuilt()("t2i_correctness", 0) or []
        if row.provenance.entry == "maps-peru-desert-rainforest"
    )
    chosen = ["suite=t2i_correctness", f"family={family}"]
    audit = open_audit([release], "bank", tmp_path / "votes", where=chosen)
    task = next(task for task in audit.tasks if task.images)
    assert task.captions == ("as it should be", "exchanged")
    right, swapped = (open_image(path) for path in task.images)
    assert right.size == swapped.size and right.tobytes() != swapped.tobytes()
    assert dict(task.texts)["tell_left"] and audit.image(task.id, 1) == task.images[1]


@pytest.mark.slow
def test_a_reader_of_one_language_gets_its_rows(large_release: Path, tmp_path: Path) -> None:
    release, where = large_release, ["language=he"]
    audit = open_audit([release], "bank", tmp_path / "votes", n=15, where=where)
    assert configs_of(audit) == {"order_beyond_multilingual": 15}
    for shown in texts(audit, "order_beyond_multilingual"):
        assert shown["language"] == "he" and shown["direction"] == "rtl"
        assert any("א" <= letter <= "ת" for letter in shown["prompt"]) and shown["english_prompt"]
    again = open_audit([release], "bank", tmp_path / "votes", n=15, where=where)
    other = open_audit([release], "bank", tmp_path / "votes", n=15, seed=1, where=where)
    ids = [{task.id for task in a.tasks} for a in (audit, again, other)]
    assert ids[0] == ids[1] != ids[2]
    page = (Path(sys.modules[Audit.__module__].__file__ or "").parent / "page.js").read_text()
    assert 'value.dir = "auto"' in page, "a Hebrew line runs from the right"


@pytest.mark.slow
def test_people_vote_on_a_release_and_a_build_says_so(
    release: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    banks, folder = suite.SHIPPED, tmp_path / "votes"
    chosen = [f"suite={RULES},{UC}"]
    audit = open_audit([release], "bank", folder, n=20, where=chosen)
    tasks = {c: [t.id for t in audit.tasks if t.id.startswith(c)] for c in (RULES, UC)}
    split, refused = tasks[RULES][1], tasks[UC][0]
    for task in audit.tasks:
        audit.click("ann", task.id, {"decision": "reject" if task.id == refused else "accept"})
        said = {refused: "reject", split: "edit"}.get(task.id, "accept")
        audit.click(
            "bo", task.id, {"decision": said, "note": "say which" if said == "edit" else ""}
        )
    votes = record([audit.file("ann"), audit.file("bo")], tmp_path)
    assert votes == read_votes(tmp_path) and len(votes) == 20
    name = split.partition("@")[0]
    assert f"{name}: bo says edit: say which" in capsys.readouterr().out

    monkeypatch.setitem(banks.__dict__, "votes", votes)
    out = small_release(tmp_path / "next", (RULES, UC))
    manifest = read_manifest(out)
    accepted = {RULES: len(tasks[RULES]) - 1, UC: len(tasks[UC]) - 1}
    assert manifest.read_by_people == accepted
    card = (out / "README.md").read_text()
    assert "**People read 20 rows.**" in card and "No person has read" not in card
    n = len(tasks[RULES])
    assert f"| `{RULES}` | {n} | {n - 1} | 0 | 0 | 1 |" in card
    assert manifest.people is not None
    (pair,) = manifest.people.agreement
    # 18 accept, 1 reject, one accept to edit: 19 / 20 observed, (19*18 + 1*1) / 400 by chance
    assert pair.kappa == pytest.approx((0.95 - 343 / 400) / (1 - 343 / 400), abs=1e-4)
    assert f"| 1 and 2 | 20 | 19 | {pair.kappa:.2f} [{pair.low:.2f}, {pair.high:.2f}] |" in card
    assert "ann" not in json.dumps(manifest.people.model_dump())

    def problems(of: dict[str, RowVotes]) -> set[str]:
        origin = Origin(
            *(manifest.bank_sha256, rebuilt(), released_with(of)),
            people=lambda configs: review_by_people(of, configs),
        )
        with patch("counterprior.cards.validate.record_problems", return_value=()):
            return {problem.field for problem in validate(out, row_checks(), origin).problems}

    assert "review" not in problems(votes) and "people" not in problems(votes)
    assert problems({}) >= {"review", "people"}


def test_votes_of_seeded_rows_hold_with_their_images(release: Path, tmp_path: Path) -> None:
    audit = open_audit([release], "bank", tmp_path / "votes", n=3, where=[f"suite={SEEDED}"])
    row, _, digest = audit.tasks[0].id.partition("@")
    votes = {row: RowVotes(row=row, read=digest, votes={"ann": "accept"})}
    rows = rebuilt()(SEEDED, 0) or []
    mark = released_with(votes)
    marked = [r.id for r in rows if "human" in mark(r, "render", "").review]
    assert marked == [row], "what the bank gives has no image yet, and is the row that was read"
    stale = {row: RowVotes(row=row, read="0" * 12, votes={"ann": "accept"})}
    assert not any("human" in released_with(stale)(r, "render", "").review for r in rows)


@pytest.mark.slow
def test_rows_that_people_would_change_stop_a_build(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = open_audit([release], "bank", tmp_path / "votes", n=2, where=[f"suite={RULES},{UC}"])
    said: dict[str, RowVotes] = {}
    for task in audit.tasks:
        row, _, digest = task.id.partition("@")
        said[row] = RowVotes(row=row, read=digest, votes={"ann": "reject"})
    monkeypatch.setitem(suite.SHIPPED.__dict__, "votes", said)
    ours = next(row for row in said if row.startswith(RULES))
    with raises("failed-checks", ours, "review", "people", "reject", error=BuildError):
        small_release(tmp_path / "out", (RULES,))
    small_release(tmp_path / "out", (UC,))  # published elsewhere: nobody can revise it here


@pytest.mark.slow
def test_what_can_t_be_read_is_said(large_release: Path, tmp_path: Path) -> None:
    release = large_release
    with raises("unsupported", release, "--kind bank", error=UsageError):
        open_audit([release], "worlds", tmp_path / "votes")
    for code, where in (("nothing-to-do", "language=xx"), ("unknown-name", "tongue=he")):
        with raises(code, f"--where {where.partition('=')[0]}=", error=UsageError):
            open_audit([release], "bank", tmp_path / "votes", where=[where])
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": "a", "text": "b"}\n')
    command = ["audit", "serve", str(rows), "--kind", "bank", "--out", str(tmp_path / "votes")]
    refused = CliRunner().invoke(app, [*command, "--where", "id=a"])
    assert refused.exit_code and isinstance(refused.exception, UsageError | SystemExit)
    with raises("unsupported", rows, "not a release", error=UsageError):
        open_audit([rows], "bank", tmp_path / "votes", where=["id=a"])
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "checksums.json").write_text(json.dumps({"files": {}, "version": "1"}))
    with raises("nothing-to-do", bare, "rows to read", error=DataError):
        open_audit([bare], "bank", tmp_path / "votes")
    (tmp_path / "votes.yaml").write_text("- {row: a-1, read: b, votes: {}}\n")
    with raises("bad-entry", tmp_path / "votes.yaml", "a-1", "votes", error=BankError):
        read_votes(tmp_path)
