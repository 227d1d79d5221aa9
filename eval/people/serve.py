"""`counterprior audit serve`: a local page for human annotators; every click is on disk at once.

Loopback only, and nothing without the random token of this start. The page needs no package and no
network. Each annotator has a file of clicks in the folder; the last click on a field counts.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ...errors import CounterpriorError, UsageError
from ...storage import Lock as FileLock
from ...storage import RecordLog
from .clicks import Clicks, agreement, read_clicks
from .forms import ReviewForm, ReviewTask, open_form, read_tasks, shuffled
from .page_media import media_for_page

_NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")
_MOST = 20_000
"""Bytes of a request's body."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; img-src 'self' data:; media-src blob:; "
    "connect-src 'self'; style-src 'unsafe-inline'; script-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
}
_FILE_HEADERS = {**_HEADERS, "Content-Security-Policy": "default-src 'none'; sandbox"}
"""Headers of images and clips, which are untrusted: in their own tab they can't run or read
anything."""


class RequestRefused(UsageError):
    """A request that is answered with 400; the message says why."""


def check_name(annotator: str) -> None:
    """Raises RequestRefused for a name of an annotator that is not a plain word."""
    if not _NAME.fullmatch(annotator) or annotator.startswith("."):
        raise RequestRefused(
            "a name is 1 to 40 letters, digits, dots, dashes or underscores", code="bad-request"
        )


