"""Talking to models, and writing benchmark content with them.

May import `schema` and `specs` only.
"""
