"""The pictures of a spatial run as `counterprior detect` and `audit sample` read them."""

from __future__ import annotations

from collections.abc import Mapping

from ...schema import Row, SpatialUC, SpatialVISOR
from ...tables import write_rows
from .run import Run

MANIFEST = "manifest.jsonl"


def write_manifest(run: Run, rows: Mapping[str, Row]) -> None:
    """Every picture that the run wants, with what its prompt says; nothing for other suites.

    A picture that there is none of stands in it too, so that `detect` counts it as unreadable.
    """
    if not any(isinstance(row, (SpatialUC, SpatialVISOR)) for row in rows.values()):
        return
    images = run.images()
    entries = []
    for case in run.cases():
        row, image = rows[case.row], images.get(case.id)
        assert isinstance(row, (SpatialUC, SpatialVISOR))
        entries.append(
            {
                "sample_id": case.id,
                "prompt_id": case.variant,
                "file": (image.file if image else "") or f"images/{case.id}.png",
                "prompt": case.prompt,
                "relation": row.relation,
                "object_a": row.object_a,
                "object_b": row.object_b,
            }
        )
    write_rows(run.root / MANIFEST, entries)
