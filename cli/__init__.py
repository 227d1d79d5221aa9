"""The command line: one module a subject; each command parses arguments and calls one function.

May import every room; nothing imports it.
"""
