"""Tuning a denoiser on mirrored pairs: the recipe, its data, its cache and the training loop."""
