"""Public instances that ship as test data, and their optimal costs."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "instances"
OPTIMAL = {
    "berlin52.tsp": ("tsp", "tour", "berlin52.opt.tour", 7542),
    "att48.tsp": ("tsp", "tour", "att48.opt.tour", 10628),
    "ulysses16.tsp": ("tsp", "tour", "ulysses16.opt.tour", 6859),
    "A-n32-k5.vrp": ("cvrp", "sol", "A-n32-k5.sol", 784),
    "X-n101-k25.vrp": ("cvrp", "sol", "X-n101-k25.sol", 27591),
    "ft06.txt": ("jssp", "csv", "ft06.schedule.csv", 55),
    "ft10.txt": ("jssp", "csv", "ft10.schedule.csv", 930),
    "la01.txt": ("jssp", "csv", "la01.schedule.csv", 666),
}
"""By file: its problem, the format and the file of an optimal solution, and the cost of that."""
