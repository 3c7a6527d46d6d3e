"""``/v1/schedules``."""
