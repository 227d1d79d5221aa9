"""Images of a run: each is fetched or read from its place, and recorded once; a new run resumes."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ...fetching import DownloadSettings
from ...progress import Progress
from ...storage import PARTIAL, RecordLog, read_records, write_whole
from .fetch import Fetched, Fetcher
from .local import LocalImages

FETCHED = "fetched.jsonl"
"""One record per image."""

FINAL = frozenset(("bad_url", "scheme", "refused_address", "opted_out"))
"""Reasons for which a download is never tried again."""

RESTING = "host_resting"
"""Reason of an address that was not tried: the next run tries it, whatever its settings."""

FAILURES_WARN = 0.5
"""Share of failed downloads above which a run warns."""


@dataclass(frozen=True)
class ImageSource:
    """Source of a pair's image: its place, else its address."""

    url: str
    """Address; empty for none."""
    place: str = ""
    """As in `images.local`; empty for an image that has to be fetched."""

    @classmethod
    def of(cls, pair: Mapping[str, Any]) -> ImageSource | None:
        """Source of a pair's image; None if the pair has neither place nor address."""
        source = cls(pair["url"] or "", pair["image"] or "")
        return source if source.url or source.place else None

    @property
    def key(self) -> str:
        """16 hex digits that name its image and its record: of the place, else the address."""
        return url_key(f"place {self.place}" if self.place else self.url)

    @property
    def names(self) -> frozenset[str]:
        """Keys of which each names one image: the record's, and the address's if it has one."""
        return frozenset((self.key, url_key(self.url))) if self.url else frozenset((self.key,))


@dataclass(frozen=True)
class Retrieved:
    """Images of a run, by their records."""

    records: dict[str, dict[str, Any]]
    """Key of an image -> its record."""
    folder: Path
    """Folder of the images."""

    def image(self, key: str) -> Path:
        return image_path(self.folder, key)

    def reasons(self) -> dict[str, int]:
        """Number of images by outcome, most frequent first."""
        counts = Counter(record["reason"] for record in self.records.values())
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def opt_outs(self) -> dict[str, int]:
        """Number of images whose server opts out, by header and directive."""
        outs = (r["error_message"] for r in self.records.values() if r["reason"] == "opted_out")
        return dict(sorted(Counter(out or "unknown" for out in outs).items()))

    def failed_share(self) -> float:
        """Share of addresses that could not be downloaded, in [0, 1]."""
        failed = sum(r["status"] == "failed_to_download" for r in self.records.values())
        return failed / len(self.records) if self.records else 0.0


def url_key(url: str) -> str:
    """First 16 hex digits of the address's SHA-256."""
    return hashlib.sha256(url.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def image_path(folder: Path, key: str) -> Path:
    """Path of a stored image."""
    return folder / key[:2] / f"{key}.jpg"


def retrieve(
    sources: Iterable[ImageSource],
    folder: Path,
    settings: DownloadSettings,
    threads: int,
    progress: Progress,
    *,
    fetcher: Fetcher | None = None,
    local: LocalImages | None = None,
    retry_failed: bool = False,
) -> Retrieved:
    """Fetches or reads every image without a record into the folder of images and records.

    A repeated image is fetched once. local: reads images that need no fetching. retry_failed:
    repeat failed downloads, except for a reason of `FINAL`; otherwise a failure is final. Addresses
    of resting hosts are tried again at the end, and in the next run. Images are stored before they
    are recorded, so a recorded image is complete.
    """
    # Sorted by key, which separates neighbors in a corpus: they are often on one host. Images with
    # a place are read in the order of their places.
    wanted = {source.key: source for source in sources}
    for leftover in folder.glob(f"*/*{PARTIAL}"):
        leftover.unlink()
    log_path = folder / FETCHED
    records = {record["key"]: record for record in read_records(log_path)}
    settled = {
        key
        for key, record in records.items()
        if record["reason"] != RESTING and not (retry_failed and _may_work(record))
    }
    waiting = set(wanted) - settled
    todo = iter(sorted(waiting, key=lambda key: (_order(wanted[key].place), key)))
    remote = fetcher or Fetcher(settings)

    def fetch(source: ImageSource) -> Fetched:
        if source.place and local:
            return local.fetch(source.place)
        return remote.fetch(source.url)

    second_round = False
    total, done = len(wanted), len(wanted) - len(waiting)
    progress("images", done, total)
    with RecordLog(log_path) as log, ThreadPoolExecutor(threads) as pool:
        running: dict[Future[Fetched], str] = {}
        later: list[str] = []
        try:
            while True:
                for key in islice(todo, 2 * threads - len(running)):
                    running[pool.submit(fetch, wanted[key])] = key
                if not running:
                    if not later:
                        break
                    todo, later, second_round = iter(later), [], True
                    continue
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    key, fetched = running.pop(future), future.result()
                    if fetched.reason == RESTING and not second_round:
                        later.append(key)
                        continue
                    records[key] = _note(key, fetched, folder, log)
                    done += 1
                    progress("images", done, total)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return Retrieved({key: records[key] for key in sorted(wanted)}, folder)


def duplicates(retrieved: Retrieved, order: Iterable[str]) -> Iterator[str]:
    """Keys of images that equal an earlier one in `order`, by bytes or by difference hash."""
    hashes: set[str] = set()
    checked: set[str] = set()
    for key in order:
        record = retrieved.records.get(key)
        if key in checked or record is None or record["status"] != "success":
            continue
        checked.add(key)
        image_hashes = {record["sha256"], record["dhash"]}
        if image_hashes & hashes:
            yield key
        hashes |= image_hashes


def _may_work(record: Mapping[str, Any]) -> bool:
    return record["status"] == "failed_to_download" and record["reason"] not in FINAL


def _order(place: str) -> tuple[str, int]:
    """Sort key of a place: source, then row or offset."""
    source, _, where = place.partition("#")
    number = where.rpartition("@")[2].partition("+")[0].rpartition("=")[2]
    return source, int(number) if number.isdigit() else 0


def _note(key: str, fetched: Fetched, folder: Path, log: RecordLog) -> dict[str, Any]:
    record: dict[str, Any] = {
        "key": key,
        "url": fetched.url,
        "status": fetched.status,
        "reason": fetched.reason,
        "error_message": fetched.message or None,
        "tries": fetched.tries,
    }
    if fetched.image is not None:
        write_whole(image_path(folder, key), fetched.image.data)
        record |= {name: value for name, value in vars(fetched.image).items() if name != "data"}
    log.append(record)
    return record
