"""Counterfactual scenes and symbolic rules: the writers' contracts with the bank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...agents.counterfactual import rules as rule_writer
from ...agents.counterfactual import writer
from ...agents.counterfactual.rules import RuleContract, RuleSheet, write_rules
from ...agents.counterfactual.writer import CounterfactualWriter, LawContract, LawSheet
from ...agents.session import SessionSettings, open_session
from ...progress import Progress, silent
from ...schema import Struct
from ...storage import write_json
from ..bank import DEFAULT_BANK, by_name, read_entries, reasons
from ..counterfactual import CounterfactualScene, Law, law_faults, prompts, read_laws, shingles
from ..phrases import wrong_article
from ..rules import Rule, read_rules, rule_faults
from .folder import AuthoringReport, extend, refuse, report, written_bank

SCENES_RUN = "counterfactual"
RULES_RUN = "rules"

ALIKE = 0.4
"""Jaccard index of three-word shingles above which two scenes count as the same."""


class CuratedLaw(Struct):
    """A law that a person wrote for models to write scenes for."""

    id: str
    """Slug."""
    discipline: str
    """School subject."""
    branch: str
    """Branch of the subject."""
    law: str
    """The law, one sentence."""
    altered: str
    """The premise: completes `If ..., draw ...`."""


class CuratedRule(Struct):
    """A law that a person chose for models to turn into a rule."""

    id: str
    """Slug."""
    law: str
    """The law, one sentence."""


def author_counterfactual(
    session: SessionSettings,
    laws: Path | None,
    per_law: int,
    base: Path | None,
    bank: Path,
    progress: Progress = silent,
) -> AuthoringReport:
    """Writes up to `per_law` scenes for each curated law into a bank.

    `laws` is a YAML list of the user's own laws. Without it, the laws are those of the base, or of
    the shipped bank without its scenes.
    """
    refuse(base, bank)
    with open_session(session) as opened:
        sheets, laws_by_id = curated_laws(laws, base)
        if session.replay:
            recorded = opened.ledger.inputs(SCENES_RUN)
            per_law = recorded["per_law"]
            sheets = {s["id"]: LawSheet(**_tuples(s)) for s in recorded["laws"]}
        inputs = {"per_law": per_law, "laws": [asdict(s) for _, s in sorted(sheets.items())]}
        opened.ledger.bind(SCENES_RUN, inputs)
        author = opened.author(writer.WRITER.name)
        reviewer = opened.reviewer(writer.REVIEWER.name)
        contract = law_contract(sheets, laws_by_id)
        result = CounterfactualWriter(author, reviewer, contract, per_law).run(progress)
        with written_bank(base, bank, without="counterfactual") as folder:
            for law_id, scenes in sorted(result.entries.items()):
                if scenes:
                    file = folder / "counterfactual" / f"{sheets[law_id].file}.yaml"
                    extend(file, [_law_entry(laws_by_id[law_id], scenes, bool(base))])
            read_laws(folder)
            rejected = [asdict(r) for r in result.rejected]
            write_json(folder / "archive" / "counterfactual.json", {"rejected": rejected})
        counts = {"laws": len(sheets), "scenes": result.count(), "rejected": len(rejected)}
        return report(opened, bank, "the end of the laws", counts)


def curated_laws(
    laws: Path | None, base: Path | None
) -> tuple[dict[str, LawSheet], dict[str, Law]]:
    """Sheets to write for, and the laws of the bank by id. Raises BankError."""
    # The shipped laws are left out of a bank that is written from the user's own.
    files = read_laws(base or DEFAULT_BANK) if base or laws is None else {}
    laws_by_id = {law.id: law for group in files.values() for law in group}
    if laws is not None:
        curated = [_as_law(law) for law in read_entries(laws, CuratedLaw)]
        files = {laws.stem: [laws_by_id.get(law.id, law) for law in curated]}
        laws_by_id |= by_name(files[laws.stem], "id", str(laws))
    sheets = {
        law.id: LawSheet(
            id=law.id,
            file=file,
            law=law.law,
            altered=law.altered,
            scenes=tuple(scene.scene for scene in law.scenes) if base else (),
            ids=tuple(scene.id for scene in law.scenes) if base else (),
        )
        for file, group in files.items()
        for law in group
    }
    return sheets, laws_by_id


def law_contract(sheets: Mapping[str, LawSheet], laws_by_id: Mapping[str, Law]) -> LawContract:
    """Returns the contract of a scene: the bank's checks on a law with this scene alone."""

    def faults(sheet: LawSheet, entry: Mapping[str, Any]) -> list[str]:
        try:
            scene = CounterfactualScene.model_validate(entry)
        except ValidationError as error:
            return [reasons(error)]
        law = laws_by_id[sheet.id].model_copy(update={"scenes": [scene]})
        problems = list(law_faults(law))
        for text in prompts(law, scene).values():
            if (wrong := wrong_article(text)) is not None:
                problems.append(f"scene: the wrong article in {wrong!r}")
        return problems

    def alike(
        sheet: LawSheet, entry: Mapping[str, Any], accepted: Mapping[str, Mapping[str, Any]]
    ) -> str | None:
        texts = {name: f"{e['scene']} {e['counterfactual']}" for name, e in accepted.items()}
        if sheet.ids:
            texts |= {s.id: f"{s.scene} {s.counterfactual}" for s in laws_by_id[sheet.id].scenes}
        mine = shingles(f"{entry['scene']} {entry['counterfactual']}", 3)
        for name, text in texts.items():
            theirs = shingles(text, 3)
            if len(mine & theirs) > ALIKE * max(len(mine | theirs), 1):
                return name
        return None

    return LawContract(tuple(sheets.values()), faults, alike)


