"""The annotation game over the user's images, and the bank that it writes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from ...agents.caller import Caller
from ...agents.consistency.game import AnnotationGame, GameItem
from ...agents.session import Session, SessionSettings, open_session
from ...agents.verification import kappa_of
from ...errors import UsageError
from ...eval.core import Generator
from ...eval.generators import PaidByImage, open_generator
from ...eval.generators.paid import PaidGenerator
from ...progress import Progress, silent
from ...storage import write_json, write_whole
from ..consistency import FILE, LICENSE, read_consistency
from .folder import AuthoringReport, extend, refuse, report, write_queue, written_bank
from .given_images import CachedDrawer, UnusableImage, read_images

RUN = "consistency"

CALIBRATION = 10
"""Items on which the agreement of the reviewers is measured, as in ACON."""

REVIEWERS = ("reviewer", "second reviewer")

FATES = ("accepted", "screened", "recaptioned", "disputed", "discarded", "failed")


@dataclass(frozen=True)
class GameSettings:
    """The images of a game, and how it is played."""

    images: str
    """A folder of images, or a dataset."""
    drawer: str = ""
    """Spec of the generator that draws; a replay uses the recorded drawings."""
    license: str = ""
    """SPDX id of the images' license; a replay uses the recorded one."""
    limit: int | None = None
    """Images at most; None for all."""
    smallest_side: int = 512
    """Shorter side of an image at least, in pixels; ACON uses 1024."""
    tellings: int = 3
    """Captions per image and cycle at most."""
    cycles: int = 3
    """Annotations per image at most, each after reviewers rejected the one before; a replay has the
    recorded ones. ACON had 2.12 on average."""
    answerable: bool = False
    """Whether questions that the caption alone does not answer are an objection; a replay has the
    recorded choice."""
    second_reviewer: str = ""
    """Spec of a third model that reviews on its own; a replay has the recorded one."""


def author_consistency(
    session: SessionSettings,
    game: GameSettings,
    base: Path | None,
    bank: Path,
    progress: Progress = silent,
) -> AuthoringReport:
    """Plays the game and writes the accepted items with their images into a bank.

    Drawings are kept beside the ledger. Raises UsageError, BankError, LedgerError or DataError for
    what the user can mend.
    """
    refuse(base, bank)
    images, refused = read_images(game.images, game.limit, game.smallest_side)
    with open_session(session) as opened:
        drawings = session.ledger.with_name(session.ledger.name + ".drawings")
        table = _seated(opened, game, drawings)
        played = AnnotationGame(
            table.author,
            table.partner,
            table.drawer,
            tellings=game.tellings,
            second=table.second,
            cycles=_recorded_cycles(opened) if session.replay else game.cycles,
            answerable=table.answerable,
        )
        items = played.run(images, progress)
        with written_bank(base, bank, without="consistency") as folder:
            _write(folder, items, refused, table)
        fates = Counter(str(item.fate) for item in items)
        counts = {"images": len(items), **{fate: fates[fate] for fate in FATES}}
        counts |= {"unusable": len(refused), "tellings": sum(item.tellings for item in items)}
        counts |= {"reviewed annotations": sum(len(item.reviewed) for item in items)}
        stopped = "; ".join(["the end of the images", *_summary(items)])
        return report(opened, bank, stopped, counts)


def _recorded_cycles(opened: Session) -> int:
    """Cycles of a recorded run: the last of which it has a call."""
    matches = (re.search(r"/cycle(\d+)/", record.id) for record in opened.ledger.records())
    return max((int(match[1]) for match in matches if match), default=1)


def _summary(items: list[GameItem]) -> Iterator[str]:
    """What became of the annotations, and how far the reviewers agree."""
    reviewed = [item for item in items if item.reviewed]
    if not reviewed:
        yield "no annotation was reviewed"
        return
    annotations = sum(len(item.reviewed) for item in reviewed)
    kept = sum(item.fate in ("accepted", "disputed") for item in reviewed)
    discarded = annotations - kept
    share = f"{discarded / annotations:.1%}"
    yield f"{discarded} of {annotations} reviewed annotations discarded ({share})"
    yield f"{annotations / len(reviewed):.2f} cycles per reviewed image"
    calibration = _calibration(items)
    if calibration["items"]:
        kappas = (
            f"{name} {'undefined' if value is None else f'{value:.2f}'}"
            for name, value in calibration["kappa"].items()
        )
        yield f"kappa of the first {calibration['items']}: {', '.join(kappas)}"


