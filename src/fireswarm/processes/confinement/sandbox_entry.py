"""First program in the sandbox: drops remaining privileges, sets the limits, and executes the command.

Its source is passed into the sandbox and run there, so it imports the standard library only. On any failure it exits
with ``REFUSED``: nothing runs without its limits.
"""

from __future__ import annotations

import json
import os
import resource
import sys

REFUSED = 125
MARK = "sandbox-entry-failed: "
WORK = "/sandbox"


def enter(given: dict[str, int], command: list[str]) -> None:
    """Execute *command* under the limits *given*."""
    if given["uid"]:
        os.setgroups([])
        os.setresgid(given["uid"], given["uid"], given["uid"])
        os.setresuid(given["uid"], given["uid"], given["uid"])
    os.chdir(WORK)
    os.umask(0o022)
    for name, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, given["cpu_seconds"]),
        (resource.RLIMIT_AS, given["memory_bytes"]),
        (resource.RLIMIT_FSIZE, given["file_bytes"]),
        (resource.RLIMIT_NOFILE, given["open_files"]),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NPROC, given["processes"]),
    ):
        resource.setrlimit(name, (most, most))
    os.execv(command[0], command)


if __name__ == "__main__":
    try:
        enter(json.loads(sys.argv[1]), sys.argv[2:])
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"{MARK}{error}")
        sys.stderr.flush()
        os._exit(REFUSED)
