"""The test Hub against the real clients, against git, and under every fault it can play."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import loopback_hub.store as loopback_hub_store
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
    "lfs",
    *(pytest.param(name, marks=pytest.mark.lane) for name in ("xet", *OLDER)),
]


@pytest.fixture(scope="module", params=CLIENTS)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Writing and then reading, a process each; the first upload fails once."""
    root = tmp_path_factory.mktemp("played")
    python = sys.executable
    if request.param in OLDER:
        subprocess.run([sys.executable, "-m", "venv", root / "older"], check=True)
        python = str(root / "older" / "bin" / "python")
        wanted = OLDER[request.param]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    saw = {}
    with LoopbackHub(root / "hub", transport="xet" if request.param == "xet" else "lfs") as hub:
        hub.fail("GET|PUT", "^/storage/|/xet-write-token/")
        for part in ("write", "read"):
            (root / part).mkdir()
            command = [python, str(CLIENT), part, str(root / part)]
            environment = hub.environment
            if request.param in OLDER:
                environment.pop("PYTHONPATH", None)
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-3000:]
            saw[part] = json.loads(done.stdout)
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


def test_the_clients_went_the_way_they_were_sent(played: Played) -> None:
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


def test_the_token_is_nowhere(played: Played) -> None:
    assert TOKEN not in repr(played.requests)
    for path in played.root.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


# Commits


def test_ids_are_those_of_git(hub: LoopbackHub, tmp_path: Path) -> None:
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


def test_the_same_work_gives_the_same_ids(tmp_path: Path) -> None:
    def head(name: str, data: bytes = b"a", message: str = "m", before: bytes = b"0") -> str:
        with LoopbackHub(tmp_path / name) as hub:
            hub.create(REPO)
            hub.commit(REPO, {"before": before})
            return hub.commit(REPO, {"a": data, "before": b"1"}, message)

    first = head("one")
    assert head("two") == first
    others = {head("three", data=b"b"), head("four", message="n"), head("five", before=b"2")}
    assert len(others | {first}) == 4


def test_the_state_outlives_the_server(hub: LoopbackHub) -> None:
    sha = hub.commit(REPO, {"a.txt": b"a", ROWS: b"rows"})
    assert ask(hub, "POST", f"{API}/tag/{sha}", b'{"tag": "v1"}').status == 200
    url = hub.url
    waiting = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    waiting.request("GET", API)
    assert waiting.getresponse().read()
    hub.stop()
    with pytest.raises(ConnectionRefusedError):
        ask(hub, "GET", API)
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        waiting.request("GET", API)
        waiting.getresponse()
    waiting.close()
    hub.start()
    assert hub.url == url
    assert ask(hub, "GET", API).json["sha"] == sha
    with LoopbackHub(hub.root) as again:
        assert again.exists(REPO) and not again.exists("tester/nope")
        assert (again.head(REPO), again.tags(REPO)) == (sha, {"v1": sha})
        assert again.tree(REPO, "v1")[ROWS] == b"rows"


