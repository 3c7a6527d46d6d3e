"""Role cards and what a role adds to a turn."""
