"""Kits: all that a problem brings along, and how kits are found."""
