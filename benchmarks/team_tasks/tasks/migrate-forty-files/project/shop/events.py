"""Events with fields, for counting and searching."""

told: list[tuple[str, str, dict[str, object]]] = []


def info(event: str, **fields: object) -> None:
    """Tell what usually happens."""
    told.append(("info", event, fields))


def warning(event: str, **fields: object) -> None:
    """Tell what somebody should know."""
    told.append(("warning", event, fields))


def error(event: str, **fields: object) -> None:
    """Tell what went wrong."""
    told.append(("error", event, fields))
