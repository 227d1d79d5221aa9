"""From sources to pairs: workers mine each shard into one file.

`mine_source` runs the workers, `mine_shard` is what each does, `pair_rows` is the format of the
files; `accuracy` checks the pairs against captions that people read, and `cooccurrence` counts
captions that name two things.
"""
