"""Writing counterfactual groups and symbolic rules from curated laws (CF-World 3 and 5)."""
