"""Writing constrained pairs: Prompt Scout, Constraint Critic, Benchmark Curator (OTS-Bench C)."""
