"""The typed contracts of every document and envelope: pydantic v2, frozen, no I/O."""
