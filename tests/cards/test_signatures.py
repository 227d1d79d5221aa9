"""`push --sign`, `verify --signed-by` and the digest of all rows: anchors outside of a release."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml
from loopback_hub import LoopbackHub
from pushing import REPO, at, online, plan_of, push
from refusals import raises
from releases import ATTRIBUTES, RULES, revised, small_release
from typer.testing import CliRunner

from counterprior.cards.manifest import read_manifest
from counterprior.cards.verify import verify_release
from counterprior.cli.main import app
from counterprior.release import CHECKSUMS, SIGNATURE_FILE, combined_rows_digest

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")


@dataclass(frozen=True)
class Signed:
    """A Hub with a signed release, the key, and who may sign."""

    hub: LoopbackHub
    build: Path
    key: Path
    allowed: Path


def made_key(path: Path, kind: str = "ed25519") -> Path:
    command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "someone", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def allowing(path: Path, **keys: Path) -> Path:
    """A file of allowed signers, by name."""
    path.write_text(
        "".join(f"{n} {key.with_suffix('.pub').read_text()}" for n, key in keys.items())
    )
    return path


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signed]:
    root = tmp_path_factory.mktemp("signed")
    key = made_key(root / "key")
    allowed = allowing(root / "allowed", maintainer=key)
    template = "/{repo_id}/resolve/{revision}/{filename}"
    with (
        online(),
        LoopbackHub(root / "hub") as hub,
        patch("huggingface_hub.constants.ENDPOINT", hub.url),
        patch("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", hub.url + template),
    ):
        build = small_release(root / "build", (RULES, ATTRIBUTES))
        push(build, at(hub.url, "1.0.0", sign=key))
        yield Signed(hub, build, key, allowed)


@pytest.fixture
def copy(signed: Signed, tmp_path: Path) -> Path:
    """The pushed files in a folder."""
    for name, data in signed.hub.tree(REPO, "v1.0.0").items():
        path = tmp_path / "copy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (tmp_path / "copy" / ".gitattributes").unlink()
    return tmp_path / "copy"


@pytest.mark.slow
def test_a_reader_learns_who_signed_a_release(signed: Signed) -> None:
    report = verify_release(REPO, "v1.0.0", signed_by=signed.allowed)
    assert (report.problems, report.anchor) == ((), "signed by maintainer")
    unasked = verify_release(REPO, "v1.0.0")
    assert unasked.problems == ()
    assert unasked.notes == ("it is signed, but nobody looked by whom: name --signed-by",)


@pytest.mark.slow
def test_a_signature_of_somebody_else_or_of_other_files_is_refused(
    signed: Signed, copy: Path, tmp_path: Path
) -> None:
    stranger = allowing(tmp_path / "others", stranger=made_key(tmp_path / "other"))
    (problem,) = verify_release(str(copy), signed_by=stranger).problems
    assert "is of no key that" in problem.message
    # a forged release: built anew, self-consistent, with the signature of the true one
    forged = small_release(tmp_path / "forged", rows=revised)
    shutil.copy(copy / SIGNATURE_FILE, forged)
    (problem,) = verify_release(str(forged), signed_by=signed.allowed).problems
    assert "was changed after it was signed" in problem.message
    # a true signature by the right key, made for another purpose
    (copy / SIGNATURE_FILE).unlink()
    sign = ["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", str(signed.key)]
    subprocess.run([*sign, str(copy / CHECKSUMS)], check=True, capture_output=True)
    (problem,) = verify_release(str(copy), signed_by=signed.allowed).problems
    assert "does not fit checksums.json" in problem.message
    (copy / SIGNATURE_FILE).write_text("not a signature")
    assert verify_release(str(copy), signed_by=signed.allowed).problems
    (copy / SIGNATURE_FILE).unlink()
    (problem,) = verify_release(str(copy), signed_by=signed.allowed).problems
    assert "the release is not signed" in problem.message


def test_the_command_exits_with_1_for_a_stranger_and_0_for_a_known_signer(
    signed: Signed, copy: Path, tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, ["verify", str(copy), "--signed-by", str(signed.allowed)])
    assert done.exit_code == 0, done.output
    assert "valid; signed by maintainer" in done.output
    (copy / "README.md").write_text("changed")
    done = CliRunner().invoke(app, ["verify", str(copy), "--signed-by", str(signed.allowed)])
    assert done.exit_code == 1
    assert "README.md: bytes differ" in done.output


def test_the_same_push_again_repeats_the_signature(signed: Signed) -> None:
    plan = plan_of(signed.build, at(signed.hub.url, "1.0.0", date="2020-01-02", sign=signed.key))
    assert (plan.steps, plan.operations) == ((), ())


def test_a_signature_of_an_earlier_version_is_not_pushed_on(signed: Signed, copy: Path) -> None:
    """Who downloads a signed release and pushes it unsigned pushes no signature that fails."""
    plan = plan_of(copy, at(signed.hub.url, "1.0.1"))
    changes = {operation.file: operation.kind for operation in plan.operations}
    assert changes[SIGNATURE_FILE] == "delete"
    assert (copy / SIGNATURE_FILE).is_file()


def test_keys_that_sign_differently_each_time_are_refused_before_anything_is_sent(
    signed: Signed, tmp_path: Path
) -> None:
    before = signed.hub.head(REPO)
    for key, message in (
        (made_key(tmp_path / "ecdsa", "ecdsa"), "is a key of kind ECDSA"),
        (tmp_path / "nowhere", "is no SSH key"),
        (signed.allowed, "ssh-keygen does not sign with it"),
    ):
        with raises("bad-value", message):
            push(signed.build, at(signed.hub.url, "1.1.0", sign=key))
    assert signed.hub.head(REPO) == before


def test_the_digest_of_the_rows_is_in_card_and_citation_and_vouches_for_them(copy: Path) -> None:
    manifest = read_manifest(copy)
    listed = json.loads((copy / CHECKSUMS).read_text())["files"]
    rows = {n.split("/")[0]: e["rows_sha256"] for n, e in listed.items() if "rows_sha256" in e}
    digest = combined_rows_digest(rows)
    assert digest == manifest.rows_sha256 != combined_rows_digest({RULES: rows[RULES]})
    assert f"--revision v1.0.0 --sha256 {digest}" in (copy / "README.md").read_text()
    citation = yaml.safe_load((copy / "CITATION.cff").read_text())
    assert citation["identifiers"][0]["value"] == f"sha256:{digest}"
    report = verify_release(str(copy), sha256=digest)
    assert report.anchor == "the digest of its rows is the one that you named"
    (problem,) = verify_release(str(copy), sha256="0" * 64).problems
    assert f"(that of its rows is {digest})" in problem.message


def test_rows_that_were_changed_have_another_digest(signed: Signed, tmp_path: Path) -> None:
    digest = read_manifest(signed.build).rows_sha256
    other = small_release(tmp_path / "other", (RULES, ATTRIBUTES), rows=revised)
    (problem,) = verify_release(str(other), sha256=digest).problems
    assert problem.file == CHECKSUMS
