"""Scoring generators: generators, judges, detectors, metrics, statistics and reports.

May import `schema` and `agents`; reads a release with `counterprior.load`, as any user does.
"""
