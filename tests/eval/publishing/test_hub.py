"""`hub`: published images are judged again, as they were, on the rows that they were made for."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loopback_hub import LoopbackHub
from PIL import Image
from published import CC, publish
from pushing import REPO, at, online, push
from refusals import raises
from releases import RULES, small_release

from counterprior.errors import UsageError
from counterprior.eval.core import GeneratorError, ImageRequest, Question
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.run import Run, RunError
from counterprior.eval.engine.steps import JudgeSettings, evaluate_run, generate
from counterprior.eval.generators import as_generator, open_generator
from counterprior.eval.judges import as_judge
from counterprior.eval.publishing.hub import PublishedImages
from counterprior.eval.publishing.publication import fetch_publication, read_publication
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.release import ReleaseError

ROWS = 4


def draw(prompt: str, seed: int) -> Image.Image:
    """An image of the seed; of some none, for all the reasons there are."""
    which = seed % 5
    if which == 0:
        raise FileNotFoundError("nobody made it")
    if which == 1:
        raise GeneratorError("declined", "refused")
    if which == 2:
        raise GeneratorError("out of memory")
    digest = hashlib.sha256(f"{prompt}{seed}".encode()).digest()
    return Image.new("RGB", (32, 20), tuple(digest[:3]))


def yes(question: Question) -> str:
    return "yes" if question.images[-1].getpixel((0, 0))[0] % 2 else "no"


def no(question: Question) -> str:
    return "no"


def judged(data: Path, out: Path, generator: Any, judge: Callable[[Question], str] = yes) -> Path:
    settings = RunSettings(suite=RULES, data=str(data), out=out, limit=ROWS, seeds=4)
    made = as_generator(generator, "1")
    evaluate_run(settings, made, [as_judge(judge, identity="1")], JudgeSettings())
    return out


def numbers(run: Path) -> list[Any]:
    (found,) = score_run(run, ScoreSettings())
    return [score.to_json() for score in found.result.scores]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_release(tmp_path_factory.mktemp("release") / "r")


@pytest.fixture(scope="module")
def run(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = tmp_path_factory.mktemp("files")

    def elsewhere(prompt: str, seed: int) -> Image.Image | Path:
        """Every other image is a file that somebody else encoded."""
        image = draw(prompt, seed)
        if seed % 2:
            return image
        path = files / f"{hashlib.sha256(prompt.encode()).hexdigest()}-{seed}.png"
        image.save(path, compress_level=0)
        return path

    return judged(release, tmp_path_factory.mktemp("run") / "colors", elsewhere)


@pytest.fixture(scope="module")
def folder(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("publication") / "p"
    publish(run, out)
    return out


def test_the_same_judge_finds_the_same_numbers(
    release: Path, run: Path, folder: Path, tmp_path: Path
) -> None:
    again = judged(release, tmp_path / "again", f"hub:{folder}?generator=colors")
    assert numbers(again) == numbers(run)
    first, second = Run.open(run).images(), Run.open(again).images()
    assert {image.status for image in first.values()} == {"made", "missing", "refused", "error"}
    for case, image in first.items():
        assert (second[case].status, second[case].sha256) == (image.status, image.sha256)
    # Its own copies: the publication may go.
    assert all((again / i.file).is_file() for i in second.values() if i.status == "made")
    other = judged(release, tmp_path / "other", f"hub:{folder}", no)
    assert numbers(other) != numbers(run)
    identity = Run.open(again).header.generator
    assert (identity["kind"], identity["name"], identity["inner_kind"]) == (
        "hub",
        "colors",
        "python",
    )
    assert str(tmp_path) not in json.dumps(identity)


def test_lossless_webp_gives_the_same_digests(release: Path, run: Path, tmp_path: Path) -> None:
    publish(run, tmp_path / "p", replace(CC, image_format="webp"))
    again = judged(release, tmp_path / "again", f"hub:{tmp_path / 'p'}")
    assert numbers(again) == numbers(run)
    # What this package encoded has its digest again; of another's file the pixels are the same.
    digests = [{c: i.sha256 for c, i in Run.open(r).images().items()} for r in (run, again)]
    odd = [c for c in digests[0] if int(c.rpartition("-")[2]) % 2]
    assert odd and all(digests[0][case] == digests[1][case] for case in odd)


def test_other_rows_are_refused_or_compared(release: Path, folder: Path, tmp_path: Path) -> None:
    def edited(rows: list[Any]) -> list[Any]:
        return [row.model_copy(update={"status": "revised"}) for row in rows]

    other = small_release(tmp_path / "other", (RULES,), edited)
    digest = read_publication(folder).runs[0].rows_sha256[:12]
    with raises("different-rows", "rule_decoupling/colors", digest, "rows=any", error=UsageError):
        judged(other, tmp_path / "a", f"hub:{folder}")
    again = judged(other, tmp_path / "b", f"hub:{folder}?rows=any")
    assert Run.open(again).header.generator["rows"] == "any"
    settings = RunSettings(suite="attribute_decoupling", data="", out=tmp_path / "c")
    small = small_release(tmp_path / "attributes", ("attribute_decoupling",))
    with raises("nothing-to-do", "colors", "attribute_decoupling", RULES, error=UsageError):
        generate(replace(settings, data=str(small)), f"hub:{folder}")


def test_refuses_case_with_other_prompt_or_without_image(run: Path, folder: Path) -> None:
    images = open_generator(f"hub:{folder}")
    assert isinstance(images, PublishedImages)
    cases = Run.open(run).cases()
    images.check(cases)
    images.check([*cases[:1], replace(cases[1], row="new")])  # a row more is a missing image
    with raises("different-rows", cases[1].id, "prompt", "'other'", repr(cases[1].prompt)):
        images.check([cases[0], replace(cases[1], prompt="other")])
    with raises("different-rows", cases[0].id, "source image", "'sources/a.png'"):
        images.check([replace(cases[0], source="sources/a.png")])
    with raises("different-rows", "1 cases", "colors", RULES):
        images.check([replace(cases[0], row="new")])
    with pytest.raises(FileNotFoundError):
        images.generate(ImageRequest("", 0, case=replace(cases[0], seed=99)))


@pytest.mark.parametrize(
    ("spec", "code", "facts"),
    [
        ("{}?generator=nobody", "missing-option", ("?generator=", "colors")),
        ("{}?seed=1", "unknown-option", ("hub:", "'seed'", "generator, rows")),
        ("{}?rows=some", "bad-option", ("hub: rows", "same", "any", "'some'")),
        ("", "missing-option", ("hub:NAMESPACE/NAME@TAG",)),
        ("nowhere", "no-such-file", ("nowhere", "NAMESPACE/NAME@TAG")),
        ("a/b", "no-such-file", ("a/b:", "NAMESPACE/NAME@TAG")),
        ("a/b@main", "no-such-file", ("a/b@main:", "NAMESPACE/NAME@TAG")),
    ],
)
def test_a_wrong_spec_says_what_is_right(
    folder: Path, spec: str, code: str, facts: tuple[str, ...]
) -> None:
    with raises(code, *facts, error=UsageError):
        open_generator("hub:" + spec.format(folder))


@pytest.mark.parametrize("name", ["publication.json", "images/test-00000-of-00001.parquet"])
def test_damage_is_found_before_an_image_is_used(folder: Path, tmp_path: Path, name: str) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "p"))
    data = (copy / name).read_bytes()
    (copy / name).write_bytes(data.replace(b"colors", b"colorz") + b"\n")
    with raises("changed-file", copy, name, "checksums.json", error=ReleaseError):
        open_generator(f"hub:{copy}")
    (copy / name).unlink()
    with pytest.raises(ReleaseError):
        open_generator(f"hub:{copy}")


def test_refuses_publication_with_path_outside_folder(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "p"))
    text = (copy / "publication.json").read_text()
    (copy / "publication.json").write_text(text.replace("images/test", "../images/test"))
    with raises("another-version", copy / "publication.json", "files.0.file", error=ReleaseError):
        open_generator(f"hub:{copy}")


def test_from_the_hub_at_a_tag(release: Path, run: Path, folder: Path, tmp_path: Path) -> None:
    with LoopbackHub(tmp_path / "hub") as hub, online():
        push(folder, at(hub.url, "1.0.0"))
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
            patched.setattr("huggingface_hub.hf_api.api.endpoint", hub.url)
            patched.setattr(
                "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
                hub.url + "/{repo_id}/resolve/{revision}/{filename}",
            )
            root, publication = fetch_publication(f"{REPO}@v1.0.0", "colors")
            assert publication.address == f"{REPO}@v1.0.0"
            assert not (root / "verdicts").exists(), "only images are fetched"
            again = judged(release, tmp_path / "again", f"hub:{REPO}@v1.0.0?generator=colors")
            with raises("no-revision", REPO, "'v9'", error=ReleaseError):
                open_generator(f"hub:{REPO}@v9")
        assert numbers(again) == numbers(run)
        assert Run.open(again).header.generator["publication"] == f"{REPO}@v1.0.0"


def test_an_unknown_format_and_an_older_run_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError):
        Run.open(folder)
    copy = Path(shutil.copytree(folder, tmp_path / "p"))
    text = (copy / "publication.json").read_text().replace('"format": 1', '"format": 2')
    (copy / "publication.json").write_text(text)
    with raises("another-version", copy / "publication.json", "format", "2", error=ReleaseError):
        fetch_publication(str(copy))
