"""What a reader of the card sees: who has read the rows, whom to cite, what others scored."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from published import publish, published_run
from refusals import raises
from releases import ATTRIBUTES, RULES, small_release
from typer.testing import CliRunner

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.build import as_released, read_readings, row_checks
from counterprior.cards import manifest as card_facts
from counterprior.cards.baselines import Baseline, of_rows, read_baselines
from counterprior.cards.citations import PAPERS
from counterprior.cards.config_checks import Origin
from counterprior.cards.documents import REPEATED, readings_table, render_documents
from counterprior.cards.manifest import ConfigManifest, Manifest, read_manifest
from counterprior.cards.validate import origin_problems, validate
from counterprior.cli.main import app
from counterprior.errors import UsageError
from counterprior.eval.publishing.publication import read_publication, write_publication
from counterprior.eval.stats.intervals import wilson
from counterprior.eval.suites import SUITES
from counterprior.release import Change, ReleaseError
from counterprior.schema import ROWS, Row, columns

UNREAD = "**No human has reviewed these rows.**"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_release(tmp_path_factory.mktemp("card") / "release", (RULES, ATTRIBUTES))


def by_people(some: slice) -> Callable[[list[Row]], list[Row]]:
    """Rows of which some were accepted by people."""

    def change(rows: list[Row]) -> list[Row]:
        for number, row in list(enumerate(rows))[some]:
            rows[number] = row.model_copy(update={"review": [*row.review, "human"]})
        return rows

    return change


def test_card_and_page_say_what_readers_objected_to(release: Path) -> None:
    """The bank's record of readings is what card, datasheet and documentation show."""
    shipped = read_readings(DEFAULT_BANK)
    page = (Path(__file__).parents[2] / "docs" / "authoring.md").read_text()
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for r in shipped:
        counts = {
            name: getattr(r, name) for name in ("read", "serious", "small", "seen", "planted")
        }
        sums[r.config].update(counts)
    shown = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) of (\d+) \|$", page, re.M)
    assert [(name, *map(int, numbers)) for name, *numbers in shown] == [
        (name, n["read"], n["serious"], n["small"], n["seen"], n["planted"])
        for name, n in sums.items()
    ]
    assert {r.by for r in shipped} == {"reviewer-model"} and {r.readers for r in shipped} == {2}
    assert f"0 of 40 rows have a fault, up to {100 * wilson(0, 40).high:.1f} %" in " ".join(
        page.split()
    )

    full = readings_table(shipped)
    assert "| `t2i_correctness` |  | 60 | 0.0 % [0.0, 6.0] | 1.7 % [0.3, 8.9] | 19 of 20: " in full
    assert (
        "| `order_beyond_multilingual` | hi | 15 | 0.0 % [0.0, 20.4] | 6.7 % [1.2, 29.8] |" in full
    )
    assert full.count("\n") == len(shipped) + 1

    of_rules = next(r for r in shipped if r.config == RULES)
    for name in ("README.md", "datasheet.md"):
        text = (release / name).read_text()
        table = readings_table(r for r in shipped if r.config in (RULES, ATTRIBUTES))
        assert table in text and "**No person has read drawn rows.**" in text
        assert f"| `{RULES}` |  | {of_rules.read} | 2.5 % [0.4, 12.9] |" in text
        assert "Every config has been read so." in text and "`order_beyond` |" not in text

    manifest = read_manifest(release)
    by_people = of_rules.model_copy(update={"by": "human", "readers": 3, "planted": 0, "seen": 0})
    forged = manifest.model_copy(update={"readings": [by_people]})
    card = render_documents(forged)["README.md"]
    assert "People made 1 of these readings." in card and "none planted | 3 people |" in card
    assert f"Not read so: `{ATTRIBUTES}`." in card

    origin = Origin("", lambda name, seed: None, as_released, readings=shipped)
    assert not list(origin_problems(manifest, origin))
    fields = [problem.field for problem in origin_problems(forged, origin)]
    assert fields == ["readings"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("seen", 15, "seen 15 of 14 planted"),
        ("serious", 41, "serious 41 and small 1 of 40 read"),
        ("date", "28 November", "date: String should match pattern"),
    ],
)
def test_a_reading_that_cannot_be_is_refused(
    tmp_path: Path, field: str, value: object, message: str
) -> None:
    reading = next(r for r in read_readings(DEFAULT_BANK) if r.config == RULES)
    entries = [reading.model_dump() | {field: value}]
    (tmp_path / "content_readings.yaml").write_text(yaml.safe_dump(entries, sort_keys=False))
    with raises("bad-entry", f"entry 1 ({RULES})", message):
        read_readings(tmp_path)


