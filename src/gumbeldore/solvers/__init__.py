"""Outside solvers, for labels, baselines and warm starts."""
