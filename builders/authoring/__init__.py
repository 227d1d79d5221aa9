"""Banks that agents write: what a run starts from, what may enter, and how it is stored.

A written bank is its base plus the accepted entries: a function of base and ledger, made anew in
each run, so that resumed, repeated and replayed runs end in the same bytes.
"""
