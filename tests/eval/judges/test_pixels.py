"""The judge `pixels` on rendered images, against what the renderer drew."""

from pathlib import Path

import counterprior


def test_three_in_a_row_are_seen_as_they_are_drawn(full_release: Path) -> None:
    result = counterprior.evaluate(
        "order_beyond",
        "render:",
        ["pixels", "scene"],
        data=str(full_release),
        only="setting=three_homogenization",
        limit=10,
    )
    truth = {outcome.case.id: outcome for outcome in result.judge("scene").outcomes}
    seen = [
        (outcome.label(question), truth[outcome.case.id].label(question))
        for outcome in result.judge("pixels").outcomes
        for question, _ in outcome.verdicts
    ]
    assert len(seen) > 25
    assert sum(pixels == drawn for pixels, drawn in seen) >= 0.95 * len(seen)
