"""One run: a generator on a suite, made and judged case by case, resumable."""
