"""Folders as other benchmarks lay them out: every image is found by its prompt, or not at all."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises

from counterprior.errors import DataError, UsageError
from counterprior.eval.core import Case, ImageRequest
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import generate
from counterprior.eval.generators import draw, open_generator
from counterprior.eval.generators.image_folders.known import LAYOUTS

PROMPTS = ("a dog and a cat", "A man on the left of a woman.", "two birds, one tree")
SEEDS = (11, 22, 33, 44)
CASES = [
    Case(f"r{i}", "plain", seed, number, prompt, ("c",))
    for i, prompt in enumerate(PROMPTS)
    for number, seed in enumerate(SEEDS)
]
Write = Callable[[Path], str]
"""Lays images out in a folder; returns options of the spec."""


def colour(prompt: int, number: int) -> tuple[int, int, int]:
    return prompt * 60, number * 60, 9


def image(prompt: int, number: int) -> Image.Image:
    return Image.new("RGB", (32, 24), colour(prompt, number))


def save(made: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save(path, lossless=True) if path.suffix == ".webp" else made.save(path)


def grid(prompt: int) -> Image.Image:
    whole = Image.new("RGB", (64, 48))
    for number in range(4):
        whole.paste(image(prompt, number), (number % 2 * 32, number // 2 * 24))
    return whole


def geneval(folder: Path) -> str:
    for i, prompt in enumerate(PROMPTS[::-1]):
        for number in range(4):
            save(image(2 - i, number), folder / f"{i:05}" / "samples" / f"{number:05}.png")
        metadata = {"tag": "two_object", "include": [], "prompt": prompt}
        (folder / f"{i:05}" / "metadata.jsonl").write_text(json.dumps(metadata))
        save(grid(2 - i), folder / f"{i:05}" / "grid.png")
    return ""


def geneval2(folder: Path) -> str:
    paths = {}
    for i, prompt in enumerate(PROMPTS):
        save(image(i, 0), folder / f"{i}.png")
        paths[prompt] = f"{i}.png"
    (folder / "images.json").write_text(json.dumps(paths))
    return ""


def wise(folder: Path) -> str:
    rows = [{"prompt_id": i + 1, "Prompt": p, "Category": "x"} for i, p in enumerate(PROMPTS)]
    for i in range(3):
        save(image(i, 0), folder / f"{i + 1}.png")
    (folder.parent / "wise.json").write_text(json.dumps(rows))
    return f"&prompts={folder.parent / 'wise.json'}"


def tiif(folder: Path) -> str:
    lists = folder.parent / "testmini_prompts"
    lists.mkdir()
    for dimension, numbers in (("2d_spatial_relation", (0, 1)), ("action+3d", (2,))):
        lines = []
        for index, i in enumerate(numbers):
            where = folder / dimension / "flux"
            save(image(i, 0), where / "short_description" / f"{index}.png")
            save(image(4, 4), where / "long_description" / f"{index}.png")
            long = f"At length: {PROMPTS[i]}"
            lines.append({"type": dimension, "short_description": PROMPTS[i]})
            lines[-1]["long_description"] = long
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (lists / f"{dimension}_prompts.jsonl").write_text(text)
    return f"&prompts={lists}"


def t2icompbench(folder: Path) -> str:
    for i, prompt in enumerate(PROMPTS):
        for number in range(4):
            save(image(i, number), folder / "samples" / f"{prompt}_{number:06}.png")
    return ""


def oneig(folder: Path) -> str:
    categories = (("General_Object", "object"), ("Portrait", "human"), ("Portrait", "human"))
    lines = ["category,id,prompt_en,class"]
    for i, (category, name) in enumerate(categories):
        save(grid(i), folder / name / "gpt-4o" / f"{i:03}.webp")
        lines.append(f'{category},{i:03},"{PROMPTS[i]}",None')
    (folder.parent / "OneIG-Bench.csv").write_text("\n".join(lines) + "\n")
    return f"&grid=2&prompts={folder.parent / 'OneIG-Bench.csv'}"


def dpg_grid(folder: Path) -> str:
    texts = folder.parent / "prompts"
    texts.mkdir()
    for i, prompt in enumerate(PROMPTS):
        save(grid(i), folder / f"partiprompts{i}.png")
        (texts / f"partiprompts{i}.txt").write_text(prompt + "\n")
    return f"&prompts={texts}"


def evalscope(folder: Path) -> str:
    lines = []
    for case in CASES:
        name = f"images/{case.row}_{case.number}.png"
        save(image(int(case.row[1]), case.number), folder / name)
        lines.append({"id": case.id, "prompt": case.prompt, "image_path": name})
    (folder / "out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return ""


def imagefolder(folder: Path) -> str:
    lines = []
    for case in CASES[::-1]:  # seeds tell them apart, not their order
        name = f"{case.row}_{case.number}.png"
        save(image(int(case.row[1]), case.number), folder / "train" / name)
        lines.append({"file_name": name, "prompt": case.prompt, "seed": case.seed})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "train" / "metadata.jsonl").write_text(text)
    return ""


def parquet(folder: Path) -> str:
    import datasets

    def encoded(case: Case) -> dict[str, Any]:
        buffer = io.BytesIO()
        image(int(case.row[1]), case.number).save(buffer, "PNG")
        return {"bytes": buffer.getvalue(), "path": f"{case.id}.png"}

    columns = {"image": [encoded(c) for c in CASES], "text": [c.prompt for c in CASES]}
    features = datasets.Features({"image": datasets.Image(), "text": datasets.Value("string")})
    made = datasets.Dataset.from_dict(columns, features=features)
    (folder / "data").mkdir(parents=True)
    made.to_parquet(str(folder / "data" / "train-00000-of-00001.parquet"), batch_size=5)
    return ""


def numbered(
    folder: Path, name: str = "{place:04}.png", first: int = 1, *, is_once: bool = False
) -> str:
    """is_once: the list names each prompt once, and no seed."""
    lines = []
    for place, case in enumerate(CASES, first):
        made = image(int(case.row[1]), case.number)
        save(made, folder / name.format(place=place, prompt=int(case.row[1]), number=case.number))
        if not is_once:
            line = {"id": case.id, "prompt": case.prompt, "seed": case.seed}
            lines.append(line | {"file": case.file})  # as `counterprior prompts` lists it
        elif case.number == 0:
            lines.append({"prompt": case.prompt})
    (folder.parent / "list.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"&prompts={folder.parent / 'list.jsonl'}"


def numbered_folders(folder: Path) -> str:
    return numbered(folder, "sdxl-2/{prompt:05}/{number}.png", 0)


def numbered_by_seed(folder: Path) -> str:
    return numbered(folder, "{number}/{prompt:04}.png")


def numbered_prompts(folder: Path) -> str:
    return numbered(folder, "{prompt:04}_{number}.png", is_once=True)


def listed_beside(folder: Path) -> str:
    lines = ["filename,caption,seed"]
    for place, case in enumerate(CASES):
        save(image(int(case.row[1]), case.number), folder / f"{place}.png")
        lines.append(f'{folder.name}/{place}.png,"{case.prompt}",{case.seed}')
    (folder.parent / "list.csv").write_text("\n".join(lines) + "\n")
    return f"&prompts={folder.parent / 'list.csv'}"


def whatsup(folder: Path) -> str:
    for i in range(len(PROMPTS)):
        save(image(i, 0), folder / f"photo_{i}.png")
    entries = [
        {"image_path": f"data/photo_{i}.png", "caption_options": [prompt, "another"]}
        for i, prompt in enumerate(PROMPTS)
    ]
    (folder / "controlled.json").write_text(json.dumps(entries))
    return ""


def two_tables(folder: Path) -> str:
    rows = [(f"{i}.png", prompt) for i, prompt in enumerate(PROMPTS)]
    for i, (name, _) in enumerate(rows):
        save(image(i, 0), folder / name)
    lines = [json.dumps({"file_name": name, "prompt": prompt}) for name, prompt in rows]
    (folder / "metadata.jsonl").write_text("\n".join(lines))
    quoted = [f'{name},"{prompt}"' for name, prompt in rows]
    (folder / "metadata.csv").write_text("\n".join(["file_name,prompt", *quoted]))
    return ""


WAYS: dict[str, tuple[str, Write, int]] = {
    "geneval": ("geneval", geneval, 4),
    "geneval2": ("geneval2", geneval2, 1),
    "wise": ("wise", wise, 1),
    "tiif": ("tiif", tiif, 1),
    "t2icompbench": ("t2icompbench", t2icompbench, 4),
    "oneig": ("oneig", oneig, 4),
    "dpg-grid": ("dpg-grid", dpg_grid, 4),
    "evalscope": ("evalscope", evalscope, 4),
    "imagefolder": ("imagedataset", imagefolder, 4),
    "imagefolder with two tables": ("imagedataset", two_tables, 1),
    "numbered": ("numbered", numbered, 4),
    "numbered folders": ("numbered", numbered_folders, 4),
    "numbered by seed": ("numbered", numbered_by_seed, 4),
    "numbered prompts": ("numbered", numbered_prompts, 4),
    "listed beside": ("imagedataset", listed_beside, 4),
    "whatsup": ("whatsup", whatsup, 1),
    "parquet": ("imagedataset", parquet, 4),
}
"""A true layout each -> its name, how it is written, and images of a prompt."""


def open_layout(name: str, folder: Path, options: str = "") -> Any:
    return open_generator(f"folder:{folder}?layout={name}{options}")


def laid_out(way: str, folder: Path) -> Any:
    name, write, _ = WAYS[way]
    return open_layout(name, folder, write(folder))


def found(folder: Any, case: Case) -> Image.Image:
    return draw(folder, ImageRequest(case.prompt, case.seed, case=case))


@pytest.mark.parametrize("way", WAYS)
def test_every_image_is_found_by_its_prompt(
    way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "made by flux").mkdir()
    folder = laid_out(way, tmp_path / "made by flux")
    count = WAYS[way][2]
    there = [case for case in CASES if case.number < count]
    folder.check(there)
    assert not caplog.records
    for case in there:
        made = found(folder, case)
        assert made.size == (32, 24)
        assert made.getpixel((16, 12)) == colour(int(case.row[1]), case.number)
    name = "made by flux"
    assert folder.identity() == {"kind": "folder", "name": name, "layout": WAYS[way][0]}
    folder.check(CASES)
    missing = len(CASES) - len(there)
    for case in CASES[count:4]:
        with pytest.raises(FileNotFoundError, match="has no image"):
            found(folder, case)
    said = f"{missing} of 12 cases have no file"
    assert (said in caplog.text) == (missing > 0)


def test_every_layout_has_a_fixture() -> None:
    assert {name for name, _, _ in WAYS.values()} == set(LAYOUTS)


@pytest.mark.parametrize("way", WAYS)
def test_a_folder_of_other_prompts_is_refused(way: str, tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    folder = laid_out(way, tmp_path / "f")
    others = [Case("r", "plain", 1, 0, "a dog and a bat", ("c",))]
    with raises("different-rows", "'a dog and a bat'", "first prompt", error=UsageError):
        folder.check(others)


def test_warns_of_metadata_with_wrong_prompt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    geneval(tmp_path)
    metadata = tmp_path / "00000" / "metadata.jsonl"
    metadata.write_text(metadata.read_text().replace("two birds", "two words"))
    folder = open_layout("geneval", tmp_path)
    folder.check(CASES)
    assert "4 of 12 cases have no file, the first r2-plain-11 ('two birds" in caplog.text
    with pytest.raises(FileNotFoundError, match="two birds"):
        found(folder, CASES[8])


def test_one_image_is_never_of_two_cases(tmp_path: Path) -> None:
    geneval(tmp_path)
    twin = Case("other", "plain", 11, 0, PROMPTS[0], ("c",))
    with raises(
        "ambiguous-file", "00002/samples/00000", "r0-plain-11", "other-plain-11", error=UsageError
    ):
        open_layout("geneval", tmp_path).check([*CASES, twin])
    options = dpg_grid(tmp_path / "dpg")
    with raises("ambiguous-file", "partiprompts0 (cell 0)", "other-plain-11", error=UsageError):
        open_layout("dpg-grid", tmp_path / "dpg", options).check([*CASES, twin])


def test_refuses_grid_whose_sides_do_not_divide(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    options = dpg_grid(tmp_path / "f")
    save(Image.new("RGB", (65, 48)), tmp_path / "f" / "partiprompts0.png")
    with pytest.raises(ValueError, match=r"65 x 48.*2 x 2"):
        found(open_layout("dpg-grid", tmp_path / "f", options), CASES[0])


def test_a_list_can_not_lead_out_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    save(image(0, 0), tmp_path / "secret.png")
    for way, row in (
        ("evalscope", {"id": "1", "prompt": PROMPTS[0], "image_path": "../secret.png"}),
        ("imagedataset", {"file_name": "../secret.png", "prompt": PROMPTS[0]}),
    ):
        (tmp_path / "f" / "metadata.jsonl").write_text(json.dumps(row) + "\n")
        with pytest.raises(ValueError, match="lies outside"):
            found(open_layout(way, tmp_path / "f"), CASES[0])


def test_images_of_several_models_stand_apart(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    options = oneig(tmp_path / "f")
    shutil.copytree(tmp_path / "f" / "object" / "gpt-4o", tmp_path / "f" / "object" / "imagen4")
    with raises("different-rows", "gpt-4o, imagen4", "model=", error=UsageError):
        open_layout("oneig", tmp_path / "f", options)
    folder = open_layout("oneig", tmp_path / "f", options + "&model=gpt-4o")
    assert found(folder, CASES[0]).getpixel((1, 1)) == colour(0, 0)
    with raises("different-rows", "has images of no model", error=UsageError):
        open_layout("oneig", tmp_path / "f", options + "&model=dalle")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("layout=geneval3", ("unknown-name", "'geneval3'", "mean geneval", "dpg-grid, evalscope")),
        ("template={promt}", ("unknown-name", "'promt'", "mean prompt?", "row, variant")),
        ("layout=geneval", ("nothing-to-do", "layout geneval")),
        ("layout=wise", ("missing-option", "WISE", "prompts=")),
        ("layout=wise&prompts=nowhere.json", ("no-such-file", "nowhere.json")),
        ("layout=oneig", ("missing-option", "grid=1", "grid=2")),
        ("layout=oneig&grid=3", ("bad-option", "grid", "1 to 2", "'3'")),
        ("layout=dpg-grid", ("missing-option", "DPG", "prompts=")),
        ("layout=imagedataset", ("unknown-format", "parquet", "metadata.jsonl")),
        ("layout=geneval&revision=v1", ("no-revision", "folder")),
        ("layout=geneval&template={row}", ("conflicting-options", "template, manifest and layout")),
        ("grid=2", ("missing-option", "grid", "layout=")),
        ("layuot=geneval", ("unknown-option", "'layuot'", "mean layout?")),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(
    tmp_path: Path, options: str, reason: tuple[str, ...]
) -> None:
    with raises(*reason, error=UsageError):
        open_generator(f"folder:{tmp_path}?{options}")


@pytest.mark.parametrize(
    ("name", "file", "text", "reason"),
    [
        (
            "geneval",
            "00000/metadata.jsonl",
            '{"tag": "x"}',
            ("missing-field", "metadata.jsonl:1: ", "`prompt`"),
        ),
        ("geneval", "00000/metadata.jsonl", "<html>", ("bad-json", "metadata.jsonl:1: ")),
        ("geneval2", "x.json", "[1]", ("wrong-type", "x.json")),
        ("geneval2", "x.json", '{"a": 1}', ("wrong-type", "x.json", "'a'", "path")),
        ("geneval2", "x.json", "<html>", ("bad-json", "x.json")),
        ("wise", "x.json", '[{"Prompt": "a"}]', ("missing-field", "x.json:1: ", "`prompt_id`")),
        (
            "evalscope",
            "x.jsonl",
            '{"prompt": "a"}\n',
            ("missing-field", "x.jsonl:1: ", "`image_path`"),
        ),
        (
            "imagedataset",
            "metadata.jsonl",
            '{"file_name": "a"}\n',
            ("missing-field", "metadata.jsonl:1: ", "`prompt`"),
        ),
    ],
)
def test_a_bad_list_names_its_row(
    tmp_path: Path, name: str, file: str, text: str, reason: tuple[str, ...]
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    with raises(*reason, error=DataError):
        open_layout(name, tmp_path)


def test_a_dataset_of_the_hub_is_pinned_to_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "1a" * 20
    parquet(tmp_path / commit)
    asked: list[Any] = []

    def downloaded(repo: str, **options: Any) -> str:
        asked.append((repo, options["repo_type"], options["revision"]))
        if repo != "someone/images":
            raise OSError("no such repository\nand much advice")
        return str(tmp_path / commit)

    monkeypatch.setattr("huggingface_hub.snapshot_download", downloaded)
    folder: Any = open_generator("folder:someone/images?layout=imagedataset&revision=v1")
    assert asked == [("someone/images", "dataset", "v1")]
    assert found(folder, CASES[5]).getpixel((1, 1)) == colour(1, 1)
    identity = folder.identity()
    assert identity["name"] == "someone/images" and identity["revision"] == commit
    with raises("no-such-file", "some/typo", "Hub", "no such repository", error=UsageError):
        open_generator("folder:some/typo?layout=imagedataset")


@pytest.mark.slow
def test_a_run_on_another_benchmarks_folder(
    text_release: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan = RunSettings("t2i_homogenization", str(text_release), tmp_path / "plan", seeds=4, limit=2)
    planned = generate(plan, "render:").run
    folder, texts = tmp_path / "dpg", tmp_path / "prompts"
    texts.mkdir()
    prompts = {case.prompt: case for case in planned.cases()}
    for number, prompt in enumerate(prompts):
        mine = [case for case in planned.cases() if case.prompt == prompt]
        whole = Image.new("RGB", (1024, 768))
        for case in mine:
            place = (case.number % 2 * 512, case.number // 2 * 384)
            with Image.open(planned.image_path(planned.images()[case.id])) as made:
                whole.paste(made, place)
        save(whole, folder / f"{number}.png")
        (texts / f"{number}.txt").write_text(prompt)
    settings = RunSettings(plan.suite, plan.data, tmp_path / "run", seeds=4, limit=2)
    run = generate(settings, f"folder:{folder}?layout=dpg-grid&prompts={texts}").run
    for case in run.cases():
        paths = [one.image_path(one.images()[case.id]) for one in (run, planned)]
        first, second = (Image.open(path).tobytes() for path in paths)
        assert first == second


NAMINGS = {
    "{row}_{variant}_{seed}.png": "template={row}_{variant}_{seed}",
    "images/{row}-{variant}-{seed}.PNG": "template=images/{row}-{variant}-{seed}",
    "{variant}/{row}/{number:04}.jpg": "template={variant}/{row}/{number:04}",
    "gen-{row}-{number}.webp": "template=gen-{row}-{number}",
    "{row} [{variant}] ({seed}).png": "template={row} [{variant}] ({seed})",
    "{prompt}/{seed}.png": "template={prompt}/{seed}",
    "Out_{slug}_{number}.png": "template=Out_{prompt}_{number}",
    "seed{number}/{prompt}.png": "template=seed{number}/{prompt}",
    "{prompt}/{nth}.png": "template={prompt}/{nth}",
    "{prompt:.20}_{number}.png": "template={prompt:.20}_{number}",
    "sample-{nth}/{prompt:.16}.webp": "template=sample-{nth}/{prompt:.16}",
}
"""How a stranger may name images -> what mends it."""


@pytest.mark.parametrize("naming", NAMINGS)
def test_images_of_other_names_are_listed_with_the_command_that_finds_them(
    naming: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for case in CASES:
        slug = case.prompt.strip(".").replace(",", "").replace(" ", "_")
        fields = {n: getattr(case, n) for n in ("row", "variant", "seed", "number", "prompt")}
        file = naming.format(**fields, slug=slug, nth=case.number + 1)
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    open_generator(f"folder:{tmp_path}").check(CASES)
    assert "12 of 12 cases have no file" in caplog.text and "holds 12 images" in caplog.text
    assert f"{CASES[0].row}-plain-11.png" in caplog.text
    spec = f"folder:{tmp_path}?{NAMINGS[naming]}"
    assert f"--generator '{spec}', which has 12 of 12" in caplog.text
    caplog.clear()
    open_generator(spec).check(CASES)
    assert not caplog.text


def test_a_layout_is_guessed_from_its_prompts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    geneval(tmp_path)
    open_generator(f"folder:{tmp_path}").check(CASES)
    assert f"'folder:{tmp_path}?layout=geneval', which has 12 of 12" in caplog.text


def test_a_list_of_files_and_prompts_is_tried(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = listed_beside(tmp_path / "f")
    open_generator(f"folder:{tmp_path / 'f'}").check(CASES)
    spec = f"folder:{tmp_path / 'f'}?layout=imagedataset{options}"
    assert f"--generator '{spec}', which has 12 of 12" in caplog.text


def test_a_layout_that_the_folder_lacks_says_what_it_has(tmp_path: Path) -> None:
    numbered(tmp_path / "f")
    advice = ("holds 12 images (12 .png): 0001.png", f"--generator 'folder:{tmp_path / 'f'}'")
    with raises("nothing-to-do", "layout geneval", *advice, error=UsageError):
        open_layout("geneval", tmp_path / "f")


@pytest.mark.parametrize(("odd", "is_named"), [(0, False), (1, True), (3, True), (4, False)])
def test_an_image_of_another_size_than_the_others_is_named(
    odd: int, is_named: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for place, case in enumerate(CASES):
        size = (20, 16) if place < odd else (32, 24)
        Image.new("RGB", size).save(tmp_path / f"{case.id}.png")
    open_generator(f"folder:{tmp_path}").check(CASES)
    named = (
        "not 32 x 24 like the other" in caplog.text and "r0-plain-11.png (20 x 16)" in caplog.text
    )
    assert (named, bool(caplog.text)) == (is_named, is_named)


def test_names_that_say_nothing_need_a_manifest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither numbers nor the row alone say which case an image is of."""
    for number, _ in enumerate(CASES):
        (tmp_path / f"{number:05}.png").touch()
    (tmp_path / "r0.png").touch()
    open_generator(f"folder:{tmp_path}").check(CASES)
    assert "holds 13 images (13 .png): 00000.png, 00001.png, 00002.png, ..." in caplog.text
    assert "?manifest=FILE" in caplog.text and "which has" not in caplog.text