def test_a_crash_leaves_the_old_state_or_the_new(
    loopback_hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends before each of the writes in turn."""
    replace = os.replace
    survived = 0

    def crash_at(number: int) -> Callable[[str, Path], None]:
        left = iter(range(number))

        def crashing(source: str, target: Path) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt
            replace(source, target)

        return crashing

    for number in range(20):
        repo = f"tester/bench-{number}"
        loopback_hub.create(repo)
        old = loopback_hub.head(repo)
        with monkeypatch.context() as patched:
            patched.setattr(loopback_hub_store.os, "replace", crash_at(number))
            try:
                made = loopback_hub.commit(repo, {"a": b"a", ROWS: b"rows"}, "New")
            except KeyboardInterrupt:
                assert loopback_hub.head(repo) == old
                assert set(loopback_hub.tree(repo, "main")) == {".gitattributes"}
            else:
                survived += 1
                assert loopback_hub.head(repo) == made
                assert loopback_hub.tree(repo, "main")[ROWS] == b"rows"
            patched.setattr(loopback_hub_store.os, "replace", crash_at(number))
            with suppress(KeyboardInterrupt):
                loopback_hub.create(f"tester/new-{number}")
        made_it = loopback_hub.exists(f"tester/new-{number}")
        assert not made_it or loopback_hub.tree(f"tester/new-{number}", "main")
        assert loopback_hub.commit(repo, {"b": b"b"}, "After the crash")
    assert 10 < survived < 20


def test_commits_at_once_all_count(hub: LoopbackHub) -> None:
    def one(number: int) -> None:
        files = {f"{number}.txt": b"x"}
        if number % 3 == 0:
            hub.commit(REPO, files)
        elif number % 3 == 1:
            assert commit(hub, files).status == 200
        else:
            proposal = ask(hub, "POST", f"{API}/commit/main?create_pr=1", payload(files))
            assert proposal.status == 200

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(24)))
    merged = {f"{number}.txt" for number in range(24) if number % 3 != 2}
    assert set(hub.tree(REPO, "main")) == {".gitattributes", *merged}
    proposals = ask(hub, "GET", f"{API}/refs?include_prs=1").json["pullRequests"]
    assert {proposal["ref"] for proposal in proposals} == {f"refs/pr/{n}" for n in range(1, 9)}


# Reading files, and who may


@pytest.mark.parametrize("path", ["a.txt", ROWS])
@pytest.mark.parametrize(
    ("wanted", "part"),
    [
        ("bytes=0-3", slice(0, 4)),
        ("bytes=4-", slice(4, None)),
        ("bytes=-3", slice(-3, None)),
        ("bytes=5-99", slice(5, None)),
        ("bytes=-99", slice(None)),
    ],
)
def test_ranges(hub: LoopbackHub, path: str, wanted: str, part: slice) -> None:
    data = b"0123456789"
    hub.commit(REPO, {path: data})
    url = f"/datasets/{REPO}/resolve/main/{path}"
    reply = ask(hub, "GET", url, headers={"Range": wanted})
    if reply.status == 302:
        reply = ask(hub, "GET", reply.headers["location"], token=None, headers={"Range": wanted})
    assert (reply.status, reply.body) == (206, data[part])
    first, last, _ = part.indices(10)
    assert reply.headers["content-range"] == f"bytes {first}-{last - 1}/10"


def test_a_range_outside_is_refused(hub: LoopbackHub) -> None:
    hub.commit(REPO, {"a.txt": b"0123456789"})
    reply = ask(hub, "GET", f"/datasets/{REPO}/resolve/main/a.txt", headers={"Range": "bytes=10-"})
    assert (reply.status, reply.headers["content-range"]) == (416, "bytes */10")


def test_resolve_tells_what_a_cache_needs(hub: LoopbackHub) -> None:
    sha = hub.commit(REPO, {"a.txt": b"text", ROWS: b"rows"})
    text = ask(hub, "HEAD", f"/datasets/{REPO}/resolve/main/a.txt")
    assert (text.status, text.body, text.headers["content-length"]) == (200, b"", "4")
    assert text.headers["x-repo-commit"] == sha
    assert text.headers["etag"] == f'"{hashlib.sha1(b"blob 4" + bytes(1) + b"text").hexdigest()}"'
    rows = ask(hub, "HEAD", f"/datasets/{REPO}/resolve/{sha}/{ROWS}")
    assert (rows.status, rows.headers["x-repo-commit"]) == (302, sha)
    assert rows.headers["x-linked-etag"] == f'"{hashlib.sha256(b"rows").hexdigest()}"'
    assert rows.headers["x-linked-size"] == "4"
    missing = ask(hub, "HEAD", f"/datasets/{REPO}/resolve/main/nope")
    assert (missing.status, missing.headers["x-error-code"]) == (404, "EntryNotFound")
    assert missing.headers["x-repo-commit"] == sha


def test_a_private_repository_is_hidden(loopback_hub: LoopbackHub) -> None:
    sha = loopback_hub.create(REPO, private=True)
    reads = [API, f"{API}/revision/{sha}", f"{API}/refs", f"{API}/tree/main", f"{API}/commits/main"]
    reads += [f"/datasets/{REPO}/resolve/main/.gitattributes", "/api/datasets/tester/nope"]
    for target in reads:
        reply = ask(loopback_hub, "GET", target, token=None)
        assert (reply.status, reply.headers["x-error-code"]) == (401, "RepoNotFound"), target
        assert ask(loopback_hub, "GET", target).status == (404 if "nope" in target else 200)
    reply = ask(loopback_hub, "POST", f"{API}/paths-info/main", b"paths=a", token=None)
    assert reply.status == 401
    assert ask(loopback_hub, "GET", API).json["private"] is True


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


@pytest.mark.parametrize("token", [None, "hf_wrong"])
@pytest.mark.parametrize(("method", "target"), WRITES)
def test_nobody_writes_without_the_token(
    hub: LoopbackHub, method: str, target: str, token: str | None
) -> None:
    body = json.dumps({"name": "bench", "type": "dataset", "tag": "v1"}).encode()
    reply = ask(hub, method, target, body, token=token)
    assert reply.status == 401
    wrong = "Invalid credentials in Authorization header"
    assert (reply.headers["x-error-message"] == wrong) == (token == "hf_wrong")
    assert hub.exists(REPO) and not hub.tags(REPO)


def test_contents_are_put_and_fetched_by_signed_urls_alone(hub: LoopbackHub) -> None:
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


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "code"),
    [
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
    ],
)
def test_refusals(
    hub: LoopbackHub, method: str, target: str, body: bytes, status: int, code: str | None
) -> None:
    old = hub.commit(REPO, {"f/a.txt": b"a"})
    ask(hub, "POST", f"{API}/tag/main", b'{"tag": "v1"}')
    reply = ask(hub, method, target, body)
    assert (reply.status, reply.headers.get("x-error-code")) == (status, code)
    assert reply.json["error"].split()[0] == reply.headers["x-error-message"].split()[0]
    assert (hub.head(REPO), hub.tags(REPO)) == (old, {"v1": old})


def test_cards_are_checked(hub: LoopbackHub) -> None:
    def check(text: str) -> Reply:
        body = json.dumps({"content": text, "repoType": "dataset"}).encode()
        return ask(hub, "POST", "/api/validate-yaml", body, token=None)

    good = check("---\ntags: [a]\n---\n# A\n")
    assert (good.status, good.json) == (200, {"errors": [], "warnings": []})
    bare = check("# A\n")
    assert (bare.status, len(bare.json["warnings"])) == (200, 1)
    for text in ("---\na: [\n---\n", "---\ntags: a\n---\n", "---\n- a\n---\n"):
        wrong = check(text)
        assert (wrong.status, len(wrong.json["errors"])) == (400, 1)


# Faults


def test_a_failed_request_is_not_done(hub: LoopbackHub) -> None:
    old = hub.head(REPO)
    hub.fail("POST", "/commit/main$", status=502, times=2)
    assert [commit(hub, {"a": b"a"}).status for _ in range(2)] == [502, 502]
    assert hub.head(REPO) == old
    assert ask(hub, "GET", API).status == 200, "only what matches fails"
    assert commit(hub, {"a": b"a"}).status == 200
    assert [r.status for r in hub.requests if "/commit/" in r.path] == [502, 502, 200]


def test_a_lost_response_is_done(hub: LoopbackHub) -> None:
    old = hub.head(REPO)
    hub.fail("POST", "/commit/", applied=True)
    assert commit(hub, {"a": b"a"}, old).status == 503
    assert hub.tree(REPO, "main")["a"] == b"a"
    assert commit(hub, {"a": b"a"}, old).status == 412, "the head moved"


@pytest.mark.parametrize("applied", [False, True])
def test_a_cut_connection(hub: LoopbackHub, applied: bool) -> None:
    hub.fail("POST", "/tag/", cut=True, applied=applied)
    with pytest.raises(http.client.RemoteDisconnected):
        ask(hub, "POST", f"{API}/tag/main", b'{"tag": "v1"}')
    assert hub.tags(REPO) == ({"v1": hub.head(REPO)} if applied else {})
    assert hub.requests[-1] == Request("POST", f"{API}/tag/main", 0, 0, 13)


def test_somebody_elses_commit_comes_first(hub: LoopbackHub) -> None:
    old = hub.head(REPO)
    hub.before("POST", "/commit/", lambda: hub.commit(REPO, {"theirs": b"t"}, "Theirs"))
    assert commit(hub, {"ours": b"o"}, old).status == 412
    assert set(hub.tree(REPO, "main")) == {".gitattributes", "theirs"}
    assert commit(hub, {"ours": b"o"}, hub.head(REPO)).status == 200, "once only"


def test_a_client_is_killed_while_it_asks(hub: LoopbackHub) -> None:
    """The request had arrived: the Hub goes on, and the tag comes."""
    program = "\n".join(
        [
            "import sys, urllib.request as u",
            "sent = {'Authorization': 'Bearer ' + sys.stdin.read()}",
            'u.urlopen(u.Request(sys.argv[1], b\'{"tag": "v1"}\', sent))',
        ]
    )
    command = [sys.executable, "-c", program, f"{hub.url}{API}/tag/main"]
    client = subprocess.Popen(command, stdin=subprocess.PIPE)
    hub.before("POST", "/tag/", client.kill)
    client.communicate(TOKEN.encode())
    assert client.returncode == -signal.SIGKILL
    assert ask(hub, "GET", API).status == 200
    deadline = time.monotonic() + 30  # the thread that answers the dead client may still be at it
    while not hub.tags(REPO) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert hub.tags(REPO) == {"v1": hub.head(REPO)}


def test_what_the_hub_could_not_serve_is_raised(tmp_path: Path) -> None:
    def broken() -> None:
        raise LookupError("an action that fails")

    with pytest.raises(ExceptionGroup) as raised, LoopbackHub(tmp_path) as hub:
        hub.before("GET", "/api", broken)
        assert ask(hub, "GET", "/api/whoami-v2").status == 500
    assert isinstance(raised.value.exceptions[0], LookupError)
