"""Known truth for the self-test: rows, and renderers whose biases are set."""
