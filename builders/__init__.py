"""From the curated banks under ``bank/`` to the items of every suite.

May import `schema`, `agents` and `eval` (generators only).
"""
