"""The swarm as an MCP server: other agents submit objectives, follow them and answer their questions."""
