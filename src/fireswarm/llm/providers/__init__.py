"""Adapters to Anthropic, Gemini and scripted answers, and their errors."""
