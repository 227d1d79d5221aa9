"""`folder:` from the outside: images that somebody made already, found, checked and looked at."""

from __future__ import annotations

import json
import struct
import subprocess
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image, ImageOps
from refusals import raises

from counterprior.errors import DataError, UsageError
from counterprior.eval.core import Case, ImageRequest
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import generate
from counterprior.eval.generators import draw, open_generator
from counterprior.eval.generators.folder import ImageFolder
from counterprior.images import ImageError, encode_png, open_image

Cli = Callable[..., subprocess.CompletedProcess[str]]


def case(number: int = 0) -> Case:
    return Case("row", "plain", 7, number, "A cat and a dog.", ("cat/dog", "cat", "dog"))


def draw_noise(path: Path, size: tuple[int, int] = (64, 48)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.effect_noise(size, 50).convert("RGB").save(path)
    return path


def vast_png(side: int) -> bytes:
    """The beginning of a gray PNG of so many pixels a side: more is not read."""
    data = BytesIO()
    Image.new("L", (16, 16)).save(data, "PNG")
    png = data.getvalue()
    head = b"IHDR" + struct.pack(">II", side, side) + png[24:29]
    return png[:12] + head + struct.pack(">I", zlib.crc32(head)) + png[33:]


def found(folder: ImageFolder, wanted: Case) -> Path:
    return folder.generate(ImageRequest(wanted.prompt, wanted.seed, case=wanted))


def test_images_are_found_by_template(tmp_path: Path) -> None:
    draw_noise(tmp_path / "row-plain-7.jpg")
    assert found(ImageFolder(tmp_path), case()).name == "row-plain-7.jpg"
    draw_noise(tmp_path / "sub" / "row_1.png")
    nested = ImageFolder(tmp_path, "sub/{row}_{number}")
    assert found(nested, case(1)).name == "row_1.png"
    with pytest.raises(FileNotFoundError, match="row_2"):
        found(nested, case(2))


def test_a_manifest_can_not_leave_its_folder(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    draw_noise(tmp_path / "secret.png")
    (inside / "loop").symlink_to(inside / "loop")
    (inside / "link.png").symlink_to(tmp_path / "secret.png")
    for name, reason in (
        ("../secret.png", "lies outside"),
        (str(tmp_path / "secret.png"), "lies outside"),
        ("link.png", "lies outside"),
        ("loop", "loop of links"),
        (".", "is not a file"),
    ):
        with pytest.raises(ValueError, match=reason):
            found(ImageFolder(inside, manifest={case().id: name}), case())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("case,file\na,b\na,c\n", ("duplicate-id", ":3: ", "a ")),
        ("case,image\na,b\n", ("missing-field", ":2: ", "`case`", "`file`")),
    ],
)
def test_a_bad_manifest_names_its_row(tmp_path: Path, text: str, reason: tuple[str, ...]) -> None:
    manifest = tmp_path / "manifest.csv"
    manifest.write_text(text)
    with raises(reason[0], manifest, *reason[1:], error=DataError):
        open_generator(f"folder:{tmp_path}?manifest={manifest}")


def test_one_image_is_never_of_two_cases(text_release: Path, tmp_path: Path) -> None:
    settings = RunSettings("t2i_homogenization", str(text_release), tmp_path / "run", limit=1)
    folder, manifest = tmp_path / "images", tmp_path / "manifest.csv"
    folder.mkdir()
    (tmp_path / "none").mkdir()
    empty = RunSettings("t2i_homogenization", str(text_release), tmp_path / "plan", limit=1)
    first, second = generate(empty, f"folder:{tmp_path / 'none'}").run.cases()
    manifest.write_text(f"case,file\n{first.id},one.png\n{second.id},one.png\n")
    for option in ("template={row}", f"manifest={manifest}"):
        with raises("ambiguous-file", f"{first.id} (", f"{second.id} (", error=UsageError):
            generate(settings, f"folder:{folder}?{option}")
    manifest.write_text(f"case,file\n{first.id},one.png\nnobody-plain-1,two.png\n")
    with raises("unknown-reference", "nobody-plain-1", error=UsageError):
        generate(settings, f"folder:{folder}?manifest={manifest}")


