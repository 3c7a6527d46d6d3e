"""Search in texts: words of any language, and BM25. The router of skills and the memory of a session share it."""
