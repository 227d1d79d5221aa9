"""Loops around the engine: races, planning, the self-test."""
