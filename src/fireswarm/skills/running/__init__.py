"""Run the code of a skill in a process of its own."""
