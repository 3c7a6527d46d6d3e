"""Run every test that docs/explanation/security.md names as an attack, and print how many attacks were held.

python tools/hostile.py [PYTEST OPTIONS]
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "security.md"
TEST = re.compile(r"`((?:packages/firelite/)?tests/[\w/]+\.py(?:::\w+)?)`")


def attacks() -> list[str]:
    """Return the tests of the page's threats, each once, without those of a file that is named as a whole."""
    named = list(dict.fromkeys(TEST.findall(PAGE.read_text(encoding="utf-8"))))
    files = {test for test in named if "::" not in test}
    return [test for test in named if test in files or test.partition("::")[0] not in files]


def main() -> int:
    """Run the tests; returns pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *sys.argv[1:], *attacks()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode:
        sys.stdout.write(done.stdout + done.stderr)
    sys.stdout.write(f"attacks of {len(attacks())} tests in docs/explanation/security.md: {last}\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
