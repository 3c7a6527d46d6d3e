"""Kill the processes of a command once the process that started it is gone, even after ``kill -9``.

That process holds the other end of standard input.
"""

from __future__ import annotations

import os
import signal
import sys

from fireswarm.processes.descendants import Descendants


def main() -> None:
    """Wait for the end of standard input, then kill every process that has the mark in the arguments."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 1):
        pass
    Descendants(sys.argv[1], frozenset()).kill_all()


if __name__ == "__main__":
    main()
