"""The old log: a letter for the level (I, W, E) and a free text."""

lines: list[str] = []


def log(level: str, text: str) -> None:
    """Add a line."""
    lines.append(f"{level} {text}")
