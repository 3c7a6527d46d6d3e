"""The decision in a line that a person types about an action."""

from __future__ import annotations

import pytest

from fireswarm.cli.agent.ask import decision_of


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("y", "yes"),
        (" Yes. ", "yes"),
        ("a", "always"),
        ("ALWAYS!", "always"),
        ("n", "no:"),
        ("no, not on Friday", "no:not on Friday"),
        ("yes, but only after a backup", ""),
        ("y: if the tests pass", ""),
        ("always unless it deletes", ""),
        ("why", ""),
        ("", ""),
    ],
)
def test_only_a_bare_yes_allows(line: str, decision: str) -> None:
    assert decision_of(line) == decision
