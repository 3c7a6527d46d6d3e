"""Find the lines of a text that match a pattern of a model, in time proportional to the text."""

from __future__ import annotations

from collections.abc import Sequence

from fireswarm.contracts.linear_pattern import check_glob, check_pattern, search_pattern
from fireswarm.errors import ConfigError, InvalidInput


def check_search(pattern: str = "", glob: str = "**") -> None:
    """Raise InvalidInput for a regular expression or a glob that cannot be used."""
    try:
        check_pattern(pattern)
        check_glob(glob)
    except ConfigError as error:
        raise InvalidInput(str(error)) from error


def find_matching_lines(pattern: str, lines: Sequence[str]) -> list[int]:
    """Return the positions, from 0, of the lines in which *pattern* matches."""
    return [number for number, line in enumerate(lines) if search_pattern(pattern, line)]
