"""Captions of strangers: their addresses, the images behind them, and the files they come in."""

from __future__ import annotations

import ipaddress
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import httpcore2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from counterprior.addresses import is_public
from counterprior.corpus_analysis.images.fetch import Fetcher
from counterprior.corpus_analysis.images.pixels import BadImage, PixelLimits, store
from counterprior.corpus_analysis.sources.shards import (
    DAMAGED,
    SourceSettings,
    list_shards,
    read_shard,
)
from counterprior.fetching import DownloadSettings

# --- addresses ---------------------------------------------------------------------------------

SPECIAL = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
    *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    *("::/128", "::1/128", "::/96", "::ffff:0:127.0.0.0/104", "64:ff9b:1::/48", "100::/64"),
    *("2001::/32", "2001:2::/48", "2001:10::/28", "2001:20::/28", "2001:db8::/32", "2002::/16"),
    *("3ffe::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
    *("400::/6", "4000::/3", "8000::/3", "e000::/4"),
)
"""Networks that are not the public Internet."""
INSIDE = ("127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.1.1", "100.64.0.1", "0.0.0.0")
"""Inner IPv4 addresses, for every form that carries one."""


def carried(inner: str) -> list[str]:
    n = int(ipaddress.IPv4Address(inner))
    high, low = f"{n >> 16:x}", f"{n & 0xFFFF:x}"
    return [
        f"::{inner}",
        f"::ffff:{inner}",
        f"::ffff:0:{inner}",
        f"64:ff9b::{inner}",
        f"64:ff9b:1::{high}:{low}",
        f"64:ff9b:1:{high}:{low}::",
        f"2002:{high}:{low}::1",
        f"2001:0:{high}:{low}::1",
        f"2001::{n ^ 0xFFFFFFFF:032b}"[:6] + f":{(n ^ 0xFFFFFFFF) >> 16:x}:{~n & 0xFFFF:x}",
        f"fe80::5efe:{inner}",
        f"fe80::{high}:{low}%1",
    ]


