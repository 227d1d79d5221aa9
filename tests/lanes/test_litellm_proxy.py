"""LiteLLM's proxy between us and a server that misbehaves: as a judge, a generator and a builder.

COUNTERPRIOR_LITELLM: its command, of an environment with `pip install 'litellm[proxy]'`.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image
from processes import serving

pytestmark = pytest.mark.lane

COMMAND = os.environ.get("COUNTERPRIOR_LITELLM") or shutil.which("litellm")
START = 180
"""Most seconds until the proxy answers."""
KEY = "sk-of-the-proxy-5d1"


@pytest.fixture
def proxy(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The proxy's URL; `vision`, `claude` and `painter` are models of the loopback server."""
    if not COMMAND:
        pytest.skip("no litellm in COUNTERPRIOR_LITELLM or on the path")
    upstream = {"api_base": f"{server.url}/v1", "api_key": "sk-upstream"}
    models = {
        "vision": {"model": "openai/m-1", **upstream},
        "claude": {"model": "anthropic/m-1", **upstream, "api_base": server.url},
        "painter": {"model": "openai/gpt-image-1", **upstream},
    }
    config = {
        "model_list": [
            {"model_name": name, "litellm_params": parameters}
            for name, parameters in models.items()
        ],
        "general_settings": {"master_key": KEY},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
    }
    (tmp_path / "proxy.yaml").write_text(yaml.safe_dump(config))
    command = (COMMAND, "--config", tmp_path / "proxy.yaml")
    local = {"LITELLM_TELEMETRY": "False", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    log, health = tmp_path / "proxy.log", "/health/liveliness"
    with serving(command, log, health, within=START, **local) as url:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        yield url


def labels(run: Path) -> Counter[str]:
    (log,) = (run / "verdicts").glob("*/verdicts.jsonl")
    return Counter(json.loads(line)["label"] for line in log.read_text().splitlines())


@pytest.mark.parametrize("protocol", ["openai:vision@{}/v1", "anthropic:claude@{}"])
def test_a_judge_behind_the_proxy_survives_faults_and_is_paid_once(
    protocol: str,
    proxy: str,
    server: Any,
    fault: Any,
    cli: Callable[..., Any],
    text_release: Path,
    tmp_path: Path,
) -> None:
    server.answer = lambda body: "1"
    server.faults.extend([fault(429, {"retry-after": "0"}), fault(503), None, fault(500)])
    spec = protocol.format(proxy)
    run = tmp_path / "run"
    command = (
        *("eval", "--suite", "t2i_homogenization", "--data", text_release, "--limit", 2),
        *("--generator", "render:?order_bias=1", "--judge", f"{spec}?attempts=6&timeout=20"),
        *("--out", run),
    )
    done = cli(*command)
    assert done.returncode == 0, done.stderr
    assert "0 errors" in done.stderr and " 0 retries" not in done.stderr, done.stderr
    assert labels(run) == {"first_left": 2, "first_right": 2}, done.stderr
    paid = server.paid
    again = cli(*command)
    assert again.returncode == 0 and server.paid == paid, again.stderr


@pytest.mark.parametrize("protocol", ["openai:vision@{}/v1", "anthropic:claude@{}"])
def test_a_wrong_key_is_said_by_address(
    protocol: str,
    proxy: str,
    cli: Callable[..., Any],
    text_release: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-of-somebody-else-77")
    done = cli(
        *("eval", "--suite", "t2i_homogenization", "--data", text_release, "--limit", 1),
        *("--generator", "render:", "--judge", protocol.format(proxy), "--out", tmp_path / "run"),
    )
    assert done.returncode not in (0, 70), done.stdout
    assert proxy.removeprefix("http://") in done.stderr, done.stderr
    assert "sk-of-somebody-else-77" not in done.stderr and "images: 1" not in done.stderr


def test_an_unknown_model_lists_those_of_the_proxy(
    proxy: str, cli: Callable[..., Any], text_release: Path, tmp_path: Path
) -> None:
    done = cli(
        *("eval", "--suite", "t2i_homogenization", "--data", text_release, "--limit", 1),
        *("--generator", "render:", "--judge", f"openai:visoin@{proxy}/v1"),
        *("--out", tmp_path / "run"),
    )
    assert done.returncode not in (0, 70) and "vision" in done.stderr, done.stderr
    assert "images: 1" not in done.stderr


def test_a_generator_behind_the_proxy_draws(
    proxy: str,
    server: Any,
    fault: Any,
    cli: Callable[..., Any],
    text_release: Path,
    tmp_path: Path,
) -> None:
    drawn = io.BytesIO()
    Image.new("RGB", (64, 64), "teal").save(drawn, "PNG")
    server.draw = lambda body: drawn.getvalue()
    server.faults.extend([fault(429, {"retry-after": "0"}), None, fault(503)])
    done = cli(
        *("generate", "--suite", "t2i_homogenization", "--data", text_release, "--limit", 2),
        *("--generator", f"openai-image:painter@{proxy}/v1?attempts=6&timeout=20"),
        *("--out", tmp_path / "run"),
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "run" / "images").rglob("*.png"))) == 4, done.stdout
