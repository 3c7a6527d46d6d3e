"""The capability `mcp`: tools of Model Context Protocol servers."""