def attacks() -> list[str]:
    """First, last and middle address of each special network, and every carried one."""
    found = [address for inner in INSIDE for address in carried(inner)]
    for network in map(ipaddress.ip_network, SPECIAL):
        first, last = int(network[0]), int(network[-1])
        found += [str(network[0] + step) for step in {0, (last - first) // 2, last - first}]
        if last - first > 2:
            found += [str(network[0] + 1), str(network[0] + (last - first) // 3)]
    return found


def test_two_hundred_names_of_private_addresses_reach_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connected: list[Any] = []

    def connect(self: Any, host: str, *rest: Any, **options: Any) -> Any:
        connected.append(host)
        raise httpcore2.ConnectError("reached")

    monkeypatch.setattr(httpcore2.SyncBackend, "connect_tcp", connect)
    found = attacks()
    assert len(found) >= 200
    names = {f"host-{number}.test": address for number, address in enumerate(found)}
    fetcher = Fetcher(DownloadSettings(tries=1), resolve=lambda host, port: [names[host]])
    reasons = {name: fetcher.fetch(f"http://{name}/a.png").reason for name in names}
    through = [names[name] for name, reason in reasons.items() if reason != "refused_address"]
    assert not through and not connected
    # The same addresses written into the caption.
    for address in found:
        host = f"[{address}]" if ":" in address else address
        assert fetcher.fetch(f"http://{host}/a.png").status == "failed_to_download"
    assert not connected
    # One private address among public ones is enough to refuse.
    fetcher = Fetcher(DownloadSettings(tries=1), resolve=lambda *_: ["93.184.216.34", "10.0.0.1"])
    assert fetcher.fetch("http://mixed.test/a.png").reason == "refused_address"


@pytest.mark.parametrize(
    "address",
    [
        *("93.184.216.34", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:93.184.216.34"),
        *("64:ff9b::93.184.216.34", "2a00:1450:4001::8a", "2001:4860:4860::8888"),
    ],
)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address", ["", "localhost", "127.1", "0x7f000001", "0177.0.0.1", "::1\n", "168.63.129.16"]
)
def test_rejects_malformed_addresses_as_not_public(address: str) -> None:
    assert not is_public(address)


# --- items -------------------------------------------------------------------------------------

AWKWARD = [
    "http://xn--0.test/",
    "http://xn--/",
    "http://\ud800.test/",
    "http://[x/",
    "http://a..b/",
]
AWKWARD += [
    "http://%00.test/",
    f"http://{'a' * 300}.test/",
    "http://é.test:99999/",
    "http://[::1%e]/",
]
AWKWARD += [
    "",
    "http:",
    "//",
    "http://\x00/",
    "http://u:p@h.test/",
    "file:///etc/passwd",
    "http://1/",
]


@pytest.mark.parametrize("url", AWKWARD)
def test_one_address_is_one_failed_item(url: str) -> None:
    fetcher = Fetcher(DownloadSettings(tries=1), resolve=lambda host, port: ["127.0.0.1"])
    assert fetcher.fetch(url).status == "failed_to_download"


@settings(max_examples=150)
@given(
    st.text(max_size=40), st.sampled_from(["http://", "https://", "http://xn--", "http://[", ""])
)
def test_no_address_ends_a_run(rest: str, start: str) -> None:
    fetcher = Fetcher(DownloadSettings(tries=1), resolve=lambda host, port: ["127.0.0.1"])
    assert fetcher.fetch(start + rest).status == "failed_to_download"


def test_a_redirect_to_no_name_is_one_failed_item(monkeypatch: pytest.MonkeyPatch) -> None:
    fetcher = Fetcher(DownloadSettings(tries=1))
    monkeypatch.setattr(
        fetcher, "_once", lambda url: f"http://{'xn--0'}.test/" if url.host else b""
    )
    assert fetcher.fetch("http://a.test/").reason in ("bad_url", "redirects")


# --- images ------------------------------------------------------------------------------------


def test_a_progressive_image_of_many_scans_is_not_decoded(
    scan_bomb: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("PIL.JpegImagePlugin.JpegImageFile.load", lambda self: pytest.fail("load"))
    with pytest.raises(BadImage, match="2010 scans"):
        store(scan_bomb, PixelLimits())


def test_an_image_of_ten_scans_is_stored() -> None:
    buffer = BytesIO()
    Image.new("RGB", (200, 200), "red").save(buffer, "JPEG", progressive=True)
    assert store(buffer.getvalue(), PixelLimits()).width == 200


# --- captions ----------------------------------------------------------------------------------

BAD = b"a cat on a \xff mat"


def _parquet(path: Path) -> None:
    texts = pa.array([b"a dog", BAD, None])
    caption = pa.Array.from_buffers(pa.string(), 3, texts.buffers())  # as Spark writes it
    pq.write_table(pa.table({"caption": caption, "url": ["u1", "u2", "u3"]}), path)


WRITTEN: dict[str, bytes | Callable[[Path], None]] = {
    "csv": b"caption,url\na dog,u1\n" + BAD + b",u2\n,u3\n",
    "tsv": b"caption\turl\na dog\tu1\n" + BAD + b"\tu2\n\tu3\n",
    "jsonl": b'{"caption":"a dog","url":"u1"}\n{"caption":"'
    + BAD
    + b'","url":"u2"}\n{"url":"u3"}\n',
    "parquet": _parquet,
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_invalid_utf8_fails_only_its_row(kind: str, tmp_path: Path) -> None:
    path, content = tmp_path / f"captions.{kind}", WRITTEN[kind]
    path.write_bytes(content) if isinstance(content, bytes) else content(path)
    source = SourceSettings(paths=(str(path),))
    (shard,) = list_shards(source)
    table = read_shard(shard, source)
    assert table["caption"].to_pylist()[:2] == ["a dog", "a cat on a \ufffd mat"]
    assert table["caption"][2].as_py() in (None, "")
    assert table["url"].to_pylist() == ["u1", "u2", "u3"]
    assert table.schema.metadata[DAMAGED].startswith(b"1 of the texts were no UTF-8")


def test_half_an_emoji_fails_no_shard(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    texts = [r"a \ud83d cat", r"a \ud83d\ude00 cat", r"a \\ud83d cat", r"a \uDE00 cat"]
    path.write_text("".join(f'{{"caption": "{text}", "url": "u"}}\n' for text in texts))
    source = SourceSettings(paths=(str(path),))
    (shard,) = list_shards(source)
    table = read_shard(shard, source)
    wanted = ["a \ufffd cat", "a \U0001f600 cat", r"a \ud83d cat", "a \ufffd cat"]
    assert table["caption"].to_pylist() == wanted
    assert table.schema.metadata[DAMAGED].startswith(b"2 of the texts were no UTF-8")


# --- workers -----------------------------------------------------------------------------------

PARENT = """
import os, sys, time
from dataclasses import dataclass
from pathlib import Path
from counterprior.eval.workers import farm
from slow_task import SlowToOpen

path, when = sys.argv[1:]
if when == "before":  # the parent dies before the worker knows it
    farm._START = (
        "import os, pathlib, sys, time\\n"
        f"pathlib.Path({path!r}).write_text(str(os.getpid()))\\n"
        f"while os.getppid() == {os.getpid()}: time.sleep(0.05)\\n"
    ) + farm._START
list(farm.farm(SlowToOpen(path), [1], farm.Scale()))
"""
SLOW_TASK = """
import os, time
from dataclasses import dataclass
from pathlib import Path

@dataclass
class SlowToOpen:
    path: str
    bundle: int = 1

    def open(self):
        Path(self.path).write_text(str(os.getpid()))
        time.sleep(60)
"""


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


@pytest.mark.parametrize("when", ["before", "while"])
def test_a_worker_ends_with_its_parent_also_while_it_loads(when: str, tmp_path: Path) -> None:
    script, started = tmp_path / "parent.py", tmp_path / "pid"
    script.write_text(PARENT)
    (tmp_path / "slow_task.py").write_text(SLOW_TASK)
    parent = subprocess.Popen([sys.executable, str(script), str(started), when])
    pid = 0
    try:
        while not (started.exists() and started.read_text()):
            assert parent.poll() is None
            time.sleep(0.05)
        pid = int(started.read_text())
        parent.kill()
        parent.wait()
        for _ in range(200):
            if not _lives(pid):
                break
            time.sleep(0.1)
        assert not _lives(pid)
    finally:
        parent.kill()
        if pid and _lives(pid):
            os.kill(pid, signal.SIGKILL)


GOOD = b'{"caption": "A cat and a dog.", "url": "u", "x": 1}'
BAD_ROWS = {
    "a number as caption": b'{"caption": 7, "url": "u"}',
    "an object as caption": b'{"caption": {"a": 1}, "url": "u"}',
    "a list as address": b'{"caption": "A cat.", "url": ["u"]}',
    "a key twice": b'{"caption": "A cat.", "caption": "A dog.", "url": "u"}',
    "a list": b'["A cat.", "u"]',
    "a number": b"7",
    "no JSON": b"caption: a cat",
    "a long row": b'{"caption": "' + b"a cat " * 700_000 + b'", "url": "u"}',
    "depth": b'{"caption": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "a torn last line": b'{"caption": "A cat and a d',
}


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_a_bad_row_is_one_failed_row(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    lines = [GOOD, GOOD, BAD_ROWS[kind]] if "torn" in kind else [GOOD, BAD_ROWS[kind], GOOD]
    path.write_bytes(b"\n".join(lines) + (b"" if "torn" in kind else b"\n"))
    source = SourceSettings((str(path),), caption_column="caption")
    (shard,) = list_shards(source)
    table = read_shard(shard, source)
    captions = table["caption"].to_pylist()
    assert len(captions) == 3 and captions.count("A cat and a dog.") == 2
    assert captions[lines.index(BAD_ROWS[kind])] is None  # the others keep their number
    damage = (table.schema.metadata or {})[DAMAGED].decode()
    number = lines.index(BAD_ROWS[kind]) + 1
    assert damage.startswith(f"1 of 3 rows can't be read, the first in line {number}: ")


def test_a_column_that_nobody_asked_for_may_be_anything(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    path.write_bytes(GOOD + b"\n" + GOOD.replace(b"1}", b'"s"}') + b"\n")
    source = SourceSettings((str(path),), caption_column="caption")
    (shard,) = list_shards(source)
    table = read_shard(shard, source)
    assert table["caption"].to_pylist() == ["A cat and a dog."] * 2
    assert DAMAGED not in (table.schema.metadata or {})
