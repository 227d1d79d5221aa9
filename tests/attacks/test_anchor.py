"""A release that agrees with itself is not yet the one that was published."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from forking import ForkingCommand
from refusals import raises

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.build import BuildSettings, build
from counterprior.cards.write import staged, write_release
from counterprior.release import (
    UNVOUCHED,
    ReleaseError,
    combined_rows_digest,
    known_rows,
    load,
    parquet_path,
    release_digest,
)
from counterprior.schema import ROWS

CONFIG = "attribute_decoupling"


def built(bank: Path, out: Path, configs: tuple[str, ...] = (CONFIG,)) -> Path:
    made = build(BuildSettings(configs, bank=bank))
    with staged(out) as folder:
        write_release(made, folder)
    return out


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(DEFAULT_BANK, tmp_path_factory.mktemp("sound") / "release")


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rebuilt, with all its digests, from a bank of which one word was changed."""
    root = tmp_path_factory.mktemp("forged")
    shutil.copytree(DEFAULT_BANK, root / "bank")
    attributes = root / "bank" / "attributes.yaml"
    text = attributes.read_text("utf-8")
    assert text.count("rare: plaid\n  common: yellow\n") == 1
    attributes.write_text(text.replace("rare: plaid\n", "rare: checked\n", 1), "utf-8")
    return built(root / "bank", root / "release")


@pytest.mark.slow
def test_a_release_of_this_package_is_known(sound: Path, cli: ForkingCommand) -> None:
    done = cli("verify", sound)
    assert done.returncode == 0, done.stderr
    assert "valid; its rows are those that this package knows; sha256 " in done.stdout
    assert release_digest(sound) in done.stdout
    assert len(load(sound, CONFIG, verify=True)) > 0
    done = cli("verify", sound, "--sha256", release_digest(sound).upper(), "--json")
    assert json.loads(done.stdout)["anchor"] == "its digest is the one that you named"


@pytest.mark.slow
def test_a_forged_release_is_not(
    forged: Path, sound: Path, cli: ForkingCommand, caplog: pytest.LogCaptureFixture
) -> None:
    done = cli("verify", forged)
    assert done.returncode == 3 and "valid" not in done.stdout, done.stdout
    assert f"self-consistent, but {UNVOUCHED}" in done.stdout
    assert f"rows that this package does not know: {CONFIG}" in done.stdout
    done = cli("verify", forged, "--sha256", release_digest(sound))
    assert done.returncode == 1 and release_digest(sound) in done.stdout
    done = cli("verify", forged, "--sha256", release_digest(forged))
    assert done.returncode == 0 and "valid; its digest is the one that you named" in done.stdout
    caplog.clear()
    load(forged, CONFIG)
    assert UNVOUCHED in caplog.text and f"{forged}, {CONFIG}" in caplog.text
    with raises("changed-file", "rows are none that counterprior knows", error=ReleaseError):
        load(forged, CONFIG, verify=True)


def test_a_run_of_a_forged_release_says_so(
    forged: Path, sound: Path, tmp_path: Path, cli: ForkingCommand
) -> None:
    for release, said in ((forged, True), (sound, False)):
        words = ["--suite", CONFIG, "--data", release, "--limit", "2", "--generator", "render:"]
        done = cli("generate", *words, "--out", tmp_path / release.parent.name)
        assert done.returncode == 0, done.stderr
        assert (UNVOUCHED in " ".join(done.stderr.split())) is said, done.stderr


def rows_of(release: Path) -> dict[str, str]:
    listed = json.loads((release / "checksums.json").read_text())["files"]
    return {c: listed[parquet_path(c)]["rows_sha256"] for c in ROWS if parquet_path(c) in listed}


FEW_SEEDS = {
    "i2i_homogenization": "3b5ed90b7ec707ed3f9659ec7fa1ef2a098f2a137320aedf2c675fe9e2aded49",
    "i2i_correctness": "8b9b444a02cf3fed67196d8221324412584b0672c0c55325f27cd49c56c57661",
}
"""Digests of the rows of which a tenth has its image, see `few_seeds`: a change of any text, or of
how things are drawn, changes these as it does those of the release."""


def test_known_digests_are_those_of_the_bank(full_release: Path) -> None:
    """Run tools/known_rows.py on a full build after a change of the bank."""
    current = rows_of(full_release)
    assert {config: current[config] for config in FEW_SEEDS} == FEW_SEEDS
    others = {config: digest for config, digest in current.items() if config not in FEW_SEEDS}
    assert {config: known_rows()[config][0] for config in others} == others
    assert FEW_SEEDS.keys() <= known_rows().keys() <= ROWS.keys()


@pytest.mark.lane
def test_all_known_digests_are(tmp_path: Path) -> None:
    current = rows_of(built(DEFAULT_BANK, tmp_path / "release", ()))
    assert {config: digests[0] for config, digests in known_rows().items()} == current


def test_the_citation_states_the_digest_of_the_known_rows() -> None:
    citation = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text())
    digest = combined_rows_digest({config: digests[0] for config, digests in known_rows().items()})
    assert citation["identifiers"][0]["value"] == f"sha256:{digest}"
