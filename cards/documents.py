"""Renders the texts of a release from its manifest: one manifest always gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from string import Template
from typing import Any

import yaml

from ..builders.build_result import ContentReading, ReaderAgreement
from ..eval.publishing.card import (
    headline_cells,
    plain_cell,
    share_cell,
    size_category,
    table,
)
from ..parsing import load_yaml
from ..schema import CANARY, SPLIT, image_columns
from .citations import bibtex, cff_references, paper_links
from .croissant import render_croissant
from .manifest import ConfigManifest, Manifest

SAMPLE_COLUMNS = 3

RENDERER = "render"
"""Kind of the generator of seed images that the package draws itself."""

GIVEN = "consistency"
"""The config with user-provided images; the build makes all others."""

WITHHELD = "[withheld: it would rebuild held-out rows]"
"""Replaces the seed in the documents of a public release with a hold-out."""

PRIVATE = """> **These rows are held out of the public release and must not become public: keep this
> repository private or gated.** See "Hold-out" for the reason.

"""
"""Opens the card of a hold-out."""

CHECKED_BY = "`datasheet.md` counts what checked them; so does the column `review` of each row."
"""After the sentence on who has read the rows."""

NO_PERSON = "**No person has read drawn rows.**"

VOTED_SO = """Each reader says of a row: accept, edit or reject. A row counts as most of its readers
say, also if it has been revised since."""
"""Before the table of what people said."""

READ_SO = """Rows were drawn before anyone read them, and faults were planted among them. Each
reader read apart. A row counts if any reader objects: as serious if a number computed with it may
be wrong, else as small. Shares have Wilson's 95 % interval. The planted faults seen are the
readers' power; they are of simple kinds, so it is an upper bound. What readers objected to has been
revised since, and the shares stay as they were."""
"""Before the table of readings."""

READERS = {"reviewer-model": ("language model", "language models"), "human": ("person", "people")}
"""What readers are, of one and of several."""

BASELINES = """From published studies that ran exactly these rows. An interval is over clusters of
items that belong together. What was excluded is never counted as wrong."""
"""Opens the section."""

GATE = {
    "extra_gated_prompt": "These rows are held out of a benchmark. They are useful only as long as "
    "nobody trains on them.",
    "extra_gated_fields": {"I will not publish these rows or train on them": "checkbox"},
}
"""Questions of the Hub to anyone who requests access to a gated hold-out."""


def render_documents(manifest: Manifest) -> dict[str, str]:
    """Every text file of the release except manifest and checksums, by path."""
    values = _values(manifest)
    documents = {
        name: _template(name).substitute(values)
        for name in ("README.md", "datasheet.md", "CANARY.md", "LICENSE", "CITATION.cff")
    }
    documents["README.md"] = f"---\n{_front_matter(manifest)}---\n\n{documents['README.md']}"
    documents["CHANGELOG.md"] = _changelog(manifest)
    documents["ERRATA.md"] = _errata(manifest)
    if not manifest.private and any(c.status == "complete" for c in manifest.configs):
        documents["eval.yaml"] = _eval_yaml(manifest)
    rai = _texts("rai.yaml", **values)
    documents["croissant.json"] = render_croissant(manifest, rai)
    return documents


def _template(name: str) -> Template:
    return Template(resources.files(__package__).joinpath("templates", name).read_text("utf-8"))


def _texts(name: str, **values: str) -> dict[str, Any]:
    """The texts of a YAML template, filled in."""
    texts: dict[str, Any] = load_yaml(_template(name).substitute(values), name)
    return texts


def _values(manifest: Manifest) -> dict[str, str]:
    default = _default(manifest)
    return {
        **_user_image_texts(manifest),
        **_seeds(manifest),
        "title": _title(manifest),
        "version": manifest.version,
        "date": manifest.date,
        "tag": manifest.tag,
        "url": manifest.url,
        "repo_id": manifest.repo_id,
        "rows": count_rows(manifest),
        "config_count": str(len(manifest.configs)),
        "images": f"{sum(c.pictures for c in manifest.configs if c.name != GIVEN):,}",
        "seed": WITHHELD if manifest.seed is None else str(manifest.seed),
        "seed_images": _generator(manifest),
        "bank_sha256": manifest.bank_sha256,
        "rows_sha256": manifest.rows_sha256,
        "canary": CANARY,
        "default_config": default.name,
        "default_field": next(iter(default.example)),
        "configs": _config_table(manifest),
        "previews": _previews(manifest),
        "holdout": _holdout(manifest),
        "notice": (PRIVATE if manifest.private else "") + _people(manifest),
        "read_by": _read_by(manifest),
        "links": _links(manifest),
        "baselines": _baselines(manifest),
        "papers": paper_links(manifest),
        "bibtex": bibtex(manifest, _title(manifest)),
        "references": cff_references(manifest),
        "breakdowns": _breakdowns(manifest),
        "examples": _examples(manifest),
        "samples": _samples(manifest),
        "reviewed": _reviewed(manifest),
        "review_rounds": _review_rounds(manifest),
        "readings": _readings(manifest),
        "compositions": _compositions(manifest),
        "languages": _languages(manifest),
        **{f"made_with_{name}": version for name, version in manifest.made_with.items()},
    }


def _user_image_texts(manifest: Manifest) -> dict[str, str]:
    """Texts of the documents about user-provided images, by placeholder; empty without any."""
    images = sum(c.pictures for c in manifest.configs if c.name == GIVEN)
    texts = _texts("given_images.yaml", given=f"{images:,}")
    return {f"given_{name}": text if images else "" for name, text in texts.items()}


def _seeds(manifest: Manifest) -> dict[str, str]:
    """Texts of the documents about seed images, by placeholder."""
    from_generator = manifest.seed_images.get("kind", RENDERER) != RENDERER
    texts = _texts("seed_images.yaml", generator=_generator(manifest))
    return {
        **{
            f"seed_{name}": text
            for name, text in texts["made" if from_generator else "drawn"].items()
        },
        "seed_check": _seed_check(manifest),
    }


def _seed_check(manifest: Manifest) -> str:
    """How a judge chose the seed images, as an item of a list; empty without a judge."""
    check = manifest.seed_check
    if check is None:
        return ""
    why = ", ".join(f"{reason} {count:,}" for reason, count in check.refused.items())
    without = {c.name: c.rows - c.pictures for c in manifest.configs if _lacks_seeds(c)}
    rows = ", ".join(f"`{name}` {count:,}" for name, count in without.items())
    placeholders = {
        "judge": _identity(check.judge),
        "drawn": f"{check.drawn:,}",
        "scenes": f"{check.scenes:,}",
        "refused": why or "none",
        "none": f"{check.scenes - check.kept:,}",
        "without": rows or "none",
    }
    return _template("seed_check.md").substitute(placeholders)


def _lacks_seeds(config: ConfigManifest) -> bool:
    """Whether rows of a config of edits have no seed image."""
    return "seed_image" in image_columns(config.name) and config.pictures < config.rows


def _people(manifest: Manifest) -> str:
    """Opens the card until people have read every row."""
    read = manifest.read_by_people
    if sum(read.values()) == manifest.rows:
        return ""
    if not read:
        return f"> **No human has reviewed these rows.** {CHECKED_BY}\n\n"
    where = ", ".join(f"`{name}` {n:,}" for name, n in read.items())
    return f"> **People have reviewed {_reviewed_count(manifest)} ({where}).** {CHECKED_BY}\n\n"


def _read_by(manifest: Manifest) -> str:
    """Share of the rows that people have reviewed, as a clause."""
    count = sum(manifest.read_by_people.values())
    if not count:
        return "no human has reviewed them"
    return "people have reviewed " + (
        "all of them" if count == manifest.rows else _reviewed_count(manifest)
    )


def _reviewed_count(manifest: Manifest) -> str:
    """How many of the rows people have reviewed, those that repeat published prompts apart."""
    read, repeated = manifest.read_by_people, _repeated(manifest)
    own = sum(n for name, n in read.items() if name != REPEATED or not repeated)
    count = f"{own:,} of {manifest.rows - repeated:,} rows"
    if not repeated:
        return count
    return f"{count}, and {read.get(REPEATED, 0):,} of {repeated:,} that repeat VISOR's prompts"


def _links(manifest: Manifest) -> str:
    """The package's pages as a sentence; empty if its metadata names none."""
    if not manifest.links:
        return ""
    return " Its pages: " + ", ".join(f"[{n}]({url})" for n, url in manifest.links.items()) + "."


