"""Scoring generators. `core` holds the nouns: read it first.

Rooms import only from those before them; `tests/test_layout.py` lists them in order. The Python API
is `api`, as `counterprior.evaluate` and `counterprior.prompts`.
"""
