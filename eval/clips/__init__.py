"""Clips as evidence: which frames are judged, and what their verdicts say together."""
