"""The test Hub speaks the real one's protocol: to the real clients, to git, request by request."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from loopback_hub import TOKEN, LoopbackHub, Request

CLIENT = Path(__file__).parents[1] / "fixtures" / "loopback_client.py"
REPO = "tester/bench"
API = f"/api/datasets/{REPO}"
ROWS = "words/test-00000-of-00001.parquet"
OLDER = {
    "datasets 3.6": ["datasets==3.6.0", "huggingface_hub==0.36.2", "pandas<3"],
    "datasets 4.8": ["datasets==4.8.0", "huggingface_hub==1.33.0"],
}
"""Clients in environments of their own; they speak LFS."""


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    hub: LoopbackHub,
    method: str,
    target: str,
    body: bytes = b"",
    *,
    token: str | None = TOKEN,
    headers: dict[str, str] | None = None,
) -> Reply:
    """One plain request; `target` is a path on the Hub, or a whole URL."""
    parts = urlsplit(target if target.startswith("http") else hub.url + target)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    sent = {"Authorization": f"Bearer {token}"} if token else {}
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, path, body or None, sent | (headers or {}))
        reply = connection.getresponse()
        named = {name.lower(): value for name, value in reply.getheaders()}
        return Reply(reply.status, named, reply.read())
    finally:
        connection.close()


def payload(files: dict[str, bytes], parent: str | None = None) -> bytes:
    header = {"summary": "Files"} | ({"parentCommit": parent} if parent else {})
    lines: list[dict[str, Any]] = [{"key": "header", "value": header}]
    for path, data in files.items():
        value = {"path": path, "encoding": "base64", "content": base64.b64encode(data).decode()}
        lines.append({"key": "file", "value": value})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def operation(key: str, **value: Any) -> bytes:
    return payload({}) + json.dumps({"key": key, "value": value}).encode()


def commit(hub: LoopbackHub, files: dict[str, bytes], parent: str | None = None) -> Reply:
    return ask(hub, "POST", f"{API}/commit/main", payload(files, parent))


@pytest.fixture
def hub(loopback_hub: LoopbackHub) -> LoopbackHub:
    """A Hub with one repository."""
    loopback_hub.create(REPO)
    return loopback_hub


# The real clients


@dataclass(frozen=True)
class Played:
    """What a client did on a Hub, and what the Hub then held."""

    client: str
    wrote: dict[str, Any]
    read: dict[str, Any]
    requests: list[Request]
    trees: dict[str, dict[str, bytes]]
    root: Path


CLIENTS = [
    pytest.param("lfs", marks=pytest.mark.slow),
    *(pytest.param(name, marks=pytest.mark.lane) for name in ("xet", *OLDER)),
]


@pytest.fixture(scope="module", params=CLIENTS)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Writing and then reading, in one process of its own; the first upload fails once."""
    root = tmp_path_factory.mktemp("played")
    python = sys.executable
    if request.param in OLDER:
        subprocess.run([sys.executable, "-m", "venv", root / "older"], check=True)
        python = str(root / "older" / "bin" / "python")
        wanted = OLDER[request.param]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    with LoopbackHub(root / "hub", transport="xet" if request.param == "xet" else "lfs") as hub:
        hub.fail("GET|PUT", "^/storage/|/xet-write-token/")
        environment = hub.environment
        if request.param in OLDER:
            environment.pop("PYTHONPATH", None)
        command = [python, str(CLIENT), str(root / "client")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        saw = json.loads(done.stdout)
        for part in saw:
            print(f"{request.param}: {part} saw {len(saw[part])} things")
        trees = {revision: hub.tree(REPO, revision) for revision in ("main", "v1.0.0")}
        url = hub.url
    saw["write"] = json.loads(json.dumps(saw["write"]).replace(url, "HUB"))
    return Played(
        request.param, saw["write"], saw["read"], hub.requests, trees=trees, root=hub.root
    )


def test_a_client_writes(played: Played) -> None:
    saw = played.wrote
    assert saw["whoami"] == "tester"
    assert saw["url"] == saw["exist_ok"] == f"HUB/datasets/{REPO}"
    assert saw["create again"] == saw["tag again"] == saw["branch again"] == "HfHubHTTPError 409"
    assert saw["empty"] == [".gitattributes"]
    assert saw["stale"] == "HfHubHTTPError 412"
    assert saw["unchanged"] == saw["first"], "a commit of what is there is none"
    assert saw["bad card"] == "ValueError"
    assert saw["no tag"] == "RevisionNotFoundError 404"
    assert saw["no repo"] == "RepositoryNotFoundError 404"
    assert saw["no file"].endswith("EntryNotFoundError 404")
    kept = [".gitattributes", "README.md", ROWS]
    assert saw["folder"] == sorted([*kept, "b.txt", "deep/down/c.txt", "notes/a.txt"])
    assert saw["deleted"] == saw["branch"] == kept
    assert saw["pull request"] == "refs/pr/1"
    assert set(saw["refs"]) == {
        "refs/heads/main",
        "refs/heads/next/one",
        "refs/tags/v1.0.0",
        "refs/pr/1",
    }
    assert saw["refs"]["refs/tags/v1.0.0"] == saw["first"]
    assert saw["refs"]["refs/heads/next/one"] == saw["on the branch"]
    assert len(set(saw["refs"].values())) == 4
    assert saw["titles"][2:] == ["Release 1.0.0", "initial commit"]
    assert len(saw["titles"]) == len(set(saw["dates"])) == 4
    assert saw["dates"] == sorted(saw["dates"], reverse=True)


def test_a_client_reads(played: Played) -> None:
    saw, tree = played.read, played.trees["v1.0.0"]
    assert saw["sha"] == played.wrote["first"]
    assert saw["head"] == played.wrote["refs"]["refs/heads/main"]
    assert saw["license"] == "cc-by-4.0"
    assert {path: size for path, (size, _, _) in saw["blobs"].items()} == {
        path: len(data) for path, data in tree.items()
    }
    assert {path: sha for path, (_, _, sha) in saw["blobs"].items() if sha} == {
        ROWS: hashlib.sha256(tree[ROWS]).hexdigest()
    }
    assert saw["last commits"] == {
        ".gitattributes": "initial commit",
        "README.md": "Release 1.0.0",
        "words": played.wrote["titles"][1],
        ROWS: played.wrote["titles"][1],
    }
    assert saw["folder"] == [ROWS]
    assert saw["top"] == [".gitattributes", "README.md", "notes", "words"]
    assert set(saw["paths"]) == {"words", ROWS}
    assert saw["xet"] == (played.client == "xet")
    assert saw["text"] == "hello"
    assert saw["rows"] == len(tree[ROWS])
    assert saw["snapshot"] == sorted(tree)
    assert saw["exists"] == [True, False]
    for name in ("no folder", "no file"):
        assert saw[name].endswith("EntryNotFoundError 404")
    assert saw["no revision"] == "RevisionNotFoundError 404"
    assert saw["no repo"] == "RepositoryNotFoundError 404"
    assert saw["anonymous"] == REPO
    assert saw["hidden"] == "RepositoryNotFoundError 401"
    assert saw["wrong token"] == "HfHubHTTPError 401"
    assert saw["loaded"] == {
        "main": [1, 2, 3, 4],
        "v1.0.0": [1, 2, 3],
        saw["sha"]: [1, 2, 3],
        "refs/pr/1": [9],
    }
    assert saw["streamed"] == ["word 1", "word 2", "word 3"]


def test_clients_use_the_transport_and_retry_after_the_fault(played: Played) -> None:
    log = played.requests
    put = [r.status for r in log if r.method == "PUT" and r.path.startswith("/storage/")]
    xet = [r.status for r in log if "/xet-write-token/" in r.path]
    used, unused = (xet, put) if played.client == "xet" else (put, xet)
    assert used[:2] == [503, 200] and not unused, "tried again after the fault"
    # Streaming is the last thing a reader does, and asks for ranges of the data.
    fetched = [r for r in log if r.method == "GET" and r.path.startswith("/storage/")]
    assert fetched[-1].status == 206
    assert len([r for r in log if r.status >= 500]) == 1
    if played.client not in OLDER:
        # What `datasets` asks of another host, the viewer's, ends here too.
        assert {r.status for r in log if r.path == "/info"} == {404}


def test_stores_no_token(played: Played) -> None:
    assert TOKEN not in repr(played.requests)
    for path in played.root.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


# Commits


def test_commits_have_the_ids_of_git(hub: LoopbackHub, tmp_path: Path) -> None:
    some = {"a/b.txt": b"one", "a.txt": b"two", "a-b": b"three", "z/y/x": b"four"}
    hub.commit(REPO, some, "Some files")
    hub.commit(REPO, {"a.txt": None, "z/y/x": b"five"}, "A change")
    work = tmp_path / "work"
    work.mkdir()

    def git(*words: str, date: str = "") -> str:
        who = {"NAME": "hub", "EMAIL": "hub@localhost", "DATE": date}
        named = {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()}
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)} | named
        done = subprocess.run(
            ["git", *words], cwd=work, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "--quiet")
    parents: list[str] = []
    for told in reversed(ask(hub, "GET", f"{API}/commits/main").json):
        git("read-tree", "--empty")
        files = hub.tree(REPO, told["id"])
        for path, data in files.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_bytes(data)
        git("add", *files)
        tree = git("write-tree")
        entries = ask(hub, "GET", f"{API}/tree/{told['id']}?recursive=1").json
        assert {entry["path"]: entry["oid"] for entry in entries} == {
            line.split("\t")[1]: line.split("\t")[0].split()[2]
            for line in git("ls-tree", "-r", "-t", tree).splitlines()
        }
        made = git("commit-tree", tree, *parents, "-m", told["title"], date=told["date"])
        assert made == told["id"]
        parents = ["-p", made]


