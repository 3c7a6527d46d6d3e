"""Adapters to Claude, Gemini, chat completions and scripted answers: credentials, messages, errors."""
