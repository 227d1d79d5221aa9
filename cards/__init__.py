"""The release: parquet, card, datasheet, Croissant, checksums; diff, validation, push to the Hub.

May import `schema`, `storage`, `release` and the builders' manifest.
"""
