"""The release: parquet, card, datasheet, Croissant, checksums; diff, validation, push to the Hub.

`manifest` holds everything that the documents state. May import the builders' result and
`eval.publishing`, whose publications are pushed and verified like releases.
"""
