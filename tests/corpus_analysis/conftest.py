"""Servers of images and miners in this process."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Sequence

import pytest

from counterprior.corpus_analysis.mining.mine_shard import Job, MineShards, ShardEntry, ShardMiner
from counterprior.eval.workers.farm import Scale


@pytest.fixture
def images() -> Iterator[tuple[str, dict[str, bytes]]]:
    """A loopback server's address and what it serves."""
    bodies: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            body = bodies.get(self.path)
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    server.shutdown()
    server.server_close()


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mines in this process: one model for all tests."""
    monkeypatch.setattr("counterprior.corpus_analysis.mining.mine_source.farm", _inline_farm)


_miners: list[ShardMiner] = []


def _inline_farm(
    task: MineShards, work: Sequence[Job], scale: Scale, **options: object
) -> Iterator[tuple[Job, ShardEntry]]:
    if not _miners:
        _miners.append(task.open())
    _miners[0].settings = task.settings
    for job in work:
        yield job, _miners[0].mine(job)