def test_a_folder_without_any_image_of_the_run_ends_with_1(
    text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    folder, run = tmp_path / "images", tmp_path / "run"
    folder.mkdir()
    words = "generate --suite t2i_homogenization --limit 1 --generator".split()
    done = cli(*words, f"folder:{folder}", "--data", text_release, "--out", run)
    assert done.returncode == 1
    assert "2 missing" in done.stderr and "[all-failed]" in done.stderr
    first = Run.open(run).cases()[0]
    draw_noise(folder / f"{first.id}.png", (256, 256))
    again = cli(*words, f"folder:{folder}", "--data", text_release, "--out", run)
    assert again.returncode == 0 and "1 images; 1 missing" in again.stderr


@pytest.mark.slow
def test_bad_images_have_a_name_and_the_rest_goes_on(
    text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    empty = cli(
        "generate",
        "--suite",
        "t2i_homogenization",
        "--data",
        text_release,
        "--limit",
        "6",
        "--generator",
        f"folder:{folder}",
        "--out",
        tmp_path / "plan",
    )
    assert empty.returncode == 1 and "12 missing" in empty.stderr
    ids = [c.id for c in Run.open(tmp_path / "plan").cases()]
    for c in Run.open(tmp_path / "plan").cases()[:2]:
        image = draw(open_generator("render:"), ImageRequest(c.prompt, c.seed))
        (folder / f"{c.id}.png").write_bytes(encode_png(image))
    draw_noise(folder / f"{ids[2]}.png", (8, 8))
    whole_file = draw_noise(folder / f"{ids[3]}.png", (256, 256)).read_bytes()
    (folder / f"{ids[3]}.png").write_bytes(whole_file[: len(whole_file) // 2])
    (folder / f"{ids[4]}.png").write_text("<html>not found</html>")
    (folder / f"{ids[5]}.png").write_bytes(vast_png(20_000))
    frames = [Image.new("RGB", (64, 48), c) for c in ("red", "blue")]
    frames[0].save(folder / f"{ids[6]}.png", save_all=True, append_images=frames[1:])
    Image.new("CMYK", (512, 384)).save(folder / f"{ids[7]}.jpg")
    (folder / f"{ids[8]}.png").symlink_to(folder / f"{ids[8]}.png")
    run = tmp_path / "run"
    done = cli(
        "eval",
        "--suite",
        "t2i_homogenization",
        "--data",
        text_release,
        "--limit",
        "6",
        "--generator",
        f"folder:{folder}",
        "--judge",
        "pixels",
        "--out",
        run,
        "--json",
    )
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)
    score = next(s for s in result["scores"] if s["name"] == "signed_index" and s["group"] == "all")
    assert score["n"] == 2
    assert score["excluded"] == {"error": 6, "invalid": 1, "missing": 3}
    assert result["card"]["asked"] == 3 and result["card"]["parse_rate"] == 1
    said = {image.case: image.message for image in Run.open(run).images().values()}
    for number, reason in (
        (2, "a side below 16"),
        (3, "not a readable image"),
        (4, "not a readable image"),
        (5, "more than 40,000,000 pixels"),
        (6, "is animated"),
        (8, "loop of links"),
    ):
        assert reason in said[ids[number]], said[ids[number]]


def test_orientation_and_transparency_are_resolved(tmp_path: Path) -> None:
    turned = Image.new("RGB", (60, 40), "white")
    turned.paste("black", (0, 0, 20, 40))
    exif = Image.Exif()
    exif[0x0112] = 2  # mirrored
    turned.save(tmp_path / "mirrored.png", exif=exif)
    upright = open_image(tmp_path / "mirrored.png")
    assert upright.getpixel((5, 5)) == (255, 255, 255) and upright.getpixel((55, 5)) == (0, 0, 0)
    assert upright.tobytes() == ImageOps.mirror(turned).tobytes()
    Image.new("RGBA", (32, 32), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    assert open_image(tmp_path / "clear.png").getpixel((0, 0)) == (255, 255, 255)
    with raises("no-such-file", error=ImageError):
        open_image(tmp_path / "nowhere.png")
