"""A run as an object: its folder, settings, presets, record, status and report."""
