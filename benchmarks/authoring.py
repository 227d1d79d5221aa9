"""How much of a model server's throughput authoring keeps, and what the ledger costs.

    python benchmarks/authoring.py

starts a loopback server that answers after 200 ms, keeps 32 calls under way, and compares with
bare keep-alive connections in the same run. Then it times the ledger at 100,000 calls. It prints
one JSON object. Speeds depend on the machine and its load, the two shares less so. Recording a call
mostly waits for the disk: `bare_append_ms` is the time to append a line and nothing else.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local
from typing import Any

from counterprior.agents.backends import open_backend
from counterprior.agents.backends.scripted import ScriptedBackend
from counterprior.agents.budget import Budget, PriceTable
from counterprior.agents.caller import Call, Caller
from counterprior.agents.chat import ChatRequest, Completion, Usage
from counterprior.agents.ledger import Ledger

LATENCY = 0.2
CONCURRENCY = 32
CALLS = 30 * CONCURRENCY
RECORDED = 100_000

ANSWER = json.dumps(
    {"scenes": ["a scene of some length, told in about as many words as usual"] * 8}
)
BODY = json.dumps(
    {
        "id": "c",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": ANSWER},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 900, "completion_tokens": 120},
    }
).encode()
RESPONSE = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
    + str(len(BODY)).encode()
    + b"\r\n\r\n"
    + BODY
)


async def serve(ready: Any) -> None:
    """Answers every request after `LATENCY` seconds, on keep-alive connections."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                await reader.readexactly(length)
                await asyncio.sleep(LATENCY)
                writer.write(RESPONSE)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def run_server(ready: Any) -> None:
    asyncio.run(serve(ready))


def request(number: int) -> ChatRequest:
    return ChatRequest("writer", "Rules of the role. " * 150, (f"Law {number}. " * 20,), 2000)


def bare(port: int) -> float:
    """Calls per second of 32 threads that only send and receive."""
    mine = local()
    body = json.dumps({"messages": [request(0).system, request(0).user]})

    def ask(_: int) -> None:
        if not hasattr(mine, "connection"):
            mine.connection = http.client.HTTPConnection("127.0.0.1", port)
        mine.connection.request("POST", "/v1/chat/completions", body)
        mine.connection.getresponse().read()

    with ThreadPoolExecutor(CONCURRENCY) as pool:
        list(pool.map(ask, range(CONCURRENCY)))
        start = time.perf_counter()
        list(pool.map(ask, range(CALLS)))
        return CALLS / (time.perf_counter() - start)


def authored(port: int, folder: Path) -> float:
    """Calls per second through backend, budget, validation and ledger."""
    backend = open_backend(f"openai:m@http://127.0.0.1:{port}/v1")
    with Ledger(folder / "wire.jsonl") as ledger:
        caller = Caller(backend, ledger, Budget(PriceTable({})), concurrency=CONCURRENCY)
        warm = [Call(f"warm{n}", request(n), json.loads) for n in range(CONCURRENCY)]
        caller.call_many(warm)
        calls = [Call(f"law/{n}/writer", request(n), json.loads) for n in range(CALLS)]
        start = time.perf_counter()
        answers = caller.call_many(calls)
        took = time.perf_counter() - start
    assert all(answer.status == "ok" for answer in answers)
    return CALLS / took


def ledger_times(folder: Path) -> dict[str, float]:
    """Seconds of one more call at 100,000 recorded ones, and of replaying them all."""
    done = Completion("ok", ANSWER, Usage(900, 120), json.loads(BODY))
    backend = ScriptedBackend(lambda request: done, "s")
    path = folder / "long.jsonl"
    calls = [Call(f"law/{n:06}/writer", request(n), json.loads) for n in range(RECORDED)]
    start = time.perf_counter()
    with Ledger(path) as ledger:
        Caller(backend, ledger, Budget(PriceTable({})), concurrency=CONCURRENCY).call_many(calls)
    recorded = (time.perf_counter() - start) / RECORDED
    identity = backend.identity()
    start, start_cpu = time.perf_counter(), time.process_time()
    with Ledger(path) as ledger:
        Caller(backend, ledger, Budget(PriceTable({}))).call_many(calls)
        replay, replay_cpu = time.perf_counter() - start, time.process_time() - start_cpu
        times, bare_times, cpu_times = [], [], []
        line = path.open("rb").readlines(100_000)[-1]
        for number in range(500):
            bare_times.append(_append(folder / "bare.jsonl", line))
            asked = request(RECORDED + number)
            start, start_cpu = time.perf_counter(), time.process_time()
            ledger.find(f"more/{number}", identity, asked)
            ledger.append(f"more/{number}", identity, asked, done, None)
            times.append(time.perf_counter() - start)
            cpu_times.append(time.process_time() - start_cpu)
    return {
        "recorded_ms_a_call_in_parallel": 1000 * recorded,
        "ledger_ms_a_call": 1000 * statistics.mean(times),
        "ledger_cpu_ms": 1000 * statistics.mean(cpu_times),
        "bare_append_ms": 1000 * statistics.mean(bare_times),
        "replay_seconds": replay,
        "replay_cpu_seconds": replay_cpu,
        "ledger_mb": path.stat().st_size / 1e6,
    }


def _append(path: Path, line: bytes) -> float:
    """Seconds that the disk alone takes to store a line."""
    with path.open("ab") as file:
        start = time.perf_counter()
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
        return time.perf_counter() - start


def main() -> None:
    parent, child = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=run_server, args=(child,), daemon=True
    )
    server.start()
    port = parent.recv()
    limit = CONCURRENCY / LATENCY
    with tempfile.TemporaryDirectory() as name:
        speeds = {"bare": bare(port), "authored": authored(port, Path(name))}
        server.terminate()
        found: dict[str, Any] = {
            "cores": os.cpu_count(),
            "server_limit_per_s": limit,
            "bare_per_s": speeds["bare"],
            "authored_per_s": speeds["authored"],
            "share_of_limit": speeds["authored"] / limit,
            "share_of_bare": speeds["authored"] / speeds["bare"],
            **ledger_times(Path(name)),
        }
    print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in found.items()}))


if __name__ == "__main__":
    main()
