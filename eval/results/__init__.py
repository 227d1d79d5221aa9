"""From records to results: scores, corrections, judge cards, comparisons. Reading never writes."""
