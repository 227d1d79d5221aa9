"""The self-test: rows whose truth is known, drawn, judged and scored through the whole chain."""
