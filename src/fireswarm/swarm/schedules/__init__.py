"""Schedules: objectives that are submitted again and again, stored in `agent_schedules` and fired by their role."""
