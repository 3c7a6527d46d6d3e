"""Hand-written tasks: completed and adopted in place, or set aside; the key index detects duplicates."""