def _baselines(manifest: Manifest) -> str:
    """A section of the card; empty without a published study of these rows."""
    if not manifest.baselines:
        return ""
    header = ["config", "generator", "judge", "score", "value", "95 % CI", "n", "excluded", "study"]
    rows = [
        [
            f"`{baseline.config}`",
            plain_cell(baseline.generator),
            plain_cell(baseline.judge),
            *headline_cells(baseline.headline),
            f"[{baseline.study}]({hub_page(baseline.study)})",
        ]
        for baseline in manifest.baselines
    ]
    return f"\n## Baselines\n\n{BASELINES}\n\n{table(header, rows)}\n"


def hub_page(address: str) -> str:
    """The page of NAMESPACE/NAME@TAG on the Hub."""
    name, _, tag = address.partition("@")
    return f"https://huggingface.co/datasets/{name}/tree/{tag}"


def _default(manifest: Manifest) -> ConfigManifest:
    """The config that `load_dataset` returns if none is named."""
    by_name = {config.name: config for config in manifest.configs}
    return by_name.get("t2i_homogenization", manifest.configs[0])


def _title(manifest: Manifest) -> str:
    return "counterprior hold-out" if manifest.private else "counterprior"


def _generator(manifest: Manifest) -> str:
    if not manifest.seed_images:
        return "no generator (this build has none)"
    return _identity(manifest.seed_images)


