"""Versioned results on the command line: what there is, where from, what differs, what can go."""
