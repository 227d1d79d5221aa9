"""Metrics as pure functions over arrays; which one scores which config is said in `suites`."""
