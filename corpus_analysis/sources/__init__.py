"""Files of captions, local or on the Hub, as tables with the same columns.

`shards` lists and reads them in pieces, `archives` reads tars and folders of captioned images, and
`columns` matches the columns of a corpus to ours.
"""
