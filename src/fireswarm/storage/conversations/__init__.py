"""Conversation state: one change function and two stores for it."""
