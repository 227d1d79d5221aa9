"""What was computed and is kept in the user's cache, for later commands to take.

Nothing needs it: without it, computing only takes longer.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

CACHE = "COUNTERPRIOR_CACHE"
"""Environment variable with the folder of what is kept; `~/.cache/counterprior` without it."""
UNUSED_DAYS = 30
"""Days after which what another version of the code made is deleted."""

_VERSION = re.compile("[0-9a-f]{16}")
_DIGEST = hashlib.sha256().digest_size


class Kept:
    """A folder of what one version of the code computed on one kind of machine, by name.

    Each lies there with a digest over its name and its bytes: a file that was cut off, changed or
    renamed is deleted, as if it had never been there. A folder that others may write is not used.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._usable = self._prepare()

    def get(self, name: str) -> bytes | None:
        """What was kept under a name; None where there is nothing, or a damaged file."""
        path = self._path(name)
        try:
            data = path.read_bytes() if self._usable else b""
        except OSError:
            return None
        if data and data[:_DIGEST] == _sealed(name, data[_DIGEST:]):
            return data[_DIGEST:]
        with suppress(OSError):
            if data:
                path.unlink(missing_ok=True)
        return None

    def put(self, name: str, data: bytes) -> None:
        """Keeps bytes under a name; a full or read-only disk keeps none, and harms nothing."""
        path = self._path(name)
        partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
        try:
            if self._usable:
                path.parent.mkdir(mode=0o700, exist_ok=True)
                partial.write_bytes(_sealed(name, data) + data)
                partial.replace(path)
        except OSError:
            self._usable = False
            with suppress(OSError):
                partial.unlink(missing_ok=True)

    def clear(self) -> None:
        """Deletes all of it."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._usable = self._prepare()

    def _prepare(self) -> bool:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.utime(self._folder)
            for other in self._folder.parent.iterdir():
                unused = time.time() - other.stat().st_mtime > UNUSED_DAYS * 86_400
                if unused and _VERSION.fullmatch(other.name):  # others are not ours to delete
                    shutil.rmtree(other, ignore_errors=True)
            owned = self._folder.stat()
        except OSError:
            return False
        shared = stat.S_IMODE(owned.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
        return owned.st_uid == os.getuid() and not shared

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / name


def _sealed(name: str, data: bytes) -> bytes:
    return hashlib.sha256(name.encode() + data).digest()


def kept_for(kind: str, code: str) -> Kept:
    """What this user keeps of a kind; code: digest of all that makes it, see `digest_of_code`."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(os.environ.get(CACHE) or Path(caches) / "counterprior")
    return Kept(folder / kind / code[:16])


def digest_of_code(patterns: Iterable[str], versions: Iterable[str]) -> str:
    """SHA-256 over files of this package, all of a folder, and versions of what they use."""
    package, digest = Path(__file__).parent, hashlib.sha256()
    for pattern in patterns:
        for place in sorted(package.glob(pattern)):
            for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
                if path.is_file() and path.suffix != ".pyc":
                    digest.update(f"{path.relative_to(package).as_posix()}\0".encode())
                    digest.update(hashlib.sha256(path.read_bytes()).digest())
    digest.update("\n".join(versions).encode())
    return digest.hexdigest()
