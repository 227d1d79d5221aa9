"""How other benchmarks lay out their images in a folder, so that a case finds its image by prompt.

`found` has the nouns, `known` one function a layout and `LAYOUTS`.
"""
