"""The parts of `benchmarks/quality.py`: small trainings, cells of the table, statistics, tables and pictures."""
