"""Read which tests passed, from the JUnit file that pytest leaves."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from fireswarm import read_regular_file

MAX_BYTES = 20_000_000
REPLAY = "test_the_same_requests_and_items"
"""Name of the test that replays a recorded input."""

DOCUMENTED = "test_the_request_of_the_document"
"""Name of the test that compares a request with what the document asks for."""


TOLD = "test_the_request_of_the_schema"
"""Name of a comparison with what the schema says, which is made outside of pytest only."""


def read_outcomes(file: Path) -> dict[str, bool]:
    """Return whether each test passed, by its name. Empty if pytest did not come to its end, or the file is no result.

    The tests could have changed the file, as they could have changed the exit code.
    """
    try:
        content = read_regular_file(file, MAX_BYTES, follow=False)
        if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
            return {}
        root = ElementTree.fromstring(content)
    except (OSError, ElementTree.ParseError):
        return {}
    found: dict[str, bool] = {}
    for case in root.iter("testcase"):
        name = case.get("name") or ""
        found[name] = found.get(name, True) and not any(each.tag in ("failure", "error", "skipped") for each in case)
    return found


def case_name(operation: str, case: str, test: str = REPLAY) -> str:
    """Return the name of the test of an input of an operation, as pytest writes it."""
    shown = f"{operation}-{case}".encode("unicode_escape").decode("ascii")
    return f"{test}[{shown}]"
