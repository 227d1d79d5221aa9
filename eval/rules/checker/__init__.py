"""The abstaining geometric checker (SpatialBench-UC): PASS, FAIL or UNDECIDABLE, with a reason.

`rules` are its settings, `recorded` the detections that it reads, `decide` the rules in their
order, `summary` its metrics.
"""
