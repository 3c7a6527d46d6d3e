"""Commands that run in the background of their caller, and end with it at the latest."""
