"""Statistics of scores: intervals, resampling, comparison, agreement, correction, planning.

Pure functions over arrays, none of which knows what a benchmark is.
"""
