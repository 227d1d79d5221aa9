"""What the verdicts on frames say together."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import raises

from counterprior.errors import UsageError
from counterprior.eval.clips.frames import FrameChoice
from counterprior.eval.clips.together import changes, clip_verdicts, majority, share
from counterprior.eval.core import FAILURES, Case, Outcome, Verdict
from counterprior.eval.results.clips import clip_scores
from counterprior.eval.suites import open_suite

SIDES = ("first_left", "first_right")
KEY = ("order", "original")
few = settings(max_examples=40)
labels = st.lists(st.sampled_from([*SIDES, "invalid", "unparsed", "error"]), min_size=1, max_size=9)


@few
@given(labels, st.randoms())
def test_most_frames_decide_whatever_their_order(said, rng) -> None:
    together = majority([Verdict(label) for label in said])
    assert together == majority([Verdict(label) for label in rng.sample(said, len(said))])
    answered = [label for label in said if label not in FAILURES]
    if len(answered) * 2 < len(said):
        assert together.failed
        assert said.count(together.label) == max(said.count(one) for one in FAILURES)
    elif together.label != "invalid":
        assert all(
            said.count(together.label) > said.count(o) for o in set(answered) - {together.label}
        )
    else:
        counts = sorted((said.count(one) for one in set(answered)), reverse=True)
        assert counts[0] == said.count("invalid") or counts[0] == counts[1]


@few
@given(labels)
def test_share_and_changes_are_of_frames_with_a_scored_label(said) -> None:
    verdicts = [Verdict(label) for label in said]
    scored = [label for label in said if label in SIDES]
    found = share(verdicts, "first_left", SIDES)
    assert (found is None) == (not scored)
    if found is not None:
        assert found * len(scored) == pytest.approx(scored.count("first_left"))
    turns = changes(verdicts, SIDES)
    assert turns == (sum(a != b for a, b in pairwise(scored)) if len(scored) > 1 else None)
    assert turns == changes(verdicts[::-1], SIDES)


def test_measurements_and_probabilities_are_means_over_frames() -> None:
    one = Verdict("yes", number=0.2, probabilities={"yes": 0.6, "no": 0.4})
    two = Verdict("yes", number=0.4, probabilities={"yes": 0.8, "no": 0.2})
    together = majority([one, Verdict("error", "late"), two])
    assert together.label == "yes" and together.number == pytest.approx(0.3)
    assert together.share("yes") == pytest.approx(0.7)
    assert together.raw == '{"error": 1, "yes": 2}'


def outcome(number: int, said: str, image: str = "made") -> Outcome:
    """A clip whose frames are on the left (`L`), right, `-` invalid or `?` unparsed."""
    names = {"L": "first_left", "R": "first_right", "-": "invalid", "?": "unparsed"}
    frames = {n: {KEY: Verdict(names[sign])} for n, sign in enumerate(said)}
    case = Case(f"row{number}", "plain", 0, 0, "", (f"a{number}/b", f"a{number}", "b"))
    return Outcome(case, clip_verdicts(frames), image, frames)


def test_scores_over_time_of_clips_that_are_set() -> None:
    clips = ["LLLL", "LLRR", "LRRR", "R-LL", "RLRL", "----", "?L??"]
    outcomes = [outcome(number, said) for number, said in enumerate(clips)]
    outcomes.append(outcome(7, "", image="error"))
    suite = open_suite("t2i_homogenization")
    found = {score.name: score for score in clip_scores(suite, outcomes) if score.group == "all"}
    told = {name: (score.value, score.n, dict(score.excluded)) for name, score in found.items()}
    assert told == {
        "order_first_frame": (60.0, 5, {"error": 1, "invalid": 1, "unparsed": 1}),
        "order_last_frame": (60.0, 5, {"error": 1, "invalid": 1, "unparsed": 1}),
        # Of two against two there are not most.
        "order_most_frames": (pytest.approx(200 / 3), 3, {"error": 1, "invalid": 3, "unparsed": 1}),
        "order_frame_share": (
            pytest.approx(100 * (1 + 1 / 2 + 1 / 4 + 2 / 3 + 1 / 2 + 1) / 6),
            6,
            {"error": 1, "invalid": 1},
        ),
        "order_changed": (80.0, 5, {"error": 1, "short": 2}),
        "order_changes": (pytest.approx(6 / 5), 5, {"error": 1, "short": 2}),
    }
    for score in found.values():
        assert score.interval.low <= score.value <= score.interval.high
    assert clip_scores(suite, [Outcome(outcomes[0].case, outcomes[0].verdicts)]) == []


@few
@given(st.integers(1, 200), st.sampled_from([1, 8, 23.98, 60]), st.data())
def test_frames_are_there_and_in_order(frames, rate, data) -> None:
    text = data.draw(
        st.sampled_from(["first,middle,last", "count=5", "rate=2", "last,0", "rate=0.5"])
    )
    found = FrameChoice(text).of(frames, rate)
    assert list(found) == sorted({*found}) and found[0] >= 0 and found[-1] < frames
    if text.startswith("rate="):
        asked = float(text.removeprefix("rate="))
        seconds = (frames - 1) / rate
        assert len(found) == min(frames, math.floor(seconds * min(asked, rate) + 1e-6) + 1)
    else:
        assert found[0] == 0 and found[-1] == frames - 1


def test_frames_that_are_none_are_refused() -> None:
    for text in ("", "fist", "1.5", "count=0", "rate=0", "first,rate=2", "first,"):
        with raises("bad-option", repr(text), error=UsageError):
            FrameChoice(text)
    with raises("no-frame", "frame 8", "of 8", error=UsageError):
        FrameChoice("0,8").of(8, 8)
