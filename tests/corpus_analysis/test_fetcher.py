"""The fetcher against a loopback server that does what it can to do harm."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import random
import socket
import struct
import threading
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageCms

from counterprior import addresses, fetching
from counterprior.addresses import UnknownHost, is_public
from counterprior.corpus_analysis.images.fetch import Fetched, Fetcher
from counterprior.corpus_analysis.images.pixels import BadImage, PixelLimits, dhash, store
from counterprior.corpus_analysis.images.retrieve import (
    FETCHED,
    ImageSource,
    duplicates,
    retrieve,
    url_key,
)
from counterprior.fetching import DownloadSettings, FetchError, opted_out
from counterprior.progress import silent

SIZE = (160, 120)


def halves(left: str, right: str, size: tuple[int, int] = SIZE) -> Image.Image:
    """An image whose halves have different colors."""
    image = Image.new("RGB", size, right)
    image.paste(left, (0, 0, size[0] // 2, size[1]))
    return image


def encoded(image: Image.Image, kind: str = "JPEG", **options: object) -> bytes:
    buffer = BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def bomb_png(width: int, height: int) -> bytes:
    """A PNG whose header promises a huge image."""

    def chunk(name: bytes, data: bytes) -> bytes:
        checked = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + checked

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(b"\0" * (width // 8 + 1))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    )


JPEG = encoded(halves("red", "blue"))
EXIF = Image.Exif()
EXIF[0x0112] = 2  # stored mirrored
BOMB = gzip.compress(JPEG[:4] + b"\0" * 50_000_000)
ANIMATION = [halves("red", "blue"), halves("blue", "red")]

BODIES: dict[str, bytes] = {
    "/ok.jpg": JPEG,
    "/ok.png": encoded(halves("red", "blue"), "PNG"),
    "/ok.webp": encoded(halves("red", "blue"), "WEBP", lossless=True),
    "/html.jpg": b"<!doctype html><title>not found</title>",
    "/empty.jpg": b"",
    "/truncated.jpg": encoded(Image.effect_noise(SIZE, 90).convert("RGB"))[:900],
    "/animated.gif": encoded(ANIMATION[0], "GIF", save_all=True, append_images=ANIMATION[1:]),
    "/cmyk.jpg": encoded(halves("red", "blue").convert("CMYK")),
    "/mirrored.jpg": encoded(halves("blue", "red"), exif=EXIF),
    "/icc.jpg": encoded(
        halves("red", "blue"),
        icc_profile=ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes(),
    ),
    "/bad_icc.jpg": encoded(halves("red", "blue"), icc_profile=b"no profile" * 20),
    "/tiny.png": encoded(Image.new("RGB", (1, 1)), "PNG"),
    "/strip.png": encoded(halves("red", "blue", (900, 110)), "PNG"),
    "/bomb.png": bomb_png(30_000, 30_000),
    "/transparent.png": encoded(Image.new("RGBA", SIZE, (0, 0, 0, 0)), "PNG"),
    "/large.jpg": encoded(halves("red", "blue", (2000, 1500))),
    "/tiff.jpg": encoded(halves("red", "blue"), "TIFF"),
}
HEADERS = {
    "/noai.jpg": [("X-Robots-Tag", "noai, noimageai")],
    "/other_bot.jpg": [("X-Robots-Tag", "googlebot: noindex")],
    "/tdm.jpg": [("TDM-Reservation", "1")],
}
REDIRECTS = {
    "/to_ok": "/ok.jpg",
    "/to_file": "file:///etc/passwd",
    "/to_data": "data:image/png;base64,AAAA",
    "/to_private": "http://10.0.0.1/x.jpg",
    "/to_metadata": "http://169.254.169.254/latest",
    "/to_mapped": "http://[::ffff:10.0.0.1]/x.jpg",
    "/loop": "/loop",
    "/to_ftp": "ftp://example.org/x.jpg",
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str]] = []  # noqa: RUF012
    agents: set[str] = set()  # noqa: RUF012
    busy = 0
    most_busy = 0
    lock = threading.Lock()

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        cls = type(self)
        with cls.lock:
            cls.seen.append((self.path, self.headers.get("Host", "")))
            cls.agents.add(self.headers.get("User-Agent", ""))
        with contextlib.suppress(OSError):  # the fetcher hangs up, as it should
            self.answer()

    def wait(self) -> None:
        """A while in which this request counts as being served."""
        cls = type(self)
        with cls.lock:
            cls.busy += 1
            cls.most_busy = max(cls.most_busy, cls.busy)
        time.sleep(0.1)
        with cls.lock:
            cls.busy -= 1

    def answer(self) -> None:
        path = self.path
        if path in REDIRECTS:
            return self.send(b"", 302, [("Location", REDIRECTS[path])])
        if path in HEADERS:
            return self.send(JPEG, 200, HEADERS[path])
        if path in BODIES:
            return self.send(BODIES[path])
        if path.startswith("/status/"):
            return self.send(b"", int(path.rsplit("/", 1)[1]))
        if path == "/later.jpg":
            tries = sum(seen == path for seen, _ in type(self).seen)
            return self.send(
                JPEG if tries > 1 else b"", 200 if tries > 1 else 429, [("Retry-After", "0")]
            )
        if path == "/much_later.jpg":
            return self.send(b"", 429, [("Retry-After", "86400")])
        if path == "/gzip_bomb.jpg":
            return self.send(BOMB, 200, [("Content-Encoding", "gzip")])
        if path == "/gzip.jpg":
            return self.send(gzip.compress(JPEG), 200, [("Content-Encoding", "gzip")])
        if path == "/brotli.jpg":
            return self.send(JPEG, 200, [("Content-Encoding", "br")])
        if path.startswith("/slow/"):
            self.wait()
            return self.send(JPEG)
        if path == "/drip.jpg":
            return self.drip(JPEG[:200])
        if path == "/drip_headers.jpg":
            for _ in range(100):
                self.wfile.write(b"H")
                self.wfile.flush()
                time.sleep(0.1)
            return None
        if path == "/endless.jpg":
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(JPEG[:4] + b"\0" * 65_536)
        if path == "/liar.jpg":
            self.send_response(200)
            self.send_header("Content-Length", "99999999999")
            self.end_headers()
            return None
        if path == "/garbage":
            self.wfile.write(b"\x00\x01 this is no HTTP\r\n\r\n")
            self.close_connection = True
            return None
        return self.send(b"", 404)

    def send(
        self, body: bytes, status: int = 200, headers: list[tuple[str, str]] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers or []:
            self.send_header(name, value)
        self.send_header("Content-Type", "image/jpeg")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def drip(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for byte in body:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(0.1)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.daemon_threads = True
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{found.server_address[1]}"
    found.shutdown()
    found.server_close()


@pytest.fixture(autouse=True)
def forgotten() -> None:
    Handler.seen, Handler.most_busy, Handler.agents = [], 0, set()


SETTINGS = DownloadSettings(
    deadline_s=60,  # a busy computer is not a slow server
    max_bytes=3_000_000,
    loopback=True,
    tries=2,
    wait_s=0.05,
    contact="https://example.org/bot",
)


@pytest.fixture
def fetcher() -> Fetcher:
    return Fetcher(SETTINGS)


EXPECTED = {
    "/ok.jpg": "ok",
    "/ok.png": "ok",
    "/ok.webp": "ok",
    "/to_ok": "ok",
    "/cmyk.jpg": "ok",
    "/mirrored.jpg": "ok",
    "/icc.jpg": "ok",
    "/bad_icc.jpg": "ok",
    "/transparent.png": "ok",
    "/large.jpg": "ok",
    "/gzip.jpg": "ok",
    "/other_bot.jpg": "ok",
    "/later.jpg": "ok",
    "/html.jpg": "not_image",
    "/empty.jpg": "not_image",
    "/tiff.jpg": "not_image",
    "/truncated.jpg": "decode",
    "/animated.gif": "animated",
    "/tiny.png": "too_small",
    "/strip.png": "aspect",
    "/bomb.png": "too_many_pixels",
    "/noai.jpg": "opted_out",
    "/tdm.jpg": "opted_out",
    "/to_file": "scheme",
    "/to_data": "scheme",
    "/to_ftp": "scheme",
    "/to_private": "refused_address",
    "/to_metadata": "refused_address",
    "/to_mapped": "refused_address",
    "/loop": "redirects",
    "/status/404": "http_404",
    "/status/403": "http_403",
    "/status/500": "http_500",
    "/much_later.jpg": "http_429",
    "/gzip_bomb.jpg": "too_large",
    "/brotli.jpg": "encoding",
    "/endless.jpg": "too_large",
    "/liar.jpg": "too_large",
    "/drip.jpg": "timeout",
    "/drip_headers.jpg": "timeout",
    "/garbage": "protocol",
}


@pytest.mark.parametrize("path", EXPECTED)
def test_every_answer_has_its_reason(server: str, path: str) -> None:
    # What drips comes to its end after ten seconds or more, with another reason.
    slow = EXPECTED[path] == "timeout"
    found = Fetcher(replace(SETTINGS, deadline_s=0.5) if slow else SETTINGS).fetch(server + path)
    assert found.reason == EXPECTED[path], found
    decoding = ("decode", "animated", "too_small", "aspect", "too_many_pixels")
    status = {"ok": "success", **dict.fromkeys(decoding, "failed_to_resize")}
    assert found.status == status.get(found.reason, "failed_to_download")
    assert (found.image is not None) == (found.status == "success")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "scheme"),
        ("data:image/png;base64,AAAA", "scheme"),
        ("ftp://example.org/x.jpg", "scheme"),
        ("gopher://127.0.0.1/", "scheme"),
        ("", "scheme"),
        ("/relative.jpg", "scheme"),
        ("http://", "bad_url"),
        ("http://user:secret@example.org/x.jpg", "bad_url"),
        ("http://[::1", "bad_url"),
        ("http://example.org:99999/x.jpg", "bad_url"),
        ("http://127.0.0.1:1/x.jpg", "refused_address"),
        ("http://2130706433/x.jpg", "refused_address"),
        ("http://[::1]/x.jpg", "refused_address"),
        ("http://192.168.1.1/x.jpg", "refused_address"),
        ("http://100.64.0.1/x.jpg", "refused_address"),
        ("http://[fe80::1]/x.jpg", "refused_address"),
        ("http://[64:ff9b::a00:1]/x.jpg", "refused_address"),
    ],
)
def test_never_requests_forbidden_addresses(url: str, reason: str) -> None:
    fetcher = Fetcher(DownloadSettings(tries=1, deadline_s=2))
    assert fetcher.fetch(url).reason == reason


def test_loopback_is_closed_unless_a_test_opens_it(server: str) -> None:
    found = Fetcher(DownloadSettings(tries=1)).fetch(f"{server}/ok.jpg")
    assert found.reason == "refused_address"
    assert Handler.seen == []


def test_a_name_is_resolved_once_and_the_checked_address_is_connected_to(server: str) -> None:
    port = int(server.rsplit(":", 1)[1])
    answers = [["127.0.0.1"], ["10.0.0.1"]]
    asked: list[str] = []

    def changing(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[min(len(asked), 2) - 1]

    found = Fetcher(SETTINGS, changing).fetch(f"http://rebind.example:{port}/ok.jpg")
    assert found.reason == "ok"
    assert asked == ["rebind.example"]
    assert Handler.seen == [("/ok.jpg", f"rebind.example:{port}")]


def test_the_connection_goes_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import httpcore2

    went: list[str] = []

    def connect(self: object, host: str, port: int, *args: object, **options: object) -> None:
        went.append(host)
        raise httpcore2.ConnectError("stop here")

    monkeypatch.setattr(httpcore2.SyncBackend, "connect_tcp", connect)
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])
    fetcher = Fetcher(DownloadSettings(tries=1), lambda host, port: next(answers))
    assert fetcher.fetch("http://rebind.example/x.jpg").reason == "connect"
    assert went == ["93.184.216.34"]


@pytest.mark.parametrize("inner", ["10.0.0.1", "127.0.0.1", "::1", "fd00::1"])
def test_one_private_address_among_public_ones_is_refused(inner: str) -> None:
    fetcher = Fetcher(DownloadSettings(tries=1), lambda host, port: ["93.184.216.34", inner])
    assert fetcher.fetch("http://mixed.example/x.jpg").reason == "refused_address"


def test_a_redirect_to_a_name_with_a_private_address_is_refused(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REDIRECTS, "/to_name", "http://inside.example/x.jpg")
    fetcher = Fetcher(SETTINGS, lambda host, port: ["10.1.2.3"])
    found = fetcher.fetch(f"{server}/to_name")
    assert found.reason == "refused_address" and "10.1.2.3" in found.message


def test_names_that_do_not_or_never_resolve() -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise UnknownHost("no such name")

    once = replace(SETTINGS, tries=1)
    assert Fetcher(once, unknown).fetch("http://x.example/").reason == "dns"
    assert Fetcher(once, lambda host, port: []).fetch("http://x.example/").reason == "dns"
    quick, hanging = replace(once, deadline_s=0.1), threading.Event()
    # Waited for to the end, it would be a name without addresses.
    found = Fetcher(quick, lambda host, port: hanging.wait(5) or []).fetch("http://x.example/")
    hanging.set()
    assert found.reason == "timeout"


def test_the_proxy_of_the_environment_is_not_used(
    server: str, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://10.0.0.1:3128")
    monkeypatch.setenv("http_proxy", "http://10.0.0.1:3128")
    assert fetcher.fetch(f"{server}/ok.jpg").reason == "ok"


def test_a_port_where_nobody_listens(fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    found = fetcher.fetch(f"http://127.0.0.1:{port}/x.jpg")
    assert (found.reason, found.tries) == ("connect", 2)


def test_tls_is_verified(server: str, fetcher: Fetcher) -> None:
    assert fetcher.fetch(server.replace("http:", "https:") + "/ok.jpg").reason in (
        "tls",
        "protocol",
    )


def test_retries_are_for_what_may_pass(server: str, fetcher: Fetcher) -> None:
    assert fetcher.fetch(f"{server}/later.jpg").tries == 2
    assert fetcher.fetch(f"{server}/status/404").tries == 1
    assert fetcher.fetch(f"{server}/much_later.jpg").tries == 1
    assert fetcher.fetch(f"{server}/noai.jpg").tries == 1


def test_a_gzip_bomb_is_never_whole_in_memory(server: str, fetcher: Fetcher) -> None:
    tracemalloc.start()
    try:
        assert fetcher.fetch(f"{server}/gzip_bomb.jpg").reason == "too_large"
        assert tracemalloc.get_traced_memory()[1] < 12_000_000
    finally:
        tracemalloc.stop()


def test_sends_a_user_agent(server: str, fetcher: Fetcher) -> None:
    fetcher.fetch(f"{server}/ok.jpg")
    (agent,) = Handler.agents
    assert agent.startswith("counterprior") and agent.endswith("; https://example.org/bot)")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("noai", True),
        ("all", False),
        ("NoIndex", True),
        ("otherbot: noai", False),
        ("counterprior: noindex", True),
        ("nofollow, noimageai", True),
        ("otherbot: noindex, nofollow", False),
        ("*: noai", True),
        ("", False),
    ],
)
def test_opt_outs(value: str, expected: bool) -> None:
    assert bool(opted_out([("x-robots-tag", value)])) is expected


@given(st.ip_addresses())
def test_no_private_address_is_public(address: object) -> None:
    import ipaddress

    assert isinstance(address, ipaddress.IPv4Address | ipaddress.IPv6Address)
    if address.is_private or address.is_loopback or address.is_link_local or address.is_multicast:
        assert not is_public(str(address))
        if address.version == 4:
            assert not is_public(f"::ffff:{address}")
            assert not is_public(f"64:ff9b::{address}")


# --- images ------------------------------------------------------------------------------------


def left_color(data: bytes) -> tuple[int, ...]:
    image = Image.open(BytesIO(data))
    assert image.mode == "RGB" and image.format == "JPEG"
    return image.getpixel((image.width // 4, image.height // 2))  # type: ignore[return-value]


@pytest.mark.parametrize(
    "path",
    [
        "/ok.jpg",
        "/ok.png",
        "/ok.webp",
        "/icc.jpg",
        "/bad_icc.jpg",
        "/mirrored.jpg",
        "/cmyk.jpg",
        "/large.jpg",
    ],
)
def test_left_stays_left_and_red_stays_red(path: str) -> None:
    stored = store(BODIES[path], PixelLimits())
    red, green, blue = left_color(stored.data)
    assert red > 180 and green < 80 and blue < 80
    assert max(stored.width, stored.height) <= 768


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_undone(orientation: int) -> None:
    upright = halves("red", "blue", (200, 150))
    turned = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored_as = upright.transpose(turned[orientation]) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    kept = store(encoded(stored_as, exif=exif), PixelLimits())
    assert (kept.width, kept.height) == (200, 150)
    assert left_color(kept.data)[0] > 180
    assert b"Exif" not in kept.data[:64]


def test_transparency_becomes_white() -> None:
    assert left_color(store(BODIES["/transparent.png"], PixelLimits()).data) == (255, 255, 255)


@given(
    st.binary(max_size=300),
    st.sampled_from([b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b""]),
)
def test_garbage_is_refused_not_raised(data: bytes, start: bytes) -> None:
    with pytest.raises(BadImage):
        store(start + data, PixelLimits())


def test_broken_images_at_every_length_are_refused() -> None:
    data = encoded(Image.effect_noise(SIZE, 90).convert("RGB"), "PNG")
    for length in range(0, len(data) - 100, 997):
        with pytest.raises(BadImage):
            store(data[:length], PixelLimits())


def test_mirrored_images_have_other_hashes() -> None:
    noise = Image.effect_noise((17 * 8, 16 * 8), 90)
    assert dhash(noise) != dhash(noise.transpose(Image.Transpose.FLIP_LEFT_RIGHT))
    assert dhash(noise) == dhash(noise.resize((17 * 16, 16 * 16), Image.Resampling.NEAREST))


# --- whole runs --------------------------------------------------------------------------------


def sources(urls: list[str]) -> list[ImageSource]:
    return [ImageSource(url) for url in urls]


def test_a_run_notes_each_address_once_and_goes_on(server: str, tmp_path: Path) -> None:
    urls = [server + path for path in EXPECTED if "drip" not in path]
    first = retrieve(sources(urls[:9] + urls[:3]), tmp_path, SETTINGS, 4, silent)
    assert len(first.records) == 9
    with (tmp_path / FETCHED).open("a") as log:
        log.write('{"key": "torn')
    half = tmp_path / "ab" / "abcd.jpg.1.partial"
    half.parent.mkdir(exist_ok=True)
    half.write_bytes(b"half")
    Handler.seen = []
    whole = retrieve(sources(urls), tmp_path, SETTINGS, 4, silent)
    assert not {f"{server}{path}" for path, _ in Handler.seen} & {
        u for u in urls[:9] if "to_" not in u and u != f"{server}/ok.jpg"
    }
    assert set(whole.records) == {url_key(url) for url in urls}
    for url in urls:
        record = whole.records[url_key(url)]
        assert record["reason"] == EXPECTED[url.removeprefix(server)]
        assert whole.image(record["key"]).exists() == (record["status"] == "success")
    assert not list(tmp_path.glob("*/*.partial"))
    shuffled = sources(random.Random(1).sample(urls, len(urls)))
    again = retrieve(shuffled, tmp_path, SETTINGS, 2, silent)
    assert again.records == whole.records
    assert sum(whole.reasons().values()) == len(urls)
    assert 0.3 < whole.failed_share() < 0.8


class Outcomes:
    """Stands for a fetcher: what it says of each address, and what it was asked."""

    def __init__(self, reasons: dict[str, str]) -> None:
        self.reasons = reasons
        self.asked: list[str] = []

    def fetch(self, url: str) -> Fetched:
        self.asked.append(url)
        reason = self.reasons[url]
        return Fetched(
            url, "failed_to_resize" if reason == "decode" else "failed_to_download", reason
        )


def test_failed_downloads_are_tried_again_when_asked(tmp_path: Path) -> None:
    web: Any = Outcomes({"a": "timeout", "b": "opted_out", "c": "decode", "d": "http_404"})
    for retry, asked in ((False, "abcd"), (False, ""), (True, "ad"), (True, "ad")):
        web.asked = []
        retrieve(
            sources(["a", "b", "c", "d"]),
            tmp_path,
            SETTINGS,
            2,
            silent,
            fetcher=web,
            retry_failed=retry,
        )
        assert sorted(web.asked) == list(asked)
    web.reasons["a"] = "http_500"
    found = retrieve(
        sources(["a", "b"]), tmp_path, SETTINGS, 2, silent, fetcher=web, retry_failed=True
    )
    assert found.reasons() == {"http_500": 1, "opted_out": 1}


class Strained(Fetcher):
    """Fetches from hosts of which one answers 503 until it is up."""

    def __init__(self, image: bytes, settings: DownloadSettings) -> None:
        super().__init__(settings)
        self.image, self.asked, self.up = image, list[str](), False

    def _attempt(self, url: str) -> bytes:
        self.asked.append(url)
        if "strained" in url and not self.up:
            raise FetchError("http_503")
        return self.image


def test_failing_host_rests_and_is_tried_later(tmp_path: Path) -> None:
    data = BytesIO()
    Image.new("RGB", (128, 128)).save(data, "PNG")
    settings = replace(SETTINGS, tries=1, rest_after=3, wait_s=60)
    web = Strained(data.getvalue(), settings)
    strained = [f"http://strained.test/{i}.png" for i in range(8)]
    urls = [*strained, "http://fine.test/a.png"]
    found = retrieve(sources(urls), tmp_path, settings, 1, silent, fetcher=web)
    assert found.reasons() == {"host_resting": 5, "http_503": 3, "ok": 1}
    assert len(web.asked) == 4  # three failures, and the other host
    # Another run asks what was never asked, and only then what failed, if told to.
    web = Strained(data.getvalue(), settings)
    web.up = True
    found = retrieve(sources(urls), tmp_path, settings, 1, silent, fetcher=web)
    assert found.reasons() == {"ok": 6, "http_503": 3} and len(web.asked) == 5
    found = retrieve(sources(urls), tmp_path, settings, 1, silent, fetcher=web, retry_failed=True)
    assert found.reasons() == {"ok": 9}
    # A rest ends: it is twice as long after each failure, and over after a success.
    brief = replace(settings, rest_after=1, wait_s=0.02, max_rest_s=0.05)
    web = Strained(data.getvalue(), brief)
    said = [web.fetch(strained[0]).reason for _ in range(2)]
    time.sleep(0.06)
    web.up = True
    said += [web.fetch(strained[0]).reason for _ in range(2)]
    assert said == ["http_503", "host_resting", "ok", "ok"]
    web, said = Strained(data.getvalue(), replace(settings, rest_after=2)), []
    for up in (False, True, False, False, False):
        web.up = up
        said.append(web.fetch(strained[0]).reason)
    assert said == ["http_503", "ok", "http_503", "http_503", "host_resting"]


def test_duplicates_are_the_later_ones(server: str, tmp_path: Path) -> None:
    urls = [server + path for path in ("/ok.jpg", "/to_ok", "/mirrored.jpg", "/html.jpg")]
    found = retrieve(sources(urls), tmp_path, SETTINGS, 2, silent)
    keys = [url_key(url) for url in urls]
    assert list(duplicates(found, keys)) == [keys[1], keys[2]]
    assert list(duplicates(found, [keys[2], keys[1], keys[2], keys[0]])) == [keys[1], keys[0]]


def test_limits_connections_per_host(server: str, tmp_path: Path) -> None:
    urls = [f"{server}/slow/{i}" for i in range(12)]
    found = retrieve(sources(urls), tmp_path, SETTINGS, 8, silent)
    assert Handler.most_busy <= SETTINGS.per_host
    assert found.reasons() == {"ok": 12}


@pytest.mark.parametrize(("waiting", "reason"), [("turn", "ok"), ("server", "timeout")])
def test_waiting_for_a_turn_is_not_the_servers_fault(
    server: str, monkeypatch: pytest.MonkeyPatch, waiting: str, reason: str
) -> None:
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    for module in (addresses, fetching):
        monkeypatch.setattr(module, "time", clock)

    class Queue:
        """A turn that comes long after the deadline."""

        def __enter__(self) -> None:
            clock.now += 1000

        def __exit__(self, *error: object) -> None:
            pass

    def resolve(host: str, port: int) -> list[str]:
        clock.now += 1000 * (waiting == "server")
        return ["127.0.0.1"]

    fetcher = Fetcher(SETTINGS, resolve)
    fetcher._hosts["queue.example"] = Queue()  # type: ignore[assignment]
    port = server.rsplit(":", 1)[1]
    assert fetcher.fetch(f"http://queue.example:{port}/ok.jpg").reason == reason


def test_an_interrupted_run_keeps_what_it_has(server: str, tmp_path: Path) -> None:
    def interrupt(stage: str, done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    urls = [f"{server}/slow/{i}" for i in range(8)]
    with pytest.raises(KeyboardInterrupt):
        retrieve(sources(urls), tmp_path, SETTINGS, 1, interrupt)
    assert len((tmp_path / FETCHED).read_text().splitlines()) == 3
    assert len(retrieve(sources(urls), tmp_path, SETTINGS, 2, silent).records) == 8
