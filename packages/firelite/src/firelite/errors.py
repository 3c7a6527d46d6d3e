"""All errors that firelite raises.

::

    FireliteError                 code + message; the base of all
    ├── InvalidArgument           INVALID_ARGUMENT     the request is malformed or breaks a documented limit
    ├── NotFound                  NOT_FOUND            a precondition requires a missing document
    ├── AlreadyExists             ALREADY_EXISTS       a ``create`` writes an existing document
    ├── FailedPrecondition        FAILED_PRECONDITION  stale update_time, missing index, read_time too old
    ├── Aborted                   ABORTED              a transaction lost a conflict; restart it
    ├── ResourceExhausted         RESOURCE_EXHAUSTED   base of the next
    │   └── DiskFull              RESOURCE_EXHAUSTED   the disk, or a quota of it, is full
    ├── Unavailable               UNAVAILABLE          the store is closed or its file cannot be written
    ├── Unimplemented             UNIMPLEMENTED        firelite lacks the feature in the message
    ├── DataFileInUse             FAILED_PRECONDITION  another process has the data file open
    ├── CorruptDataFile           DATA_LOSS            the data file is damaged
    └── PortInUse                 UNAVAILABLE          the server's port is taken

``code`` is the name of the gRPC status that production returns in the same case.
"""

from __future__ import annotations

import shlex
from pathlib import Path


class FireliteError(Exception):
    """Base of all errors that firelite raises; ``message`` includes the fix."""

    code = "INTERNAL"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidArgument(FireliteError):
    """The request is malformed or breaks a documented limit. A retry cannot succeed."""

    code = "INVALID_ARGUMENT"


class NotFound(FireliteError):
    """A precondition requires a document that is missing."""

    code = "NOT_FOUND"


class AlreadyExists(FireliteError):
    """A precondition requires a missing document, but it exists."""

    code = "ALREADY_EXISTS"


class FailedPrecondition(FireliteError):
    """The state of the database does not allow the request."""

    code = "FAILED_PRECONDITION"


class Aborted(FireliteError):
    """A transaction or a write lost a conflict. A retry from the start may succeed."""

    code = "ABORTED"


class ResourceExhausted(FireliteError):
    """A resource of the machine is exhausted. Nothing of the request was stored."""

    code = "RESOURCE_EXHAUSTED"


class DiskFull(ResourceExhausted):
    """The disk, or the user's quota of it, is full. Nothing of the request was stored."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"The disk that holds {path} is full: free some space in {path.parent} or raise the quota, then retry. "
            "Nothing was stored."
        )


class Unavailable(FireliteError):
    """The store is closed or cannot write at the moment."""

    code = "UNAVAILABLE"


class Unimplemented(FireliteError):
    """Firelite lacks this feature; the message names it."""

    code = "UNIMPLEMENTED"


class DataFileInUse(FireliteError):
    """Another process has the data file open.

    Attributes: ``path`` of the file, ``pid`` of the holder, and the ``endpoint`` (``host:port`` or ``unix:PATH``) that
    the holder serves. The last two are None if unknown.
    """

    code = "FAILED_PRECONDITION"

    def __init__(self, path: Path, pid: int | None, endpoint: str | None) -> None:
        """Compose the message from the holder's process id and endpoint, if known."""
        self.path = path
        self.pid = pid
        self.endpoint = endpoint
        advice = (
            f"connect to it with FIRESTORE_EMULATOR_HOST={shlex.quote(endpoint)}, or " if endpoint is not None else ""
        )
        super().__init__(f"The data file {path} is open in {self.holder}; {advice}end that process{self.command}.")

    @property
    def holder(self) -> str:
        """Name of the process that has the file open."""
        return f"process {self.pid}" if self.pid is not None else "another process"

    @property
    def command(self) -> str:
        """Return the command that ends the holder, in parentheses after a space; empty if the process is unknown."""
        return f" (`kill {self.pid}`)" if self.pid is not None else ""


class CorruptDataFile(FireliteError):
    """The data file is damaged; it was not changed."""

    code = "DATA_LOSS"

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        aside = f"mv {shlex.quote(str(path))} {shlex.quote(f'{path}.damaged')}"
        super().__init__(
            f"The data file {path} is damaged ({reason}). It was left as it is. Move it aside (`{aside}`), then "
            "restore a backup or import an export, or start with an empty database."
        )


class PortInUse(FireliteError):
    """The address is in use."""

    code = "UNAVAILABLE"

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        super().__init__(f"{host}:{port} is in use by another program; choose another port, or 0 for any free one.")
