"""What leaves this machine: texts without its paths and keys, and runs as a dataset and back.

`members` finds the runs, `shards` writes tables, `building` makes the folder, `restoring` reads it.
"""