def _identity(who: dict[str, str]) -> str:
    return "`" + ", ".join(f"{k}={v}" for k, v in sorted(who.items())) + "`"


def _config_table(manifest: Manifest) -> str:
    header = ["config", "rows", "of", "status", "from", "what it asks"]
    rows = [
        [f"`{c.name}`", f"{c.rows:,}", f"{c.planned:,}", c.status, c.source, c.summary]
        for c in manifest.configs
    ]
    if manifest.holdout is not None:
        header.insert(2, "public" if manifest.private else "held out")
        for c, row in zip(manifest.configs, rows, strict=True):
            row.insert(2, f"{c.elsewhere:,}")
    return table(header, rows)


def _previews(manifest: Manifest) -> str:
    previews = [c for c in manifest.configs if c.status == "preview"]
    if not previews:
        return "All configs are complete."
    lines = []
    for c in previews:
        present = f"{c.rows + c.elsewhere:,} of {c.planned:,} rows"
        if _lacks_seeds(c):
            present += f", {c.rows - c.pictures:,} of them without a seed image"
        lines.append(
            f"* `{c.name}` is a **preview**: {present}. Scores on it are not comparable with those "
            f"on the complete config."
        )
    return "\n".join(lines)


def _holdout(manifest: Manifest) -> str:
    """A section of card and datasheet; empty if nothing is held out."""
    if manifest.holdout is None:
        return ""
    text = _template("holdout_private.md" if manifest.private else "holdout.md")
    values = manifest.holdout.model_dump(exclude={"private", "fraction"})
    return text.substitute(values, share=f"{100 * manifest.holdout.fraction:g} %").rstrip("\n")


def _breakdowns(manifest: Manifest) -> str:
    return table(
        ["config", "by", "rows"],
        [
            [f"`{c.name}`", column, ", ".join(f"{value} {n:,}" for value, n in counts.items())]
            for c in manifest.configs
            for column, counts in c.breakdown.items()
        ],
    )


