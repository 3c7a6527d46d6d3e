"""Notices: what a person wants to hear of, stored in `agent_notices` and delivered to webhooks and commands."""
