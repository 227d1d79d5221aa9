"""Processes that share work: here, or as Ray actors; what they do is their caller's."""
