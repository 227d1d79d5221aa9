"""For the site: puts the doctests of docstrings into code blocks, as Markdown needs it."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"(?:^>>> .*\n?(?:^(?!\s*$).*\n?)*)+", re.MULTILINE)


class FencedExamples(Extension):  # type: ignore[misc]  # griffe is a library of the site alone
    """Fences everything from a prompt to the next empty line."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None and ">>>" in obj.docstring.value:
            value = obj.docstring.value
            obj.docstring.value = _EXAMPLE.sub(lambda m: f"```pycon\n{m[0].rstrip()}\n```\n", value)
