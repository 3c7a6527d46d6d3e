"""Pydantic models of everything stored or exchanged, and the ports. No I/O."""
