"""Trials of reliability: wrong inputs, signals and damaged files for every command, with a verdict on how each ended."""
