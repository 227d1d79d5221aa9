"""A bank that only grew: the entries of `docs/first-row.md` give new rows and displace none."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from refusals import raises

from counterprior.builders.bank import BankError
from counterprior.builders.bank_faults import bank_faults
from counterprior.builders.build import BuildSettings, build, rebuilt
from counterprior.builders.suite import SHIPPED, Banks
from counterprior.builders.suites import SUITES
from counterprior.cards.manifest import read_manifest
from counterprior.cards.write import write_release
from counterprior.eval.api import prompts
from counterprior.release import parquet_path

Cli = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "first-row.md"
EXAMPLES = ROOT / "examples" / "first-row"
"""Entries to which the page leads, each in a file with the name of the bank's."""
BLOCK = re.compile(r"to `mybank/([\w/]+\.yaml)`[^`]*?:\n\n```yaml\n(.*?)```", re.I | re.S)
ADDED = {
    "t2i_correctness": 1,
    "altered_worlds": 4,
    "counterfactual": 3,
    "rule_decoupling": 6,
    "t2i_homogenization": 44 + 40 + 20 + 34,
}
"""Config -> rows that the page's pair, group, rule, occupation, animal, object and action give."""
DRAWN = ("t2i_correctness_gold", "altered_worlds_gold", "real_gold", "spatial_visor")
"""Configs that nothing on the page can change, and that take long."""


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the bank with the entries of the page."""
    root = Path(shutil.copytree(SHIPPED.root, tmp_path_factory.mktemp("bank") / "mybank"))
    entries = BLOCK.findall(PAGE.read_text("utf-8"))
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        entries.append((path.relative_to(EXAMPLES).as_posix(), path.read_text("utf-8")))
    assert len(entries) == 8
    for name, text in entries:
        with (root / name).open("a", encoding="utf-8") as file:
            file.write(text)
    return root


@pytest.mark.slow
def test_an_addition_displaces_no_row_of_any_config(bank: Path, full_release: Path) -> None:
    before, after = rebuilt(None), rebuilt(bank)
    for config, count in ADDED.items():
        old, new = before(config, 0) or [], after(config, 0) or []
        assert new[: len(old)] == old, config
        assert len(new) - len(old) == count
        assert all(SUITES[config].added(row, Banks.at(bank)) for row in new[len(old) :])
    released = {config.name for config in read_manifest(full_release).configs}
    others = sorted(released - ADDED.keys() - {*DRAWN})
    assert len(others) > 10
    for config in others:
        ids = pq.read_table(full_release / parquet_path(config), columns=["id"])["id"].to_pylist()
        assert [row.id for row in after(config, 0) or []] == ids, config


LATER = {
    "occupations.yaml": "{occupation: archer, plural: archers, category: services, "
    "look: bow in hand, soc_2018: null, soc_level: null, confusable: []}",
    "animals.yaml": "{name: seal, plural: seals, article: a, category: large_mammal, "
    "look: gray body, size: large, grounding: {coco: null, imagenet: null, openimages: null}, "
    "confusable: [otter]}",
    # Actions of rows that were there name it: `looking through a magnifying glass`.
    "objects.yaml": "{name: glass, plural: glasses, article: a, category: kitchenware, "
    "look: clear, size: small, grounding: {coco: null, imagenet: null, openimages: null}, "
    "confusable: [cup]}",
    "actions.yaml": "{id: animal_floating, kind: animal, group: static_posture, name: floating, "
    "source: ours, participle: floating on its back, clause: is floating on its back, "
    "suits: {categories: [], entities: [otter, penguin]}, visible: true, contrast: "
    "[animal_lying_down], directed: null, pair: null}",
}
"""Bank file -> an entry that joins after those of the page."""


@pytest.mark.slow
def test_rows_of_additions_stay_when_others_join(bank: Path, tmp_path: Path) -> None:
    grown = Path(shutil.copytree(bank, tmp_path / "grown"))
    for name, entry in LATER.items():
        with (grown / name).open("a", encoding="utf-8") as file:
            file.write(f"- {entry}\n")
    old, new = (rebuilt(root)("t2i_homogenization", 0) or [] for root in (bank, grown))
    ids = {row.id for row in old}
    assert [row for row in new if row.id in ids] == old
    added = [row for row in new if row.id not in ids]
    counts = Counter(
        word
        for row in added
        for word in ("archer", "one seal", "one glass", "floating on its back")
        if word in row.prompt.lower()  # type: ignore[attr-defined]
    )
    assert counts == {"archer": 44, "one seal": 40, "one glass": 20, "floating on its back": 10}
    assert len(added) == counts.total()
    assert not list(SUITES["t2i_homogenization"].faults(new, Banks(grown)))


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "animals.yaml",
            'category: medium_mammal\n  look: "long sleek',
            'category: fish\n  look: "long sleek',
            "animals.yaml, otter: category: no category 'fish': choose from small_pet",
        ),
        ("objects.yaml", "name: ladder", "name: cup", "objects.yaml: 'cup' is used twice"),
        (
            "actions.yaml",
            "group: upper_limbs                         #",
            "group: interactive #",
            "human_covering_ears: group: an added human action is of one of upper_limbs",
        ),
        (
            "actions.yaml",
            "participle: covering both ears",
            "participle: null",
            "human_covering_ears: an added action needs participle, clause and `visible: true`",
        ),
        (
            "actions.yaml",
            "entities: []}      # who can",
            "entities: [beekeeper]} # who can",
            "human_covering_ears: suits: names only additions",
        ),
    ],
    ids=("category", "name", "group", "participle", "suits"),
)
def test_a_wrong_addition_is_refused(
    bank: Path, tmp_path: Path, file: str, old: str, new: str, said: str
) -> None:
    with pytest.raises(BankError, match=re.escape(said)):
        _ = Banks(edited(bank, tmp_path, file, old, new)).taxonomy


def edited(bank: Path, root: Path, file: str, old: str, new: str) -> Path:
    """A copy of the bank in which one text of a file is another."""
    copy = Path(shutil.copytree(bank, root / "edited"))
    text = (copy / file).read_text("utf-8")
    assert text.count(old) == 1
    (copy / file).write_text(text.replace(old, new), encoding="utf-8")
    return copy


@pytest.mark.slow
def test_validate_and_build_refuse_a_pair_of_a_full_family(
    bank: Path, tmp_path: Path, cli: Cli
) -> None:
    crowded = edited(
        bank, tmp_path, "constrained/keyboards.yaml", "qwerty-bottom-row  ", "qwerty  "
    )
    file = crowded / "constrained" / "keyboards.yaml"
    entry = file.read_text("utf-8").partition("- id: keyboards-z-m")
    second = entry[2].replace("Z", "X").replace("M", "N")
    file.write_text("".join(entry) + "- id: keyboards-x-n" + second, encoding="utf-8")
    fault = next(bank_faults(Banks(crowded)))
    assert "constrained/keyboards.yaml, keyboards-z-m: family: qwerty has 3 rows already" in fault
    out = ("--config", "t2i_correctness", "--bank", crowded, "--out", tmp_path / "out")
    built = cli("build", *out)
    assert built.returncode == 1 and "qwerty has 4 rows, at most 3" in built.stderr


def test_an_occupation_of_no_category_is_refused(bank: Path, tmp_path: Path) -> None:
    old = 'category: services\n  look: "white overalls'
    other = edited(bank, tmp_path, "occupations.yaml", old, old.replace("services", "hobbies"))
    with raises("unknown-name", "beekeeper", "'hobbies'", "services", error=BankError):
        _ = Banks(other).taxonomy


@pytest.mark.slow
def test_without_a_frozen_draw_a_rule_too_many_is_refused_by_both(
    bank: Path, tmp_path: Path, cli: Cli
) -> None:
    copy = Path(shutil.copytree(bank, tmp_path / "copy"))
    (copy / "frozen.yaml").unlink()
    assert any("rules.yaml: has 34 rules" in fault for fault in bank_faults(Banks(copy)))
    built = cli("build", "--config", "rule_decoupling", "--bank", copy, "--out", tmp_path / "out")
    assert built.returncode == 1 and "34 rules, must be 198 on 33" in built.stderr


@pytest.mark.lane
def test_the_commands_of_the_page_make_a_minor(bank: Path, tmp_path: Path, cli: Cli) -> None:
    configs = [word for name in ADDED if name != "counterfactual" for word in ("--config", name)]
    for folder, options in (("old", ()), ("new", ("--bank", bank))):
        done = cli("build", *configs, *options, "--out", tmp_path / folder)
        assert done.returncode == 0, done.stderr
    checked = cli("validate", tmp_path / "new", "--bank", bank)
    assert checked.returncode == 0, checked.stderr
    said = cli("diff", tmp_path / "old", tmp_path / "new").stdout
    assert "0 published rows are displaced and 0 edited; the version bump is MINOR" in said
    assert "The Z key and the M key on a standard US QWERTY" in said


@pytest.mark.slow
def test_only_prints_the_rows_of_an_added_action(bank: Path, tmp_path: Path, cli: Cli) -> None:
    out = ("--bank", bank, "--only", "human_covering_ears", "--out", tmp_path / "out")
    said = cli("build", *out).stderr
    assert "human_covering_ears: 34 rows of t2i_homogenization; no image" in said


@pytest.mark.slow
def test_a_grown_release_gives_its_frozen_rows_by_name(
    bank: Path, tmp_path: Path, cli: Cli
) -> None:
    release, suite = tmp_path / "new", "t2i_homogenization"
    release.mkdir()
    write_release(build(BuildSettings((suite,), bank)), release)
    frozen = {row.id for row in SUITES[suite].build(SHIPPED, random.Random(f"0/{suite}"))}
    chosen = {
        where: {case.row for case in prompts(suite, data=str(release), only=where)}
        for where in ("release=v1", "release=added", "release!=v1")
    }
    assert chosen["release=v1"] == frozen
    assert len(chosen["release=added"]) == ADDED[suite]
    assert chosen["release=added"] == chosen["release!=v1"] and not chosen["release=added"] & frozen
    written = tmp_path / "frozen.jsonl"
    where = ("--suite", suite, "--data", release, "--where", "release=v1", "--out", written)
    assert cli("prompts", *where).returncode == 0
    assert {json.loads(line)["row"] for line in written.read_text().splitlines()} == frozen
    with raises("nothing-to-do", "release=: no row has 'v2': choose from 'added', 'v1'"):
        prompts(suite, data=str(release), only="release=v2")

    choice = ("--suite", suite, "--data", release, "--where", "first=female teacher")
    drawn = ("--generator", "render:", "--seeds", 1, "--judge", "scene")
    scored = cli("eval", *choice, *drawn, "--out", tmp_path / "run")
    assert "1 of 11 rows: added to the release after v1, in all scores" in " ".join(
        scored.stdout.split()
    )

    for name, old in (("manifest.json", '"added": 138'), ("checksums.json", '"added": 138')):
        text = (release / name).read_text("utf-8")
        assert text.count(old) == 1
        (release / name).write_text(text.replace(old, '"added": 137'), encoding="utf-8")
    checked = cli("validate", release, "--bank", bank)
    assert f"manifest.json:{suite}:added: says 137, the bank gives 138" in checked.stdout
