"""Reads a file of prompts, extracts their relations and writes them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from ..errors import DataError
from ..progress import Progress
from ..storage import write_whole
from .relations import EXTRACTOR, READER, Extracted, agreement, extract
from .session import SessionSettings, open_session


def extract_file(
    session: SessionSettings, prompts: Path, out: Path, progress: Progress, conveyed: bool = False
) -> str:
    """Writes one JSON line per distinct prompt to `out`; returns how far both agree, as JSON.

    conveyed: whether the model also lists relations that no word of place states. Raises DataError
    for a file that can't be read.
    """
    with open_session(session) as opened:
        role = READER if conveyed else EXTRACTOR
        results = extract(opened.author(role.name), read_prompts(prompts), progress, role)
    write_whole(out, "".join(_line(result) for result in results))
    agreement_result = agreement(results)
    return json.dumps(
        {
            **asdict(agreement_result),
            "f1": None if agreement_result.f1 is None else round(agreement_result.f1, 3),
        }
    )


def read_prompts(path: Path) -> list[tuple[str, str]]:
    """Id (a hash of the text) and text of every distinct line that is not blank."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{path}: no file of prompts ({error})", code="no-such-file") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8: save it as UTF-8", code="bad-encoding") from None
    texts = dict.fromkeys(line.strip() for line in lines if line.strip())
    return [(hashlib.sha256(text.encode()).hexdigest()[:12], text) for text in texts]


def _line(result: Extracted) -> str:
    model = result.by_model
    record = {
        "id": result.id,
        "prompt": result.prompt,
        "by_rules": [relation.model_dump() for relation in result.by_rules],
        "by_model": None if model is None else [relation.model_dump() for relation in model],
        "problem": result.problem,
    }
    return json.dumps(record, ensure_ascii=False) + "\n"
