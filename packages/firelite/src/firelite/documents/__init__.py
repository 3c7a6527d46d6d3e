"""Documents and values: protos, paths, value order, field masks, size limits."""