# Single requests


@pytest.mark.parametrize("path", ["a.txt", ROWS])
def test_serves_ranges_of_text_and_of_lfs_files(hub: LoopbackHub, path: str) -> None:
    data = b"0123456789"
    hub.commit(REPO, {path: data})
    url = ask(hub, "HEAD", f"/datasets/{REPO}/resolve/main/{path}").headers.get("location")

    def fetched(wanted: str) -> tuple[int, str, bytes]:
        target = url or f"/datasets/{REPO}/resolve/main/{path}"
        reply = ask(hub, "GET", target, token=None, headers={"Range": wanted})
        return reply.status, reply.headers["content-range"], reply.body

    assert fetched("bytes=0-3") == (206, "bytes 0-3/10", data[:4])
    assert fetched("bytes=4-") == (206, "bytes 4-9/10", data[4:])
    assert fetched("bytes=-3") == (206, "bytes 7-9/10", data[-3:])
    assert fetched("bytes=5-99") == (206, "bytes 5-9/10", data[5:])
    assert fetched("bytes=-99") == (206, "bytes 0-9/10", data)
    assert fetched("bytes=10-")[:2] == (416, "bytes */10")


def test_stores_lfs_content_by_signed_urls_alone(hub: LoopbackHub) -> None:
    sha256 = hashlib.sha256(b"rows").hexdigest()
    body = json.dumps({"objects": [{"oid": sha256, "size": 4}]}).encode()
    batch = f"/datasets/{REPO}.git/info/lfs/objects/batch"
    actions = ask(hub, "POST", batch, body).json["objects"][0]["actions"]
    url = actions["upload"]["href"]
    assert urlsplit(url).netloc != urlsplit(hub.url).netloc
    assert ask(hub, "PUT", url, b"rows").status == 400, "a token must not reach the storage"
    assert ask(hub, "PUT", url.partition("?")[0], b"rows", token=None).status == 403
    assert ask(hub, "PUT", url + "0", b"rows", token=None).status == 403
    assert ask(hub, "PUT", url, b"other", token=None).status == 400, "not what was announced"
    pointer = operation("lfsFile", path=ROWS, algo="sha256", oid=sha256, size=4)
    assert ask(hub, "POST", f"{API}/commit/main", pointer).status == 400, "never uploaded"
    assert ask(hub, "PUT", url, b"rows", token=None).status == 200
    wrong = json.dumps({"oid": sha256, "size": 5}).encode()
    assert ask(hub, "POST", actions["verify"]["href"], wrong).status == 400
    assert ask(hub, "POST", f"{API}/commit/main", pointer).status == 200
    assert "actions" not in ask(hub, "POST", batch, body).json["objects"][0]
    assert hub.tree(REPO, "main")[ROWS] == b"rows"


