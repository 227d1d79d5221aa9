"""Scoring generators. `core` holds the nouns: read it first.

Rooms, an arrow only downward to those named before: stats, core, rules, prompts, checkpoints,
detectors, generators, judges, suites, engine, results, people, studies, report. The Python API is
`studies.evaluation`, as `counterprior.evaluate` and `counterprior.prompts`.
"""
