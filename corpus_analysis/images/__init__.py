"""Fetching of images from their addresses or places: limits, checks and storage."""