def author_rules(
    session: SessionSettings,
    laws: Path | None,
    base: Path | None,
    bank: Path,
    progress: Progress = silent,
) -> AuthoringReport:
    """Writes a symbolic rule for each curated law into a bank; `laws` as for scenes."""
    refuse(base, bank)
    with open_session(session) as opened:
        sheets = curated_rules(laws, base)
        if session.replay:
            sheets = [RuleSheet(**law) for law in opened.ledger.inputs(RULES_RUN)["laws"]]
        opened.ledger.bind(RULES_RUN, {"laws": [asdict(sheet) for sheet in sheets]})
        author = opened.author(rule_writer.WRITER.name)
        reviewer = opened.reviewer(rule_writer.REVIEWER.name)
        contract = RuleContract(tuple(sheets), rule_entry_faults)
        result = write_rules(author, reviewer, contract, progress)
        with written_bank(base, bank, without="rules.yaml") as folder:
            extend(folder / "rules.yaml", [rule for _, rule in sorted(result.entries.items())])
            if result.entries:
                read_rules(folder)
            rejected = [asdict(r) for r in result.rejected]
            write_json(folder / "archive" / "rules.json", {"rejected": rejected})
        counts = {"rules": len(result.entries), "rejected": len(rejected)}
        return report(opened, bank, "the end of the laws", counts)


def curated_rules(laws: Path | None, base: Path | None) -> list[RuleSheet]:
    """Laws to turn into rules: the user's own or the shipped ones, without those of the base."""
    present = {rule.id for rule in read_rules(base)} if base else set()
    if laws is None:
        chosen = [RuleSheet(rule.id, rule.law) for rule in read_rules(DEFAULT_BANK)]
    else:
        curated = by_name(read_entries(laws, CuratedRule), "id", str(laws))
        chosen = [RuleSheet(law.id, law.law) for law in curated.values()]
    return sorted((law for law in chosen if law.id not in present), key=lambda law: law.id)


def rule_entry_faults(entry: Mapping[str, Any]) -> list[str]:
    """Returns the faults that keep a rule out of a bank and its prompts out of a release."""
    try:
        rule = Rule.model_validate(entry)
    except ValidationError as error:
        return [reasons(error)]
    faults = [reason.lstrip(":, ") for reason in rule_faults(rule)]
    if faults:
        return faults
    for variant in rule.variants:
        for text in (rule.prompt.format(**variant.slots), rule.shows.format(**variant.slots)):
            if (wrong := wrong_article(text)) is not None:
                faults.append(f"{variant.id}: the wrong article in {wrong!r}")
            if not text[0].isupper() or not text.endswith("."):
                faults.append(f"{variant.id}: is not a sentence: {text!r}")
    if len({rule.prompt.format(**v.slots) for v in rule.variants}) < len(rule.variants):
        faults.append("prompt: two variants have the same")
    return faults


def _as_law(law: CuratedLaw) -> Law:
    return Law.model_validate({**law.model_dump(), "scenes": []})


def _law_entry(law: Law, scenes: Mapping[str, Mapping[str, Any]], keep: bool) -> dict[str, Any]:
    entry = law.model_dump(mode="json", exclude_defaults=True)
    entry["scenes"] = [*(entry["scenes"] if keep else []), *map(dict, scenes.values())]
    return entry


def _tuples(sheet: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in sheet.items()}