def test_card_opens_with_the_state_of_human_review(release: Path, tmp_path: Path) -> None:
    def screen(root: Path) -> tuple[str, str]:
        card = (root / "README.md").read_text().split("---\n", 2)[2]
        assert "expert-generated" not in (root / "README.md").read_text()
        rai = json.loads((root / "croissant.json").read_text())["rai:dataAnnotationProtocol"]
        return card.strip()[:400], rai

    card, rai = screen(release)
    assert UNREAD in card and "no human has reviewed them" in rai
    card, rai = screen(small_release(tmp_path / "some", (RULES,), by_people(slice(3))))
    assert f"**People have reviewed 3 of 198 rows (`{RULES}` 3).**" in card
    assert "people have reviewed 3 of 198 rows" in rai and "No human" not in card
    card, rai = screen(small_release(tmp_path / "all", (RULES,), by_people(slice(None))))
    assert "eviewed" not in card and "people have reviewed all of them" in rai


def test_prompts_of_visor_are_counted_apart_in_every_total(release: Path) -> None:
    manifest = read_manifest(release)
    rules, other = manifest.configs
    of_visor = {"name": REPEATED, "rows": 25_280, "reviewed": {"code": 25_280, "human": 7}}
    visor = other.model_copy(update=of_visor)
    read = rules.model_copy(update={"reviewed": {"code": 198, "human": 3}})

    def texts(*configs: ConfigManifest) -> dict[str, str]:
        return render_documents(manifest.model_copy(update={"configs": list(configs)}))

    documents = texts(read, visor)
    apart = "3 of 198 rows, and 7 of 25,280 that repeat VISOR's prompts"
    assert (
        f"**People have reviewed {apart} (`{RULES}` 3, `{REPEATED}` 7).**"
        in (documents["README.md"])
    )
    assert f"people have reviewed {apart}" in documents["croissant.json"]
    for name in ("README.md", "datasheet.md"):
        assert "198 rows, and 25,280 that repeat the prompts of VISOR" in documents[name]
        assert "25,478" not in documents[name]
    unread = visor.model_copy(update={"reviewed": {"code": 25_280}})
    assert "3 of 198 rows, and 0 of 25,280 that" in texts(read, unread)["README.md"]
    alone = texts(visor)["README.md"]
    assert f"**People have reviewed 7 of 25,280 rows (`{REPEATED}` 7).**" in alone


def test_the_card_cites_the_papers_of_its_configs_and_no_others(release: Path) -> None:
    facts = read_manifest(release)
    documents = render_documents(facts)
    card, citation = documents["README.md"], yaml.safe_load(documents["CITATION.cff"])
    assert [one["url"] for one in citation["references"]] == ["https://arxiv.org/abs/2606.24548"]
    assert re.findall(r"papers/(\S+?)\)", card) == ["2606.24548"]
    entries = dict(re.findall(r"^@misc\{(\w+),\n(.*?)^\}", card, re.S | re.M))
    assert list(entries) == ["counterprior", "cfworld"]
    assert f"version       = {{{facts.version}}}," in entries["counterprior"]
    assert facts.url in entries["counterprior"] and "eprint" in entries["cfworld"]
    assert f"`{RULES}`, `{ATTRIBUTES}`" in card.split("papers/2606.24548")[1].splitlines()[0]
    assert len({paper.arxiv for paper in PAPERS}) == len(PAPERS)
    config = facts.configs[0]
    for source, name in (("CF-World, PSE 3D", "pse"), ("PSEUDO", "")):
        changed = facts.model_copy(
            update={"configs": [config.model_copy(update={"source": source})]}
        )
        found = render_documents(changed)
        assert ("@misc{pse," in found["README.md"]) == bool(name)
        assert ("references" in yaml.safe_load(found["CITATION.cff"])) == bool(name)


