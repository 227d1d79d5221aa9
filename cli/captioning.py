"""The command that measures what captioners, and people, name first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .options import CallOptions, Input, Json, Model, Output, Sampling
from .progress import progress_bar
from .show_captioning import print_captioning


def captioning(
    out: Annotated[Path, Output(help="Folder of the run.")],
    calls: CallOptions,
    captioner: Annotated[
        list[str] | None,
        Model(
            "--captioner", help="Spec: openai:MODEL, hf-vlm:PATH, recorded:FILE ...; repeatable."
        ),
    ] = None,
    boxes: Annotated[
        Path | None, Input(help="COCO instances of photographs; without them, scenes are drawn.")
    ] = None,
    images: Annotated[Path | None, Input(help="Folder of the photographs.")] = None,
    people: Annotated[
        Path | None, Input(help="People's captions of the photographs: COCO's format, or rows.")
    ] = None,
    scenes: Annotated[int, Sampling(min=1, help="Scenes to draw.")] = 200,
    limit: Annotated[int | None, Sampling(min=1, help="Maximum number of photographs.")] = None,
    wording: Annotated[
        list[str] | None, Sampling("--wording", help="Only this instruction; repeatable.")
    ] = None,
    seed: Annotated[int, Sampling(min=0, help="Seed of the scenes.")] = 0,
    json: Json = False,
) -> None:
    """Measure whether captions name the left one first; run again to continue.

    Every image is also shown mirrored, so that preferences for a thing cancel out.

    Example: `counterprior corpus captioning --captioner openai:MODEL --out runs/captions`
    """
    from ..corpus_analysis.captioning.run import CaptioningSettings, measure_captions
    from ..eval.suites.caption_order import USUAL_WORDINGS

    settings = CaptioningSettings(
        out=out,
        captioners=tuple(captioner or ()),
        scenes=scenes,
        boxes=boxes,
        images=images,
        people=people,
        wordings=tuple(wording or USUAL_WORDINGS),
        limit=limit,
        seed=seed,
        cost=calls.cost(),
    )
    with progress_bar() as progress:
        print_captioning(measure_captions(settings, progress), out, json)