def _examples(manifest: Manifest) -> str:
    return "\n".join(
        f"* `{c.name}`: " + " · ".join(f"{name}: “{text}”" for name, text in c.example.items())
        for c in manifest.configs
    )


def _samples(manifest: Manifest) -> str:
    if not manifest.samples:
        return "*This build has no seed images.*"
    lines = []
    for start in range(0, len(manifest.samples), SAMPLE_COLUMNS):
        samples = manifest.samples[start : start + SAMPLE_COLUMNS]
        images = [f"![seed image]({sample.file})" for sample in samples]
        captions = [f"*{sample.caption}*" for sample in samples]
        lines += [images, captions] if start else [images, ["---"] * len(samples), captions]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _reviewed(manifest: Manifest) -> str:
    return table(
        ["config", "checked by"],
        [
            [f"`{c.name}`", ", ".join(f"{who} {n:,}" for who, n in c.reviewed.items())]
            for c in manifest.configs
        ],
    )


def _compositions(manifest: Manifest) -> str:
    tables = []
    for c in manifest.configs:
        if c.composition is None:
            continue
        columns = list(c.tabulated["all"])
        lines = [
            [name, *(f"{counts[column]:,}" for column in columns)]
            for name, counts in c.tabulated.items()
        ]
        tables.append(f"`{c.name}`:\n\n" + table([c.composition.by, *columns], lines))
    return "\n\n".join(tables)


REPEATED = "spatial_visor"
"""Config with another project's prompts, so many that a total without it says more."""


def _repeated(manifest: Manifest) -> int:
    """Rows that repeat published prompts, to be counted apart; 0 if there are no others."""
    repeated = sum(config.rows for config in manifest.configs if config.name == REPEATED)
    return repeated if repeated < manifest.rows else 0


def count_rows(manifest: Manifest) -> str:
    """The number of rows, with those that repeat published prompts counted apart."""
    repeated = _repeated(manifest)
    own = f"{manifest.rows - repeated:,} rows"
    return f"{own}, and {repeated:,} that repeat the prompts of VISOR" if repeated else own


def _review_rounds(manifest: Manifest) -> str:
    rounds = []
    for r in manifest.reviews:
        rounds.append([r.content, r.by, f"{r.read:,}", f"{r.mended:,}", f"{r.dropped:,}"])
    return table(["content", "reviewed by", "read", "revised after it", "dropped after it"], rounds)


def readings_table(readings: Iterable[ContentReading]) -> str:
    """One line for each reading: shares with Wilson's 95 % interval, and the readers' power."""
    header = ["config", "language", "rows read", "serious", "small", "planted faults seen"]
    lines = [
        [
            f"`{r.config}`",
            r.language,
            f"{r.read:,}",
            share_cell(r.serious, r.read),
            share_cell(r.small, r.read),
            f"{r.seen} of {r.planted}: {share_cell(r.seen, r.planted)}"
            if r.planted
            else "none planted",
            f"{r.readers} {READERS[r.by][r.readers > 1]}",
            r.date,
        ]
        for r in readings
    ]
    return table([*header, "readers", "date"], lines)


def _readings(manifest: Manifest) -> str:
    """What readers objected to, people named first, and which configs nobody has read so."""
    people = sum(r.by == "human" for r in manifest.readings)
    first = f"People made {people} of these readings." if people else NO_PERSON
    read = {r.config for r in manifest.readings}
    others = [f"`{c.name}`" for c in manifest.configs if c.name not in read]
    votes = _votes(manifest)
    if votes:
        first = f"{votes}\n\nPeople made {people} of the following readings."
    unread = f"Not read so: {', '.join(others)}." if others else "Every config has been read so."
    if not read:
        return votes or f"{NO_PERSON} {unread}"
    return f"{first} {READ_SO}\n\n{readings_table(manifest.readings)}\n\n{unread}"


