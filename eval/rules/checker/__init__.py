"""The abstaining geometric checker (SpatialBench-UC): PASS, FAIL or UNDECIDABLE, with a reason.

`rules` are its settings, `boxes` its geometry, `recorded` the detections that it reads, `decide`
the rules in their order, `stability` its look at perturbed images, `summary` its metrics.
"""
