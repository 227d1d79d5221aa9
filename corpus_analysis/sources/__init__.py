"""Files of captions, local or on the Hub, as tables with the same columns.

`shards` lists and reads them in pieces, `archives` reads tars and folders of captioned images, and
`columns` finds out which column of a corpus holds what.
"""
