"""Run a command beside Google's Firestore emulator: ``python tools/emulator.py [--rules FILE] COMMAND [ARGUMENT...]``.

The emulator is the jar of gcloud's component ``cloud-firestore-emulator`` (Java 17 or newer), found through
``FIRESTORE_EMULATOR_JAR``, the ``gcloud`` on the PATH, the usual folders, or the cache of firebase-tools. The command
gets its address in ``FIRESTORE_EMULATOR_HOST``. Ends with the command's exit code, or 3 if no emulator can be started.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

JAVA_NEEDED = 17
JAR = Path("platform") / "cloud-firestore-emulator" / "cloud-firestore-emulator.jar"
MAIN = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
READY = "Dev App Server is now running"
START_SECONDS = 60
NOT_AVAILABLE = 3
INSTEAD = (
    "Without it: `swarm store serve --memory` serves firelite, and FIRESTORE_EMULATOR_HOST points the tests at it."
)
USAGE = "usage: python tools/emulator.py [--rules FILE] COMMAND [ARGUMENT...]"


class NotAvailable(Exception):
    """The emulator cannot be started here; the message says what to install."""


def candidates() -> Iterator[Path]:
    """Yield the places where the emulator's jar may be, best first."""
    if named := os.environ.get("FIRESTORE_EMULATOR_JAR"):
        yield Path(named)
    if gcloud := shutil.which("gcloud"):
        for parent in Path(gcloud).resolve().parents:
            yield parent / JAR
    home = Path(os.environ.get("HOME", "/nonexistent"))
    for folder in (Path("/usr/lib"), Path("/usr/share"), Path("/opt"), Path("/snap"), home):
        yield folder / "google-cloud-sdk" / JAR
        yield folder / "google-cloud-cli" / JAR
    yield from sorted((home / ".cache" / "firebase" / "emulators").glob("cloud-firestore-emulator-*.jar"), reverse=True)


def find_jar() -> Path:
    """Return the emulator's jar. Raises NotAvailable."""
    for path in candidates():
        if path.is_file():
            return path
    raise NotAvailable(
        "Google's Firestore emulator is not installed: `gcloud components install cloud-firestore-emulator`, or the "
        "package google-cloud-cli-firestore-emulator. FIRESTORE_EMULATOR_JAR names a jar elsewhere."
    )


def find_java() -> str:
    """Return a java that is new enough. Raises NotAvailable."""
    java = shutil.which("java")
    if java is None:
        raise NotAvailable(f"Google's Firestore emulator needs Java {JAVA_NEEDED} or newer, and java is not installed.")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', told)
    if version is None:
        raise NotAvailable(f"`java -version` does not name its version: {told.strip()[:200] or 'no output'}")
    if int(version[1]) < JAVA_NEEDED:
        raise NotAvailable(
            f"Google's Firestore emulator needs Java {JAVA_NEEDED} or newer, and this is Java {version[1]}: "
            "install a newer one and put it first in PATH."
        )
    return java


@contextlib.contextmanager
def emulator(rules: str | None = None) -> Generator[str]:
    """Start the emulator on loopback and yield its address; end it when the block is left. Raises NotAvailable."""
    jar, java = find_jar(), find_java()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [java, "-Duser.language=en", "-cp", str(jar), MAIN, "start", "--host=127.0.0.1", f"--port={port}"]
    if rules is not None:
        command.append(f"--rules={rules}")
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    lines: list[str] = []
    ready = threading.Event()

    def read() -> None:
        for line in process.stdout or ():
            lines.append(line)
            if READY in line:
                ready.set()
        ready.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        _wait_until_ready(ready, lines)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _wait_until_ready(ready: threading.Event, lines: list[str]) -> None:
    """Wait until the emulator serves. Raises NotAvailable with its output if it ended or takes too long."""
    if not ready.wait(START_SECONDS) or not any(READY in line for line in lines):
        raise NotAvailable(
            f"Google's Firestore emulator did not start: {''.join(lines)[-2000:].strip() or 'no output'}"
        )


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit code."""
    rules = None
    if arguments[:1] == ["--rules"] and len(arguments) > 1:
        rules, arguments = arguments[1], arguments[2:]
    if not arguments:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        with emulator(rules) as address:
            environment = os.environ | {"FIRESTORE_EMULATOR_HOST": address}
            return subprocess.run(arguments, env=environment, check=False).returncode
    except NotAvailable as reason:
        print(f"{reason}\n{INSTEAD}", file=sys.stderr)
        return NOT_AVAILABLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
