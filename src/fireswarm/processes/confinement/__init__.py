"""Confinement of foreign code with bubblewrap and seccomp: what a process may see, write and use."""
