"""What is raised."""


class TooMany(Exception):
    """The limit of a key is reached. ``retry_after`` is the time in seconds until the oldest hit leaves the window."""

    def __init__(self, key: str, retry_after: float) -> None:
        super().__init__(f"too many calls of {key}, again in {retry_after:.1f} s")
        self.key = key
        self.retry_after = retry_after
