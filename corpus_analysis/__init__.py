"""Web captions to pairs, images, layout and order-to-space alignment.

May import `schema`, `agents` and `eval` (judges, statistics).
"""