def test_the_package_is_linked_where_its_metadata_says_so(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Told:
        def get_all(self, name: str) -> list[str]:
            assert name == "Project-URL"
            return ["Source, https://example.org/src", "Documentation, https://example.org/docs"]

    facts = read_manifest(release)
    assert "Its pages" not in render_documents(facts.model_copy(update={"links": {}}))["README.md"]
    monkeypatch.setattr(card_facts.metadata, "metadata", lambda name: Told())
    linked = facts.model_copy(update={"links": card_facts.package_links()})
    pages = "[Source](https://example.org/src), [Documentation](https://example.org/docs)."
    assert f"CF-World. Its pages: {pages}" in render_documents(linked)["README.md"]


def test_prompts_and_images_come_first_and_administration_last() -> None:
    for config in ROWS:
        names = list(columns(config))
        assert names[:2] == ["id", "suite"] and set(names) == set(ROWS[config].model_fields)
        assert names[2].endswith(("prompt", "image", "instruction")), config
        assert names[-1] == "canary" and "status" in names[-7:]
    assert list(columns("i2i_homogenization"))[2:5] == ["seed_prompt", "seed_image", "instruction"]


def test_eval_yaml_names_what_can_be_scored(release: Path) -> None:
    assert set(ROWS) <= set(SUITES)  # so any complete config can be
    facts = read_manifest(release)

    def previews(*names: str) -> Manifest:
        configs = [
            c.model_copy(update={"status": "preview"}) if c.name in names else c
            for c in facts.configs
        ]
        return facts.model_copy(update={"configs": configs})

    tasks = yaml.safe_load(render_documents(previews(RULES))["eval.yaml"])["tasks"]
    assert [task["config"] for task in tasks] == [ATTRIBUTES]
    assert "eval.yaml" not in render_documents(previews(RULES, ATTRIBUTES))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A publication of one run."""
    run = tmp_path / "study/runs/t2i_homogenization/fair"
    published_run(run, "t2i_homogenization", "fair")
    publish(tmp_path / "study", tmp_path / "published")
    return tmp_path / "published"


def as_of(
    study: Path, config: str, rows_sha256: str, limit: int | None = None, where: str = ""
) -> None:
    """Makes it version 1.0.0 of a repository, of certain rows."""
    publication = read_publication(study)
    change = Change(version="1.0.0", date="2026-11-22", notes=["x"])
    run = {"suite": config, "rows_sha256": rows_sha256, "limit": limit, "where": where}
    runs = [one.model_copy(update=run) for one in publication.runs]
    told = {"repo_id": "ns/results", "changes": [change], "runs": runs}
    write_publication(publication.model_copy(update=told), study)


@pytest.mark.slow
def test_a_published_study_of_these_rows_is_the_baseline_table(
    release: Path, study: Path, tmp_path: Path
) -> None:
    digest = read_manifest(release).configs[0].rows_sha256
    with raises("not-published", "published", "`counterprior publish`", error=UsageError):
        read_baselines([study])
    as_of(study, RULES, digest)
    outs = [tmp_path / "one", tmp_path / "two"]
    for out in outs:
        command = ["build", "--config", RULES, "--out", str(out), "--baselines", str(study)]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
    texts = [{p.name: p.read_bytes() for p in out.rglob("*") if p.is_file()} for out in outs]
    assert texts[0] == texts[1]
    card = texts[0]["README.md"].decode()
    section = card.split("## Baselines\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith(f"| `{RULES}`")]
    (run,) = read_publication(study).runs
    assert len(lines) == len(run.judges) > 0
    for line, judge in zip(lines, run.judges, strict=True):
        assert f"| {judge.headline.n} |" in line and f"`{judge.headline.score}`" in line
        assert "[ns/results@v1.0.0](https://huggingface.co/datasets/ns/results/tree/v1.0.0)" in line
    assert validate(outs[0], row_checks(None)).problems == ()
    assert "## Baselines" not in (release / "README.md").read_text()
    # A sample of the rows is no baseline; nor are scores of other rows.
    for limit, where in ((3, ""), (None, "only pair_type=A-A")):
        as_of(study, RULES, digest, limit, where)
        with raises("sampled-run", "--limit", error=UsageError):
            read_baselines([study])
    as_of(study, RULES, "0" * 64)
    found: list[Baseline] = read_baselines([study])
    with raises("different-rows", "fair", "rule_decoupling", error=ReleaseError):
        of_rows(found, {RULES: digest})
    with raises("nothing-to-do", error=ReleaseError):
        of_rows(found, {ATTRIBUTES: digest})
