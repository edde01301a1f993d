"""Compiled local search for tours, routes and schedules."""
