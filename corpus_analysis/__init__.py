"""Corpora of captioned images: pairs of things, their images, and which of the two is on the left.

`pipeline` runs all stages: `sources` reads captions, `captions` finds the pairs in one, `mining`
does so for a whole source, `images` fetches, and `alignment` judges and counts.
"""
