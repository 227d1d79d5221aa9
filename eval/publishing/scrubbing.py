"""What must not leave this machine: its paths, keys, and credentials in addresses."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HIDDEN = "[hidden]"
"""In place of a key."""
LEAST = 8
"""Characters of a variable's value below which it is no key."""

SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)S?$", re.IGNORECASE)
"""Names of variables whose value is a key."""
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@'\"]+@")
_PARAMETER = re.compile(
    r"([?&;](?:[\w.-]*(?:key|token|secret|signature|password|credential|auth)|sig)=)[^&\s'\"#]+",
    re.IGNORECASE,
)
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
        """folders: where the runs lie. environment: variables with keys; None: this process's."""
        variables = os.environ if environment is None else environment
        places = [*folders, Path.cwd(), Path.home(), Path(tempfile.gettempdir())]
        found = {str(p) for place in places for p in (place.absolute(), place.resolve())}
        self._places = sorted((p for p in found if p != "/"), key=len, reverse=True)
        self._keys = sorted(
            {v for n, v in variables.items() if SECRET_NAME.search(n) and len(v) >= LEAST},
            key=len,
            reverse=True,
        )
        self._place = _any_of(self._places, r"(?=[/\\\s'\",;:)\]]|$)")
        self._secret = _any_of(self._keys, "")

    def text(self, text: str) -> str:
        """The text with paths cut to their last part, and without keys and credentials.

        For what a program wrote: specs, settings, error messages, a study file.
        """
        text = _PATH.sub("", _CREDENTIALS.sub("", text))
        text = _SETTING.sub(rf"\1{HIDDEN}", _PARAMETER.sub(rf"\1{HIDDEN}", text))
        return self.answer(text)

    def answer(self, text: str) -> str:
        """A model's answer without keys and folders of this machine, otherwise as it is."""
        text = _KEY.sub(HIDDEN, text)
        if self._secret:
            text = self._secret.sub(HIDDEN, text)
        return self._place.sub(lambda found: found[0].rpartition("/")[2], text)

    def page(self, text: str) -> str:
        """A page of HTML without keys, credentials and folders of this machine; paths of another
        one stay, as markup can't be told from them."""
        return self.answer(_CREDENTIALS.sub("", text))

    def value(self, value: Any) -> Any:
        """Plain values with every text in them scrubbed, the keys of mappings left."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self.value(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        return value

    def leak(self, data: bytes) -> str:
        """What bytes hold that must not leave: in words, without the thing; empty if nothing."""
        for kind, needles in (("a key", self._keys), ("a folder of this machine", self._places)):
            for needle in needles:
                # A short folder such as /tmp is in many texts: only a path below it tells anything.
                if (needle if kind == "a key" else f"{needle}/").encode() in data:
                    return kind
        found = _KEY.search(data.decode("latin-1")) if len(data) < 1 << 16 else None
        return "a key" if found else ""


def _any_of(texts: list[str], end: str) -> re.Pattern[str]:
    """A pattern of any of the texts; of nothing where there are none."""
    return re.compile(f"(?:{'|'.join(map(re.escape, texts))}){end}" if texts else r"(?!)")
