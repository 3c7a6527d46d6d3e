"""One leased task to its outcome: inputs, engine, outputs."""
