"""Talking to models, and writing benchmark content with them.

May import the modules at the root only: `schema`, `specs`, `storage`, `errors`, `progress`.
"""