WRITES = [
    ("POST", "/api/repos/create"),
    ("DELETE", "/api/repos/delete"),
    ("POST", f"{API}/preupload/main"),
    ("POST", f"{API}/commit/main"),
    ("POST", f"{API}/tag/main"),
    ("DELETE", f"{API}/tag/v1"),
    ("POST", f"{API}/branch/b"),
    ("DELETE", f"{API}/branch/b"),
    ("POST", f"/datasets/{REPO}.git/info/lfs/objects/batch"),
    ("POST", f"/datasets/{REPO}.git/info/lfs/verify"),
    ("GET", "/api/whoami-v2"),
]
READS = [
    *(API, f"{API}/revision/main", f"{API}/refs", f"{API}/tree/main", f"{API}/commits/main"),
    *(f"/datasets/{REPO}/resolve/main/.gitattributes", "/api/datasets/tester/nope"),
]
REFUSED: list[tuple[str, str, bytes, int, str | None]] = [
    ("GET", "/api/datasets/tester/nope", b"", 404, "RepoNotFound"),
    ("GET", f"{API}/revision/v9", b"", 404, "RevisionNotFound"),
    ("GET", f"{API}/tree/v9", b"", 404, "RevisionNotFound"),
    ("GET", f"{API}/tree/main/nope", b"", 404, "EntryNotFound"),
    ("DELETE", f"{API}/tag/v9", b"", 404, "RevisionNotFound"),
    ("DELETE", f"{API}/branch/main", b"", 403, None),
    ("POST", f"{API}/branch/main", b"", 409, None),
    ("POST", f"{API}/tag/main", b'{"tag": "v1"}', 409, None),
    ("POST", f"{API}/commit/v9", payload({"a": b""}), 404, "RevisionNotFound"),
    ("POST", f"{API}/commit/v1", payload({"a": b""}), 400, None),
    ("POST", f"{API}/commit/main", payload({"../a": b""}), 400, None),
    ("POST", f"{API}/commit/main", payload({"/a": b""}), 400, None),
    ("POST", f"{API}/commit/main", payload({"README.md": b"---\n- a\n---\n"}), 400, None),
    ("POST", f"{API}/commit/main", payload({"README.md": b"---\na: [\n---\n"}), 400, None),
    ("GET", f"{API}/revision/v%C3%A9", b"", 404, "RevisionNotFound"),
    ("POST", f"{API}/commit/main", operation("moved", path="a"), 400, None),
    ("POST", f"{API}/commit/main", operation("deletedFile", path="f"), 404, "EntryNotFound"),
    ("POST", "/api/repos/create", b'{"name": "m", "type": "space"}', 400, None),
    ("POST", "/api/repos/create", b'{"name": "..", "type": "dataset"}', 400, None),
    ("GET", "/api/models", b"", 404, None),
]


