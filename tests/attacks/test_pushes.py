"""Attacks on a push: a Hub that refuses, in every request; secrets in what is printed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from loopback_hub import TOKEN, LoopbackHub
from pushing import REPO, at, online, push
from refusals import raises
from releases import small_release

from counterprior.cards.errors import HubError

STEPS = {
    "create": ("POST", "/api/repos/create$"),
    "preupload": ("POST", "/preupload/"),
    "batch": ("POST", "/objects/batch$"),
    "put": ("PUT", "/storage/"),
    "uploaded": ("POST", "/lfs/verify$"),
    "commit": ("POST", "/commit/main$"),
    "tag": ("POST", "/tag/"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_release(tmp_path_factory.mktemp("built") / "release")


@pytest.mark.parametrize("status", [400, 403, 413, 507])
@pytest.mark.parametrize("step", STEPS)
def test_a_refusal_is_one_line_with_its_remedy(
    built: Path, tmp_path: Path, step: str, status: int
) -> None:
    with online(), LoopbackHub(tmp_path / "hub") as hub:
        hub.fail(*STEPS[step], status=status, times=10**9)
        with raises("hub-refuses", error=HubError) as error:
            push(built, at(hub.url, "1.0.0"))
        told = str(error.value)
        assert "\n" not in told and TOKEN not in told and "signature=" not in told
        assert ("no room" if status in (413, 507) else "HF_TOKEN") in told
        assert not hub.exists(REPO) or hub.tags(REPO) == {}


def test_a_token_that_the_hub_echoes_is_not_printed(built: Path, tmp_path: Path) -> None:
    bad = Path(shutil.copytree(built, tmp_path / "bad"))
    with online(), LoopbackHub(tmp_path / "hub") as hub:
        hub.fail("POST", "/validate-yaml$", status=400, message=f"not {TOKEN}\nin a card")
        with raises("hub-refuses", error=HubError) as error:
            push(bad, at(hub.url, "1.0.0"))
        assert TOKEN not in str(error.value) and "\n" not in str(error.value)
