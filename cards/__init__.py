"""The release: parquet, card, datasheet, Croissant, checksums; diff, validation, push to the Hub.

May import `schema` and the builders' manifest.
"""
