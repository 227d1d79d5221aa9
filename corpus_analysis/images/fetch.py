"""Fetches one address: a stored image, or the reason for none. Never raises for a server's faults.

Statuses are those of img2dataset (`success`, `failed_to_download`, `failed_to_resize`), so that its
tools can read the table; `reason` says more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...fetching import Downloader, FetchError
from .pixels import BadImage, Stored, sniff, store

FetchStatus = Literal["success", "failed_to_download", "failed_to_resize"]


@dataclass(frozen=True)
class Fetched:
    """The outcome for one address."""

    url: str
    status: FetchStatus
    reason: str
    """`ok`; of the connection `bad_url`, `scheme`, `refused_address`, `dns`, `connect`, `tls`,
    `timeout`, `protocol`, `host_resting` (not tried: its host failed too often); of the answer
    `redirects`, `http_404` and the like, `opted_out`, `too_large`, `encoding`; of the image
    `not_image`, `decode`, `animated`, `too_many_pixels`, `too_many_scans`, `too_small`, `aspect`,
    `internal`."""
    message: str = ""
    """Detail for people."""
    tries: int = 1
    """Attempts made."""
    image: Stored | None = None
    """The image, if the status is `success`."""


class Fetcher(Downloader):
    """Fetches images; one instance serves many threads."""

    def fetch(self, url: str) -> Fetched:
        """Fetches the image at an address; the result gives the reason for a failure."""
        try:
            body, tries = self.download(url)
        except FetchError as error:
            return Fetched(
                url, "failed_to_download", error.reason, error.message, tries=error.tries
            )
        return self._keep(url, body, tries)

    def check_start(self, start: bytes) -> None:
        try:
            sniff(start)
        except BadImage as bad:
            raise FetchError(bad.reason, str(bad)) from None

    def _keep(self, url: str, body: bytes, tries: int) -> Fetched:
        try:
            image = store(body)
        except BadImage as bad:
            return Fetched(url, "failed_to_resize", bad.reason, str(bad), tries=tries)
        except Exception as error:  # a decoder's bug must not end a run of millions
            name = type(error).__name__
            return Fetched(url, "failed_to_resize", "internal", name, tries=tries)
        return Fetched(url, "success", "ok", tries=tries, image=image)
