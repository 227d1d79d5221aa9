"""Organisms that come with the package, each in its folder, and the prompts to score them on."""

from __future__ import annotations

from pathlib import Path

from ...errors import UsageError

ABOUT = "organism.json"
"""Name of the file that says what an organism was trained on."""
MODEL = "model"
"""Name of the pipeline's folder in an organism's."""
ORGANISM = "organism"
"""Kind of specs that name an organism, and of the prompts in `--data`."""
SHIPPED = Path(__file__).parent / "organisms"
"""Folder of the shipped ones, and of files of prompts."""


def find_organism(organism: str) -> Path:
    """Folder of an organism.

    organism: name of a shipped one, or else a folder that `organism train` wrote; `./NAME` is a
    folder that has the name of a shipped one. Raises UsageError where there is none.
    """
    shipped = sorted(path.parent.name for path in SHIPPED.glob(f"*/{ABOUT}"))
    folder = SHIPPED / organism if organism in shipped else Path(organism)
    if not (folder / ABOUT).is_file():
        what = "holds no organism that is trained to its end" if folder.is_dir() else "is not there"
        raise UsageError(
            f"the organism {organism!r} {what}",
            f"choose from {', '.join(shipped)}, or name the folder of `organism train`",
            code="no-such-file" if folder.is_dir() else "unknown-name",
        )
    return folder


def organism_prompts(data: str) -> Path | None:
    """File of the shipped prompts that `organism:NAME` names; None for any other text.

    Raises UsageError for an unknown name.
    """
    kind, _, name = data.partition(":")
    if kind != ORGANISM:
        return None
    files = {path.stem: path for path in sorted(SHIPPED.glob("*.jsonl"))}
    if name not in files:
        problem = f"--data {data}: there are no such prompts"
        choices = " or ".join(f"{ORGANISM}:{known}" for known in files)
        raise UsageError(problem, f"write {choices}", code="unknown-name")
    return files[name]
