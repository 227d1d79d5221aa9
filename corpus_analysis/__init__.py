"""Web captions to pairs, images, layout and order-to-space alignment.

May import `schema`, `storage`, `images`, `agents`, `scenes` and `eval` (judges, statistics).
"""
