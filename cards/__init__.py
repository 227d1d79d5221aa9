"""The release folder: parquet, README card, datasheet, Croissant, checksums; diff and validation.

May import `schema` and the builders' manifest.
"""
