"""Texts without this machine's paths and keys, and runs as a dataset: written, read, judged again.

`publication` holds the format, `building` writes a publication, `card` its README, `restoring`
turns it back into runs, and `hub` is the generator that hands out its images.
"""
