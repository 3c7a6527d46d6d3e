"""Typed records that are stored or exchanged, and the ports. Pure: no I/O."""
