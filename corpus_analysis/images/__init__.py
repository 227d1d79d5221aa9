"""Addresses to images: what may be fetched, how much of it, and what is kept."""
