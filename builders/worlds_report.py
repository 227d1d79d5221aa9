"""Progress and faults of the second edition of the altered worlds, file by file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from ..errors import DataError, UsageError
from ..parsing import read_yaml
from ..schema import Phrasing
from .bank import BankError, read_entries, reasons
from .clip import clip_length
from .counterfactual import CounterfactualScene, Law, read_laws
from .likeness import nearest
from .worlds import (
    FOLDER,
    KEYED,
    PHRASINGS,
    ControlLaw,
    WorldEntry,
    controls_by_id,
    draw_control,
    entry_faults,
    premise,
    question_faults,
    shortened,
    time_clause,
)

CONTROLS = "controls.yaml"


class WorldFault(NamedTuple):
    """Fault of one entry, or of a text that it uses."""

    file: str
    """Bank file, relative to the bank."""
    group: str
    """Id of the group; empty for the whole file."""
    field: str
    """Field of the entry or scene, or level of the prompt; may be empty."""
    message: str
    """Description of the fault."""


class AlikeGroups(NamedTuple):
    """Two groups that may be one."""

    first: str
    """Id of a group."""
    second: str
    """Id of the other."""
    likeness: float
    """Likeness of their content words, in [0, 1]."""
    first_text: str
    """Scene and outcome."""
    second_text: str
    """Scene and outcome."""


@dataclass
class WorldsFile:
    """Entries for the groups of one file of `counterfactual/`."""

    stem: str
    """Name of the file without suffix."""
    groups: dict[str, tuple[Law, CounterfactualScene]]
    """Law and scene by group, without retired ones, in the order of the bank."""
    entries: dict[str, WorldEntry] = field(default_factory=dict)
    """Entries by group that have the right shape."""
    faults: list[WorldFault] = field(default_factory=list)
    """In the order of the file."""

    @property
    def depths(self) -> dict[int, int]:
        """Entries of depth 0, 1 and 2 or more."""
        counts = Counter(min(entry.depth, 2) for entry in self.entries.values())
        return {depth: counts[depth] for depth in (0, 1, 2)}

    @property
    def marked(self) -> dict[str, int]:
        """How many of the filled groups have each of these."""
        entries = self.entries.values()
        return {
            "naive": sum(entry.naive_outcome for entry in entries),
            "timed": sum(
                time_clause(shortened(*self.groups[name], entry.short)[1].scene)
                for name, entry in self.entries.items()
            ),
            "short": sum(entry.short is not None for entry in entries),
            "described": sum(entry.described is not None for entry in entries),
        }


def read_controls(bank: Path, laws: Mapping[str, list[Law]]) -> dict[str, Law]:
    """The laws that may be controls, by id. Raises BankError."""
    path = bank / CONTROLS
    try:
        return controls_by_id(
            read_entries(path, ControlLaw), (law for some in laws.values() for law in some)
        )
    except KeyError as error:
        raise BankError(
            f"{path}: law {error} is in no file of counterfactual/", code="unknown-reference"
        ) from None


def worlds_files(bank: Path, stems: tuple[str, ...] = ()) -> list[WorldsFile]:
    """Every file of the bank, or those named, with the entries that are there and their faults.

    Raises BankError for a bank of laws that can't be used, UsageError for an unknown file.
    """
    laws = read_laws(bank)
    if unknown := set(stems) - set(laws):
        raise UsageError(
            f"no file {sorted(unknown)[0]!r}: choose from {', '.join(laws)}", code="unknown-name"
        )
    controls = read_controls(bank, laws)
    files = []
    for stem, some in laws.items():
        if stems and stem not in stems:
            continue
        file = WorldsFile(stem, {s.id: (law, s) for law in some for s in law.scenes})
        for fault in _read(file, bank / FOLDER / f"{stem}.yaml", controls):
            file.faults.append(fault)
        retired = [name for name, (_, s) in file.groups.items() if s.status == "retired"]
        for name in retired:
            del file.groups[name]
            file.entries.pop(name, None)
        files.append(file)
    for path in sorted((bank / FOLDER).glob("*.yaml")):
        if path.stem not in laws:
            raise BankError(
                f"{path}: no file counterfactual/{path.name}; rename it", code="no-such-file"
            )
    return files


def sheets(bank: Path, stems: tuple[str, ...] = ()) -> str:
    """YAML to fill in for the groups without an entry, with their texts as comments."""
    controls = read_controls(bank, read_laws(bank))
    lines: list[str] = []
    for file in worlds_files(bank, stems):
        uses = Counter(dict.fromkeys(PHRASINGS, 0))
        uses.update(entry.phrasing for entry in file.entries.values())
        for name, (law, scene) in file.groups.items():
            if name in file.entries:
                continue
            phrasing = min(PHRASINGS, key=uses.__getitem__)  # the rarest of the file
            uses[phrasing] += 1
            lines += _sheet(law, scene, draw_control(law, scene, controls), phrasing)
    return "\n".join(lines)


def _sheet(law: Law, scene: CounterfactualScene, control: str, phrasing: Phrasing) -> Iterator[str]:
    explicit = f"{premise(law, scene)} {scene.counterfactual}"
    yield f"# [{clip_length(explicit)} tokens] {explicit}"
    yield f"# really: {scene.factual}"
    yield from (f"# {name}: {getattr(scene, f'q_{name}').text}" for name in KEYED)
    yield from (f"# {field}: {message}" for field, message in question_faults(scene))
    yield f"- id: {scene.id}"
    yield from ('  presence: ""', "  chain:", '    - ""', f"  control: {control}")
    yield f"  phrasing: {phrasing}"
    # to decide: none is valid
    yield from ("  naive_outcome:", "  logic_kind: TODO", "  described: TODO")


def alike_groups(bank: Path, stems: tuple[str, ...], count: int) -> list[AlikeGroups]:
    """The pairs of groups most alike in scene and outcome; at least one is of a file named."""
    laws = read_laws(bank)
    scenes = {
        scene.id: (stem, scene)
        for stem, some in laws.items()
        for law in some
        for scene in law.scenes
        if scene.status != "retired"
    }
    texts = {name: f"{s.scene} {s.counterfactual}" for name, (_, s) in scenes.items()}
    pairs = nearest(texts, len(texts) ** 2)
    chosen = (p for p in pairs if not stems or {scenes[p.first][0], scenes[p.second][0]} & {*stems})
    return [
        AlikeGroups(p.first, p.second, round(p.likeness, 3), texts[p.first], texts[p.second])
        for p in islice(chosen, count)
    ]


def _read(file: WorldsFile, path: Path, controls: Mapping[str, Law]) -> Iterator[WorldFault]:
    """Fills in the entries of a file and gives their faults."""
    if not path.exists():
        return
    name = f"{FOLDER}/{path.name}"
    try:
        items = read_yaml(path)
    except DataError as error:
        raise BankError(str(error), code=error.code) from None
    if not isinstance(items, list):
        raise BankError(f"{path}: a bank file is a list of entries", code="wrong-type")
    for number, item in enumerate(items, 1):
        group = str(item.get("id", "")) if isinstance(item, dict) else ""
        try:
            entry = WorldEntry.model_validate(item)
        except ValidationError as error:
            yield WorldFault(name, group or f"entry {number}", "", reasons(error))
            continue
        if entry.id not in file.groups:
            yield WorldFault(name, group, "id", f"no group of counterfactual/{path.name}")
        elif entry.id in file.entries:
            yield WorldFault(name, group, "id", "has two entries")
        else:
            file.entries[entry.id] = entry
            for place, message in entry_faults(*file.groups[entry.id], entry, controls):
                yield WorldFault(name, group, place, message)
