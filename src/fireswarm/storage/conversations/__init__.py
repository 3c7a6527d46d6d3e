"""Conversation state: one change function and three stores for it."""