@dataclass
class Audit:
    """The tasks, and the labels that annotators gave so far."""

    form: ReviewForm
    """Form of the questions."""
    tasks: list[ReviewTask]
    """In the file's order."""
    folder: Path
    """Folder of the files of clicks."""
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def open(cls, rows: Path, kind: str, folder: Path) -> Audit:
        """Raises UsageError for an unknown kind, RowError for rows that can't be reviewed."""
        form = open_form(kind)
        return cls.of(form, read_tasks(rows, form), folder)

    @classmethod
    def of(cls, form: ReviewForm, tasks: Sequence[ReviewTask], folder: Path) -> Audit:
        """An audit with its clicks in a folder, which is created if missing."""
        folder.mkdir(parents=True, exist_ok=True)
        return cls(form, list(tasks), folder)

    def file(self, annotator: str) -> Path:
        """Path of an annotator's clicks. Raises RequestRefused for a name with other signs."""
        check_name(annotator)
        for other in self.folder.glob("*.jsonl"):
            # Some disks take both for one file.
            if other.stem != annotator and other.stem.casefold() == annotator.casefold():
                raise RequestRefused(
                    f"{annotator!r} is written {other.stem!r} here: use that, or another name",
                    code="bad-request",
                )
        return self.folder / f"{annotator}.jsonl"

    def labels(self, annotator: str) -> Clicks:
        """Task -> field -> value, as last clicked."""
        return read_clicks(self.file(annotator), self.form)

    def click(self, annotator: str, task: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Puts a label on disk, whole: what was clicked before and what is new.

        Raises RequestRefused for an unknown task, field or value.
        """
        task_row = next((entry for entry in self.tasks if entry.id == task), None)
        if task_row is None:
            raise RequestRefused(f"no task {task!r}", code="bad-request")
        allowed = {
            entry.name: {value for value, _ in task_row.options or entry.options}
            for entry in self.form.fields
        }
        for name, value in values.items():
            if name == "note" and self.form.note and isinstance(value, str):
                continue
            if name not in allowed or not isinstance(value, str) or value not in allowed[name]:
                raise RequestRefused(f"field {name!r} can't be {value!r}", code="bad-request")
        with self._lock:
            earlier = self.labels(annotator).get(task, {})
            record = {
                **dict(task_row.key),
                **earlier,
                **values,
                "annotator": annotator,
                "clicked": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            with RecordLog(self.file(annotator)) as log:
                log.append(record)
        return record

    def state(self, annotator: str) -> dict[str, Any]:
        """Everything that an annotator's page needs, without labels by others or by a judge."""
        return {
            "annotator": annotator,
            "fields": [field.model_dump() for field in self.form.fields],
            "note": self.form.note,
            "tasks": [
                {
                    "id": task.id,
                    "texts": task.texts,
                    "images": len(task.images),
                    "clips": task.clips,
                    "options": task.options,
                    "captions": task.captions,
                    "hints": dict(task.hints),
                }
                for task in shuffled(self.tasks, annotator)
            ],
            "labels": self.labels(annotator),
        }

    def agreement(self) -> dict[str, Any]:
        """Krippendorff's alpha of each field over all annotators, and how much each has done."""
        files = sorted(self.folder.glob("*.jsonl"))
        everyone = {path.stem: self.labels(path.stem) for path in files}
        wanted = {field.name for field in self.form.fields}
        return {
            "done": {
                name: sum(wanted <= clicked.keys() for clicked in labels.values())
                for name, labels in everyone.items()
            },
            "tasks": len(self.tasks),
            "alpha": agreement(everyone, self.form),
        }

    def image(self, task: str, index: int) -> Path:
        """An image or clip of a task. Raises RequestRefused for any other."""
        for candidate in self.tasks:
            if candidate.id == task and 0 <= index < len(candidate.images):
                return candidate.images[index]
        raise RequestRefused("no such image", code="bad-request")


LOCK = "audit.lock"
"""File in the folder of clicks: one server at a time writes them."""


class AuditServer(ThreadingHTTPServer):
    """Serves one audit on the loopback interface, and keeps other servers out of its folder."""

    daemon_threads = True

    def __init__(self, audit: Audit, port: int = 0) -> None:
        """port 0: any that is free. Raises InUseError while another process serves the folder."""
        self.audit = audit
        self.token = secrets.token_urlsafe(24)
        self._held: FileLock | None = FileLock(audit.folder / LOCK, f"the folder {audit.folder}")
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except BaseException:
            self._release()
            raise

    def server_close(self) -> None:
        super().server_close()
        self._release()

    def _release(self) -> None:
        if self._held is not None:
            self._held.release()
            self._held = None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says in one line what failed: a connection that broke is nobody's fault."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            print(f"counterprior: the page: {type(error).__name__}: {error}", file=sys.stderr)

    @property
    def url(self) -> str:
        """Address to open; it permits labeling."""
        return f"http://127.0.0.1:{self.server_port}/?token={self.token}"


class _Handler(BaseHTTPRequestHandler):
    server: AuditServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: request lines hold the token."""

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, work: Any) -> None:
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        # Another name for this address would be a page elsewhere that points here.
        hosts = (f"127.0.0.1:{self.server.server_port}", f"localhost:{self.server.server_port}")
        token = query.get("token", self.headers.get("X-Token", ""))
        if self.headers.get("Host") not in hosts or not hmac.compare_digest(
            token.encode(), self.server.token.encode()
        ):
            self.close_connection = True
            self._send(HTTPStatus.FORBIDDEN, b"open the address that the command printed")
            return
        try:
            work(address.path, query)
        except ConnectionError:
            self.close_connection = True
        except RecursionError:
            self._json({"error": "the request is nested too deeply"}, HTTPStatus.BAD_REQUEST)
        except (ValueError, KeyError) as error:
            self._json({"error": str(error)}, HTTPStatus.BAD_REQUEST)
        except (OSError, CounterpriorError) as error:
            reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
            print(f"counterprior: not saved: {reason}", file=sys.stderr, flush=True)
            self._json({"error": f"not saved: {reason}"}, HTTPStatus.INSUFFICIENT_STORAGE)

    def _get(self, path: str, query: Mapping[str, str]) -> None:
        audit = self.server.audit
        if path == "/":
            page = _package_file("page.html").replace(b"{token}", self.server.token.encode())
            self._send(HTTPStatus.OK, page, "text/html; charset=utf-8")
        elif path == "/page.js":
            self._send(HTTPStatus.OK, _package_file("page.js"), "text/javascript; charset=utf-8")
        elif path == "/state":
            self._json(audit.state(query["annotator"]))
        elif path == "/agreement":
            self._json(audit.agreement())
        elif path == "/image":
            file = audit.image(query["task"], int(query["index"]))
            data, kind = media_for_page(file, audit.form.blind, audit.folder)
            self._send(HTTPStatus.OK, data, kind, _FILE_HEADERS)
        else:
            self._send(HTTPStatus.NOT_FOUND, b"nothing here")

    def _post(self, path: str, query: Mapping[str, str]) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        if path != "/click" or not 0 < length <= _MOST:
            self.close_connection = True
            raise RequestRefused("a click is a short JSON object", code="bad-request")
        body = json.loads(self.rfile.read(length))
        if not isinstance(body, dict) or not isinstance(body.get("values"), dict):
            raise RequestRefused(
                "a click is an object with annotator, task and values", code="bad-request"
            )
        record = self.server.audit.click(str(body["annotator"]), str(body["task"]), body["values"])
        self._json(record)

    def _json(self, data: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(status, json.dumps(data).encode(), "application/json")

    def _send(
        self,
        status: HTTPStatus,
        body: bytes,
        kind: str = "text/plain; charset=utf-8",
        headers: Mapping[str, str] = _HEADERS,
    ) -> None:
        self.send_response(status)
        of_body = {"Content-Type": kind, "Content-Length": str(len(body))}
        for name, value in {**of_body, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _package_file(name: str) -> bytes:
    """A file of this package."""
    return resources.files(__package__).joinpath(name).read_bytes()


def serve(audit: Audit, port: int = 0) -> None:
    """Serves until it is interrupted; prints the address first."""
    with AuditServer(audit, port) as server:
        print(f"open {server.url}\nlabels go to {audit.folder}; stop with Ctrl-C", flush=True)
        server.serve_forever()
