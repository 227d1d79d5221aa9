"""Loops around the engine: studies from one file, races, seeding, tuning, checks of judges."""
