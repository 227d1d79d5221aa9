"""Removes what must not leave this machine: its paths, keys, and credentials in addresses."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...specs import HIDDEN, without_secrets

LEAST = 8
"""Characters of a variable's value below which it is no key."""

SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)S?$", re.IGNORECASE)
"""Names of variables whose value is a key."""
_CREDENTIALS = re.compile(r"://[^/\s@'\"]+@")
_SETTING = re.compile(
    r"((?:^|[\s,{])['\"]?[\w-]*(?:api[_-]?key|token|secret|password)['\"]?\s*[:=]\s*)"
    r"(?!\s*(?:null|~|\d{1,7}\s*$))['\"]?[^\s,'\"}#]{8,}['\"]?",
    re.IGNORECASE | re.MULTILINE,
)
_KEY = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[\w-]{16,}|AIza[\w-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|xox[abprs]-[\w-]{10,}|AKIA[A-Z0-9]{12,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)
_PATH = re.compile(
    r"(?<![\w./~@%\]<)-])(?:file://)?(?:~[\w.-]*/|[A-Za-z]:\\|/(?!/))"
    r"(?:[^\s/\\'\"<>|:;,?&]+[/\\])*(?=[A-Za-z_.])"
)
"""All of an absolute path but its last part; addresses and fractions are none."""


class Scrubber:
    """Takes out of texts what must not leave this machine.

    >>> scrubber = Scrubber([], {})
    >>> scrubber.text("diffusers:/data/models/flux?steps=4 at http://me:pw@host:80/v1?api_key=abc")
    'diffusers:flux?steps=4 at http://host:80/v1?api_key=[hidden]'
    """

    def __init__(
        self, folders: Iterable[Path] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        """folders: folders of the runs. environment: variables with keys; None: this process's."""
        variables = os.environ if environment is None else environment
        places = [*folders, Path.cwd(), Path.home(), Path(tempfile.gettempdir())]
        paths = {str(p) for place in places for p in (place.absolute(), place.resolve())}
        self._places = sorted((p for p in paths if p != "/"), key=len, reverse=True)
        self._keys = sorted(
            {v for n, v in variables.items() if SECRET_NAME.search(n) and len(v) >= LEAST},
            key=len,
            reverse=True,
        )
        self._place = _any_of(self._places, r"(?=[/\\\s'\",;:)\]]|$)")
        self._secret = _any_of(self._keys, "")

    def text(self, text: str) -> str:
        """Returns a program's text with paths cut to their last part, without keys and credentials.

        For specs, settings, error messages and study files.
        """
        text = _PATH.sub("", _CREDENTIALS.sub("://", text))
        text = _SETTING.sub(rf"\1{HIDDEN}", without_secrets(text))
        return self.answer(text)

    def answer(self, text: str) -> str:
        """Returns a model's answer without keys and folders of this machine."""
        text = _KEY.sub(HIDDEN, text)
        if self._secret:
            text = self._secret.sub(HIDDEN, text)
        return self._place.sub(lambda match: match[0].rpartition("/")[2], text)

    def page(self, text: str) -> str:
        """Returns a page of HTML without keys, credentials and folders of this machine.

        Paths of other machines stay: markup looks like them.
        """
        return self.answer(_CREDENTIALS.sub("://", text))

    def value(self, value: Any) -> Any:
        """Scrubs every text in plain values but the keys of mappings."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self.value(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        return value

    def leak(self, data: bytes) -> str:
        """Describes a secret in the bytes without showing it; empty if there is none."""
        for kind, needles in (("a key", self._keys), ("a folder of this machine", self._places)):
            for needle in needles:
                # A short folder such as /tmp is in many texts: only a path below it is a secret.
                if (needle if kind == "a key" else f"{needle}/").encode() in data:
                    return kind
        try:
            text = data.decode()
        except UnicodeDecodeError:  # an image, whose bytes look like a key by chance if it is large
            text = data.decode("latin-1") if len(data) < 1 << 16 else ""
        return "a key" if _KEY.search(text) else ""


def _any_of(texts: list[str], end: str) -> re.Pattern[str]:
    """Returns a pattern that matches any of the texts; nothing if there are none."""
    return re.compile(f"(?:{'|'.join(map(re.escape, texts))}){end}" if texts else r"(?!)")
