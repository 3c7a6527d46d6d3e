"""Collect the readings that sensors drop into a folder as files.

python3 -u collector.py FOLDER --interval 0.2
"""

import argparse
import fcntl
import os
import time
from pathlib import Path


class Collector:
    """Reads each file of a folder once for each of its versions."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.seen = {}

    def poll(self):
        """Return the readings of files that are new or have changed, by their names."""
        readings = {}
        for path in sorted(self.folder.glob("*.txt")):
            reading = self._read(path)
            if reading is not None:
                readings[path.name] = reading
        return readings

    def _read(self, path):
        """Return the number in a file, or None if it is known already, is being written, or holds none."""
        number = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(number)
            return None
        version = os.fstat(number).st_mtime_ns
        if self.seen.get(path.name) == version:
            return None
        text = os.read(number, 100).decode("ascii", "replace").strip()
        self.seen[path.name] = version
        try:
            reading = float(text)
        except ValueError:
            return None
        os.close(number)
        return reading


def open_descriptors():
    """Return the number of files that this process has open."""
    return len(os.listdir("/proc/self/fd"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--interval", type=float, default=1.0)
    given = parser.parse_args()
    collector = Collector(given.folder)
    while True:
        readings = collector.poll()
        print(f"{len(readings)} new readings, {open_descriptors()} open descriptors")
        time.sleep(given.interval)


if __name__ == "__main__":
    main()