def test_refuses_what_the_hub_refuses(hub: LoopbackHub) -> None:
    old = hub.commit(REPO, {"f/a.txt": b"a"})
    ask(hub, "POST", f"{API}/tag/main", b'{"tag": "v1"}')
    for method, target, body, status, code in REFUSED:
        reply = ask(hub, method, target, body)
        refused = (reply.status, reply.headers.get("x-error-code"))
        assert refused == (status, code), (method, target, body)
        assert reply.json["error"].split()[0] == reply.headers["x-error-message"].split()[0]
    body = json.dumps({"name": "bench", "type": "dataset", "tag": "v1"}).encode()
    for method, target in WRITES:
        for token in (None, "hf_wrong"):
            reply = ask(hub, method, target, body, token=token)
            assert reply.status == 401, (method, target, token)
            wrong = "Invalid credentials in Authorization header"
            assert (reply.headers["x-error-message"] == wrong) == (token == "hf_wrong")
    assert (hub.head(REPO), hub.tags(REPO)) == (old, {"v1": old})


def test_hides_a_private_repository_without_a_token(loopback_hub: LoopbackHub) -> None:
    loopback_hub.create(REPO, private=True)
    for target in READS:
        reply = ask(loopback_hub, "GET", target, token=None)
        assert (reply.status, reply.headers["x-error-code"]) == (401, "RepoNotFound"), target
        assert ask(loopback_hub, "GET", target).status == (404 if "nope" in target else 200)
    assert ask(loopback_hub, "POST", f"{API}/paths-info/main", b"paths=a", token=None).status == 401
    assert ask(loopback_hub, "GET", API).json["private"] is True


