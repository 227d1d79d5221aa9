"""The judges' prompts: one text file each, versioned by its bytes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Template


@dataclass(frozen=True)
class Prompt:
    """One prompt file."""

    name: str
    """File name without its ending, e.g. `order`."""
    text: str
    """Template with $placeholders."""

    @property
    def version(self) -> str:
        """First 12 hexadecimal digits of the text's SHA-256; part of every record."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]

    @property
    def scaled(self) -> Prompt:
        """The same question with a number from 0 to 10 as its answer: the file `scale` in place of
        the answers and all that follows them."""
        question, _, _ = self.text.partition("$answers")
        return Prompt(f"{self.name}_scale", question + read_prompt("scale").text)

    def fill(self, **values: str) -> str:
        """The prompt with every placeholder filled. Raises KeyError where one has no value."""
        return Template(self.text).substitute(values).strip() + "\n"


@cache
def read_prompt(name: str) -> Prompt:
    """A prompt of this folder. Raises FileNotFoundError for an unknown name."""
    text = resources.files(__package__).joinpath(f"{name}.md").read_text("utf-8")
    return Prompt(name, text)
