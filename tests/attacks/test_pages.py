"""The audit page: what strangers made is shown and never run."""

from __future__ import annotations

import http.client
import io
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from counterprior.eval.people.serve import Audit, AuditServer
from counterprior.parsing import write_rows

SCRIPT = b'<svg xmlns="http://www.w3.org/2000/svg"><script>fetch("/state")</script></svg>'


def encoded(kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (32, 32), "red").save(buffer, kind)
    return buffer.getvalue()


FILES = {
    "a.svg": SCRIPT,
    "b.png": SCRIPT,
    "c.png": b"<!doctype html><script>fetch('/state')</script>",
    "d.svg": encoded("TIFF"),
    "e.html": encoded("PNG"),
    "f.svg": encoded("JPEG"),
    "g.png": encoded("WEBP"),
}
SHOWN = {"e.html": "image/png", "f.svg": "image/jpeg", "g.png": "image/webp"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AuditServer]:
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    rows = [{"sample_id": name, "image": name, "prompt": "p"} for name in FILES]
    write_rows(tmp_path / "sample.jsonl", rows)
    audit = Audit.open(tmp_path / "sample.jsonl", "verdict", tmp_path / "labels")
    with AuditServer(audit) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def get(server: AuditServer, path: str) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("GET", path, headers={"X-Token": server.token})
    answer = connection.getresponse()
    found = answer.status, answer.read(), dict(answer.getheaders())
    connection.close()
    return found


@pytest.mark.parametrize("name", FILES)
def test_files_are_raster_images_in_a_sandbox(name: str, server: AuditServer) -> None:
    status, body, headers = get(server, f"/image?task={name}&index=0")
    if name not in SHOWN:
        assert status == 400 and b"<script" not in body
        assert headers["Content-Type"] == "application/json"
        return
    assert (status, body, headers["Content-Type"]) == (200, FILES[name], SHOWN[name])
    assert headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_page_runs_its_own_script_only(server: AuditServer) -> None:
    status, page, headers = get(server, "/")
    policy = headers["Content-Security-Policy"]
    assert status == 200 and "script-src 'self'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2]
    assert not re.search(rb"<script(?![^>]*src=)|\son\w+=|javascript:", page)
    (source,) = re.findall(rb'<script src="([^"]+)"', page)
    status, script, headers = get(server, source.decode())
    assert status == 200 and headers["Content-Type"].startswith("text/javascript")
    assert b"innerHTML" not in script and b"eval(" not in script
