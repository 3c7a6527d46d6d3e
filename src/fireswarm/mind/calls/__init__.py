"""The calls of a model: tools, inputs, results, outputs."""
