"""The annotation game: teller, drawer, judge and comparer make test items from images (ACON)."""
