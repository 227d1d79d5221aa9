"""Captions to pairs: text in, pairs of entities out; nothing here touches a file or the network."""
