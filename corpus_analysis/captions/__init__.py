"""Captions to pairs of entities, without touching the network or any file but the bank."""
