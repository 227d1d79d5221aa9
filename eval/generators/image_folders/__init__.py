"""How other benchmarks lay out their images in a folder, so that a case finds its image by prompt.

`listing` has the nouns, `known` a function for each layout, `guessing` what else a folder may be.
"""
