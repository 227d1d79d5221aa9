"""Texts of strangers on their way out: to terminals, Markdown, LaTeX, CSV and pages."""

from __future__ import annotations

import io
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TextIO, cast

_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]|\r(?!\n)"
)
"""Control characters, marks that turn the direction of a text, and characters that nobody sees;
line feeds and tabs stay."""


SHOWN = 160
"""Most characters of a reason that a summary shows."""
REASONS = 3
"""Most frequent reasons that a summary shows."""


def printable(text: str) -> str:
    """A text that moves no cursor, changes no color and turns no letters: its control characters
    are shown as their escapes, as JSON writes them.

    >>> print(printable("\\x1b[31mred\\u202e"))
    \\u001b[31mred\\u202e
    """
    return _UNPRINTABLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def markdown_text(text: str) -> str:
    """A text as one line of Markdown: no column, no tag and no link.

    >>> print(markdown_text("a|b [x](javascript:1)"))
    a\\|b [x]\\(javascript:1)
    """
    plain = " ".join(printable(text).split()).replace("<", "&lt;").replace("|", "\\|")
    return re.sub(r"\](?=[(\[:])", "]\\\\", plain)


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for lone surrogates, as in an emoji that a model's answer cut in half:
    they can be neither sent nor written.

    >>> without_surrogates("so \\ud83d")
    'so \ufffd'
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shortened(text: str) -> str:
    """The beginning of somebody's text, on one line."""
    return without_surrogates(textwrap.shorten(text, SHOWN, placeholder=" ...") or "an empty text")


def reasons(texts: Mapping[str, int], of: str = "") -> Iterator[str]:
    """Yields a line for each of the `REASONS` most frequent texts of errors, and one for the rest.

    texts: text -> number of errors that have it. of: whose errors they are, as ` of the judge`.

    >>> list(reasons({"timed out": 2, "cut off": 1}))
    ['2 errors: timed out', '1 error: cut off']
    """
    common = Counter(texts).most_common()
    for text, count in common[:REASONS]:
        yield f"{count:,} error{'s' * (count > 1)}{of}: {shortened(text)}"
    if others := sum(count for _, count in common[REASONS:]):
        number = len(common) - REASONS
        yield (
            f"{others:,} error{'s' * (others > 1)}{of}: for {number:,} other "
            f"reason{'s' * (number > 1)}"
        )


class PrintableStream:
    """A stream of texts that writes nothing but `printable` ones."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        """Where the texts go, for a writer that makes its own colors."""

    def write(self, text: str) -> int:
        return self.stream.write(printable(text))

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def unwrapped(stream: TextIO) -> TextIO:
    """The stream below a `PrintableStream`; any other as it is."""
    return stream.stream if isinstance(stream, PrintableStream) else stream


def wrapped(stream: TextIO | None) -> TextIO | None:
    """A stream of `printable` texts; none stays none, as after a parent process closed it."""
    if stream is None or isinstance(stream, PrintableStream):
        return cast("TextIO | None", stream)
    if isinstance(stream, io.TextIOWrapper):  # a lone surrogate is printed as its escape
        stream.reconfigure(errors="backslashreplace")
    return cast(TextIO, PrintableStream(stream))