def test_endings_in_capitals_are_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for case in CASES:
        (tmp_path / f"{case.id}.PNG").touch()
    open_generator(f"folder:{tmp_path}").check(CASES)
    assert not caplog.text


def test_numbers_are_the_lines_of_a_list_that_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = numbered(tmp_path / "f")
    open_generator(f"folder:{tmp_path / 'f'}").check(CASES)
    spec = f"folder:{tmp_path / 'f'}?layout=numbered{options}"
    assert f"--generator '{spec}', which has 12 of 12" in caplog.text
    caplog.clear()
    (tmp_path / "list.jsonl").rename(tmp_path / "list.gone")
    open_generator(f"folder:{tmp_path / 'f'}").check(CASES)
    assert "prompts=prompts.jsonl'; if you have the list no more, `counterprior" in caplog.text
    (tmp_path / "list.gone").rename(tmp_path / "list.jsonl")
    (tmp_path / "f" / "0012.png").unlink()
    with raises("different-rows", "1 to 11", "lists 12", error=DataError):
        open_layout("numbered", tmp_path / "f", options)


def test_two_names_alike_are_of_no_case(tmp_path: Path) -> None:
    for name in ("a dog and a cat.png", "A_dog-and a cat.png"):
        (tmp_path / name).touch()
    with raises("ambiguous-file", "A_dog-and a cat.png", error=UsageError):
        open_generator(f"folder:{tmp_path}?template={{prompt}}").check(CASES[:1])