def _votes(manifest: Manifest) -> str:
    """What people said of rows, and how far every two of them agree; empty without a vote."""
    people = manifest.people
    if people is None:
        return ""
    total = sum(count.rows for count in people.counts)
    counts = table(
        ["config", "rows read", "accept", "edit", "reject", "evenly split"],
        [
            [f"`{c.config}`", *(f"{n:,}" for n in (c.rows, c.accept, c.edit, c.reject, c.split))]
            for c in people.counts
        ],
    )
    parts = [f"**People read {total:,} rows.** {VOTED_SO}", counts]
    if people.agreement:
        header = ["readers", "rows that both read", "same decision", "Cohen's kappa, 95 % CI"]
        pairs = [
            [f"{a.first} and {a.second}", f"{a.rows:,}", f"{a.equal:,}", _kappa_cell(a)]
            for a in people.agreement
        ]
        parts.append(table(header, pairs))
    return "\n\n".join(parts)


def _kappa_cell(agreement: ReaderAgreement) -> str:
    if agreement.kappa is None:
        return "undefined: both say one thing throughout"
    return f"{agreement.kappa:.2f} [{agreement.low:.2f}, {agreement.high:.2f}]"


def _languages(manifest: Manifest) -> str:
    """Languages of the texts, as part of a sentence."""
    multilingual = [c.name for c in manifest.configs if len(c.breakdown.get("language", {})) > 1]
    return f"English, except in {', '.join(multilingual)}" if multilingual else "English only"


def _errata(manifest: Manifest) -> str:
    head = (
        "# Errata\n\n"
        "Ids never change. A retired row stays but is no longer scored; a removed row is gone.\n\n"
    )
    if not manifest.errata:
        return head + "None so far.\n"
    rows = [
        [f"`{e.config}`", e.version, e.row and f"`{e.row}`", e.entry, e.status, e.reason]
        for e in manifest.errata
    ]
    return head + table(["config", "since", "row", "entry", "status", "why"], rows) + "\n"


def _changelog(manifest: Manifest) -> str:
    sections = ["# Changelog\n"]
    for change in manifest.changes:
        notes = "".join(f"* {note}\n" for note in change.notes)
        sections.append(f"## {change.version} ({change.date})\n\n{notes}")
    return "\n".join(sections)


def _eval_yaml(manifest: Manifest) -> str:
    """Registers the repository as a benchmark on the Hub (Hub docs, evaluation results).

    Leaves out the optional `evaluation_framework`: the Hub accepts a fixed list of names and may
    refuse a push that gives another.
    """
    return yaml.safe_dump(
        {
            "name": "counterprior",
            "description": "Does an image generator follow the prompt, or its prior?",
            "tasks": [
                {"id": c.name, "config": c.name, "split": SPLIT}
                for c in manifest.configs
                if c.status == "complete"
            ],
        },
        sort_keys=False,
        allow_unicode=True,
    )


def _front_matter(manifest: Manifest) -> str:
    """What the Hub reads of the card, in YAML.

    Has no `dataset_info`: the footers of the parquet files hold the features, and `load_dataset`
    with `filters=` fails where a card states numbers of rows.
    """
    default = _default(manifest)
    licenses = sorted(
        {license_id.lower() for c in manifest.configs for license_id in c.license.split(" AND ")}
    )
    data = {
        "pretty_name": _title(manifest),
        "language": manifest.languages,
        "license": licenses,
        "task_categories": ["text-to-image", "image-to-image"],
        "tags": ["benchmark", "bias", "spatial-reasoning", "counterfactual", "synthetic"],
        "size_categories": [size_category(manifest.rows)],
        "annotations_creators": ["machine-generated"],
        "source_datasets": ["original"],
        "configs": [_config_yaml(c, manifest, c is default) for c in manifest.configs],
        **(GATE if manifest.private else {}),
    }
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)


def _config_yaml(config: ConfigManifest, manifest: Manifest, default: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "config_name": config.name,
        "data_files": [{"split": SPLIT, "path": config.file}],
        # `datasets` keys its cache of a local folder on this YAML, not on the data; the digest
        # makes the key change with the rows.
        "version": manifest.version,
        "description": f"rows sha256 {config.rows_sha256}",
    }
    return entry | ({"default": True} if default else {})
