"""The swarm as agents of the Agent2Agent protocol (A2A), one a role: other agents submit tasks and follow them."""
