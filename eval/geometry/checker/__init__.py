"""The abstaining checker of SpatialBench-UC: PASS, FAIL or UNDECIDABLE, with a reason."""
