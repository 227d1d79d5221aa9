"""Studies: generators x suites x judges from one file, their plan, their tables and recipes."""
