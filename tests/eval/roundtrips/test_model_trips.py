"""Real pipelines and servers on loopback in round trips: from images to the table, and again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trip_doubles as doubles

from counterprior.eval.engine.data import Rows
from counterprior.eval.studies import runner as studies
from counterprior.eval.studies.formats import format_table
from counterprior.eval.studies.recipes import find_layout
from counterprior.eval.studies.runner import run_study
from counterprior.eval.studies.table import study_table

SMALL = "device=cpu&steps=1&height=64&width=64"
KONTEXT = f"{SMALL}&max_sequence_length=64&max_area=4096&_auto_resize=false"


def answer(body: dict[str, Any]) -> str:
    """A caption for who describes, and a digit for who judges."""
    asked = str(body["messages"])
    if "Write one digit" in asked:
        return "1"
    return "A strip of cells, " + ("red and green." if "instruction" in asked else "red and blue.")


@pytest.mark.lane
def test_tiny_models_end_in_the_paper_s_table_killed_and_resumed(
    server: Any,
    checkpoint: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(studies, "read_rows", lambda *_: Rows.of(doubles.rows(2)))
    server.answer = answer
    chat = server.spec("openai")
    study = {
        "data": "the world",
        "suites": {"consistency": {}},
        "captioners": {"LLaVA": chat.replace("m-1", "llava")},
        "generators": {"Flux": f"diffusers:{checkpoint('sd15')}?{SMALL}"},
        "any_to_any": {"Chameleon": chat.replace("openai:m-1", "chat-image:chameleon")},
        "editors": {
            "image": f"diffusers:{checkpoint('flux-kontext')}?{KONTEXT}",
            "text": chat.replace("m-1", "editor"),
        },
        "judges": {"PaliGemma2": chat.replace("m-1", "looks")},
        "text_judges": {"Qwen2.5": chat.replace("m-1", "reads")},
    }
    # The any-to-any model draws nothing here: its texts stand, and its images are said to fail.
    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path, progress=stopping(30))
    done = run_study(study, tmp_path)
    assert not [f for f in done.failures if "Chameleon" not in f.cell.generator], done.failures
    sent = Counter(str(asked.body) for asked in server.asked if "captioner" not in str(asked.body))
    texts = [body for body in sent if re.search("describes the edited image|Describe this", body)]
    assert texts and all(sent[body] == 1 for body in texts)
    paid = len(server.asked)
    again = run_study(study, tmp_path)
    drawn = [a for a in server.asked[paid:] if "modalities" not in str(a.body)]
    assert not [a for a in drawn if a.body], "everything else was known"
    table = study_table(again.study, find_layout("acon-1"))
    shown = {line.name: line.cells for line in table.lines}
    cell = shown["image: LLaVA to Flux"][0]
    assert cell.score is not None and cell.score.n == 20 and cell.paper == 61.78
    assert format_table(table, "md")


def stopping(at: int) -> Callable[[str, int, int], None]:
    """A progress that is interrupted."""
    seen = Counter[str]()

    def progress(stage: str, done: int, total: int) -> None:
        seen["all"] += 1
        if seen["all"] == at:
            raise KeyboardInterrupt

    return progress
