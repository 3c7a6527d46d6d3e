"""The browser of the tests of the console."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from playwright.sync_api import Browser

from tests.support.screens import chromium


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Chromium, once for the tests of a file."""
    with chromium() as opened:
        yield opened
