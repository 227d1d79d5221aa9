"""What labels count, and scores with intervals from them, for all suites alike."""
