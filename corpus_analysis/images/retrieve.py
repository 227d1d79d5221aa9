"""All pictures of a run: fetched once an address, noted as they come, resumed after any end."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ...progress import Progress
from ...storage import RecordLog, read_records
from .fetch import Fetched, Fetcher, FetchSettings

LOG = "fetched.jsonl"
"""One record an address."""

FAILURES_WARN = 0.5
"""Share of failed downloads from which a run says that something may be wrong with it."""


@dataclass(frozen=True)
class Retrieved:
    """What a run has fetched."""

    records: dict[str, dict[str, Any]]
    """Key of an address -> its record."""
    folder: Path
    """Where the pictures are."""

    def picture(self, key: str) -> Path:
        return picture_path(self.folder, key)

    def reasons(self) -> dict[str, int]:
        """How many addresses ended how, the most frequent first."""
        counts = Counter(record["reason"] for record in self.records.values())
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def failed_share(self) -> float:
        """Share of addresses that could not be downloaded, in [0, 1]."""
        failed = sum(r["status"] == "failed_to_download" for r in self.records.values())
        return failed / len(self.records) if self.records else 0.0


def url_key(url: str) -> str:
    """16 hex digits of the address' SHA-256: name of its picture and its record."""
    return hashlib.sha256(url.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def picture_path(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}.jpg"


def retrieve(
    urls: Iterable[str],
    folder: Path,
    settings: FetchSettings,
    threads: int,
    progress: Progress,
    fetcher: Fetcher | None = None,
) -> Retrieved:
    """Fetches every address that has no record yet; the folder holds pictures and records.

    An address that occurs twice is fetched once. What failed stays failed: delete its line in the
    log to try it again. Pictures are stored before they are noted, so a picture that is noted is
    whole.
    """
    # By key, so that neighbours in a corpus, often of one host, are far apart.
    wanted = {url_key(url): url for url in urls}
    for leftover in folder.glob("*/*.tmp"):
        leftover.unlink()
    log_path = folder / LOG
    records = {record["key"]: record for record in read_records(log_path)}
    todo = iter(sorted(set(wanted) - set(records)))
    fetch = (fetcher or Fetcher(settings)).fetch
    total, done = len(wanted), len(set(wanted) & set(records))
    progress("images", done, total)
    with RecordLog(log_path) as log, ThreadPoolExecutor(threads) as pool:
        running: dict[Future[Fetched], str] = {}
        try:
            while True:
                for key in islice(todo, 2 * threads - len(running)):
                    running[pool.submit(fetch, wanted[key])] = key
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    key = running.pop(future)
                    records[key] = _note(key, future.result(), folder, log)
                    done += 1
                    progress("images", done, total)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return Retrieved({key: records[key] for key in sorted(wanted)}, folder)


def duplicates(retrieved: Retrieved, order: Iterable[str]) -> Iterator[str]:
    """Keys of pictures that an earlier one in `order` equals, by bytes or by difference hash."""
    seen: set[str] = set()
    known: set[str] = set()
    for key in order:
        record = retrieved.records.get(key)
        if key in known or record is None or record["status"] != "success":
            continue
        known.add(key)
        marks = {record["sha256"], record["dhash"]}
        if marks & seen:
            yield key
        seen |= marks


def _note(key: str, fetched: Fetched, folder: Path, log: RecordLog) -> dict[str, Any]:
    record: dict[str, Any] = {
        "key": key,
        "url": fetched.url,
        "status": fetched.status,
        "reason": fetched.reason,
        "error_message": fetched.message or None,
        "tries": fetched.tries,
    }
    if fetched.picture is not None:
        path = picture_path(folder, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        temporary.write_bytes(fetched.picture.data)
        os.replace(temporary, path)
        kept = {name: value for name, value in vars(fetched.picture).items() if name != "data"}
        record |= kept
    log.append(record)
    return record