def _calibration(items: list[GameItem]) -> dict[str, Any]:
    """Cohen's kappa of each reviewer with the key, and of both, over the first annotations of the
    first items: ACON's reviewers calibrated on ten. None where all answers are the same."""
    first = [item.reviewed[0] for item in items if item.reviewed][:CALIBRATION]
    columns = {"key": [answer for annotation in first for answer in annotation.key]}
    for number, name in enumerate(REVIEWERS[: len(first[0].answers) if first else 0]):
        columns[name] = [answer for annotation in first for answer in annotation.answers[number]]
    kappas: dict[str, float | None] = {}
    for (a, answers_a), (b, answers_b) in combinations(columns.items(), 2):
        kappas[f"{b} and {a}"] = kappa_of(list(zip(answers_a, answers_b, strict=True)))
    return {"items": len(first), "kappa": kappas}


@dataclass(frozen=True)
class _Table:
    """Players of a game, and the license of its images."""

    author: Caller
    partner: Caller
    drawer: CachedDrawer
    license: str
    second: Caller | None = None
    answerable: bool = False


def _seated(opened: Session, game: GameSettings, drawings: Path) -> _Table:
    """Both models and the drawer; in a replay, those of the recorded run."""
    if opened.settings.replay:
        recorded = opened.ledger.inputs(RUN)
        author, partner = (opened.recorded(recorded[seat]) for seat in ("author", "other"))
        drawer = CachedDrawer(None, recorded["drawer"], drawings)
        third = opened.recorded(recorded["second"]) if "second" in recorded else None
        answerable = recorded.get("answerable", False)
        return _Table(author, partner, drawer, recorded["license"], third, answerable)
    if not re.fullmatch(LICENSE, game.license):
        raise UsageError(
            f"{game.license!r} is not an SPDX id: name the license of the images, e.g. "
            "--license CC-BY-4.0; it says how they may be released",
            code="bad-option",
        )
    if not game.drawer:
        raise UsageError(
            "name a --drawer that can draw what images show, e.g. diffusers:REPO",
            code="missing-option",
        )
    generator: Generator = open_generator(game.drawer)
    if isinstance(generator, PaidByImage):
        generator = PaidGenerator(generator, opened.budget)
    author, partner = opened.author(), opened.reviewer("")
    identity = json.dumps(generator.identity(), sort_keys=True)
    second = opened.further(game.second_reviewer) if game.second_reviewer else None
    models = {"author": author.identity, "other": partner.identity}
    models |= {"second": second.identity} if second else {}
    choice = {"answerable": True} if game.answerable else {}
    opened.ledger.bind(RUN, {**models, "drawer": identity, "license": game.license, **choice})
    drawer = CachedDrawer(generator, identity, drawings)
    return _Table(author, partner, drawer, game.license, second, game.answerable)


def _write(
    folder: Path, items: list[GameItem], refused: list[UnusableImage], table: _Table
) -> None:
    accepted = [item for item in items if item.fate == "accepted"]
    for item in accepted:
        write_whole(folder / "consistency" / _image(item), item.image.data)
    if accepted:
        extend(folder / FILE, [_entry(item, table) for item in accepted])
        read_consistency(folder)
    if disputed := [item for item in items if item.fate == "disputed"]:
        queue = [{"why": item.why, **_entry(item, table)} for item in disputed]
        write_queue(folder / "review" / "consistency.yaml", queue)
        for item in disputed:
            write_whole(folder / "review" / _image(item), item.image.data)
    archive = {
        "images": list(map(_fate, items)),
        "unusable": [asdict(each) for each in refused],
        "calibration": _calibration(items),
    }
    write_json(folder / "archive" / "consistency.json", archive)


def _fate(item: GameItem) -> dict[str, Any]:
    """The item as the archive keeps it."""
    return {
        "image": item.image.name,
        "sha256": item.image.sha256,
        "fate": item.fate,
        "why": item.why,
        "tellings": item.tellings,
        "cycles": item.cycle,
        "objections": [list(annotation.objections) for annotation in item.reviewed],
        "caption": item.caption,
        "calls": item.calls,
    }


def _image(item: GameItem) -> str:
    return f"images/{item.image.sha256[:16]}.png"


def _entry(item: GameItem, table: _Table) -> dict[str, Any]:
    assert item.comparison is not None
    author, partner = table.author, table.partner
    ten = [*item.comparison.similarities, *item.comparison.differences]
    teller, judge = (partner, author) if item.teller else (author, partner)
    return {
        "id": item.image.sha256[:16],
        "source": item.image.name,
        "image": _image(item),
        "license": table.license,
        "caption": item.caption,
        "questions": [question.model_dump() for question in ten],
        "edits": [edit.model_dump() for edit in item.comparison.edits],
        "written_by": [teller.author, author.author, author.author],
        "checked_by": [judge.author, partner.author, partner.author],
        "review": ["reviewer-model"] * (1 if table.second is None else 2),
        "calls": list(item.calls),
    }