def test_reports_errors_and_warnings_of_a_card(hub: LoopbackHub) -> None:
    def reported(text: str) -> tuple[int, int, int]:
        body = json.dumps({"content": text, "repoType": "dataset"}).encode()
        reply = ask(hub, "POST", "/api/validate-yaml", body, token=None)
        return reply.status, len(reply.json["errors"]), len(reply.json["warnings"])

    assert reported("---\ntags: [a]\n---\n# A\n") == (200, 0, 0)
    assert reported("# A\n") == (200, 0, 1)
    for text in ("---\na: [\n---\n", "---\ntags: a\n---\n", "---\n- a\n---\n"):
        assert reported(text)[:2] == (400, 1), text


# Faults


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("cut", [False, True])
def test_a_fault_is_of_one_request_which_is_done_where_applied(
    hub: LoopbackHub, cut: bool, applied: bool
) -> None:
    old = hub.head(REPO)
    hub.fail("POST", "/commit/main$", status=502, cut=cut, applied=applied)
    assert ask(hub, "GET", API).status == 200, "only what matches fails"
    if cut:
        with pytest.raises(http.client.RemoteDisconnected):
            commit(hub, {"a": b"a"}, old)
    else:
        assert commit(hub, {"a": b"a"}, old).status == 502
    assert (hub.head(REPO) != old) == applied == ("a" in hub.tree(REPO, "main"))
    assert commit(hub, {"a": b"a"}, old).status == (412 if applied else 200), "the head moved"
    statuses = [r.status for r in hub.requests if "/commit/" in r.path]
    assert statuses == [0 if cut else 502, 412 if applied else 200]


def test_an_action_comes_before_the_request_and_once(hub: LoopbackHub) -> None:
    old = hub.head(REPO)
    hub.before("POST", "/commit/", lambda: hub.commit(REPO, {"theirs": b"t"}, "Theirs"))
    assert commit(hub, {"ours": b"o"}, old).status == 412
    assert set(hub.tree(REPO, "main")) == {".gitattributes", "theirs"}
    assert commit(hub, {"ours": b"o"}, hub.head(REPO)).status == 200


def test_raises_its_own_errors_at_the_end(tmp_path: Path) -> None:
    def broken() -> None:
        raise LookupError("an action that fails")

    with pytest.raises(ExceptionGroup) as raised, LoopbackHub(tmp_path) as hub:
        hub.before("GET", "/api", broken)
        assert ask(hub, "GET", "/api/whoami-v2").status == 500
    assert isinstance(raised.value.exceptions[0], LookupError)
