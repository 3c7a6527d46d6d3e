"""Commands that run while their caller goes on, and end with it at the latest."""
