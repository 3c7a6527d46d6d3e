"""Run the turn of one leased task: inputs, engine, outputs."""
