"""Confinement to paths of the machine: the rules, and Seatbelt, which enforces them on macOS."""
