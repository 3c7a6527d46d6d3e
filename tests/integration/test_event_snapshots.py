"""Golden event logs of known scenarios: every event with its payload; values that vary between runs are blanked.

After a wanted change, run ``pytest tests/integration/test_event_snapshots.py --snapshot-update`` and read the diff.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.support.minds import Bench, Heard, Ran, command, decided, use

pytestmark = pytest.mark.anyio

VOLATILE = frozenset(
    ("latency_ms", "pause_seconds", "bytes", "tokens", "input_tokens")
    + ("allocated_prompt_tokens", "allocated_disclosure_tokens")
)
"""Times and sizes. The sizes depend on the length of the test's folder name, which skills disclose."""
SIZES = re.compile(r"(size: about |run_state_summary )[0-9,]+")
"""Sizes in a text that depend on the folder name too."""

GOOD = decided(text="Hello, Ada.")


def golden(ran: Ran, root: Path) -> list[str]:
    """Return one line per event; values that differ from run to run are blanked."""

    def blank(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: "*" if name in VOLATILE else blank(item) for name, item in value.items()}
        if isinstance(value, list):
            return [blank(item) for item in value]
        return SIZES.sub(r"\1*", value.replace(str(root), "ROOT")) if isinstance(value, str) else value

    found: list[str] = []
    for event in ran.events:
        payload = blank(event.payload)
        if event.event_type == "skill_prefilter_completed":
            payload["candidates"] = [found["skill_name"] for found in payload["candidates"]]
        if "components" in payload:
            payload["components"] = list(payload["components"])
        found.append(f"{event.span_id} {event.event_type.value} {json.dumps(payload, ensure_ascii=False)}")
    return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path).set(skills__prefilter_min_score=1)
    made.skill(
        "greeter", (made.skills / "greeter" / "SKILL.md").read_text(), {"scripts/greet.sh": 'echo "Hello, $1."\n'}
    )
    return made


async def test_run_of_one_turn_is_logged(bench: Bench, snapshot: SnapshotAssertion) -> None:
    assert golden(await bench.run([GOOD]), bench.root) == snapshot


async def test_run_of_several_turns_is_logged(bench: Bench, snapshot: SnapshotAssertion) -> None:
    script = Heard(
        decided(
            use("greeter", "its manners first"),
            {"name": "read_skill_file", "input": {"skill": "greeter", "path": "references/manners.md"}},
        ),
        decided(command("bash ../skills/greeter/scripts/greet.sh Ada")),
        GOOD,
    )
    assert golden(await bench.run(script), bench.root) == snapshot


async def test_handoff_between_skills_is_logged(bench: Bench, snapshot: SnapshotAssertion) -> None:
    script = Heard(
        decided(use("greeter", "greet first"), command("echo hello")),
        decided(use("farewell", "greeted, and now part")),
        decided(text="Goodbye."),
    )
    assert golden(await bench.run(script), bench.root) == snapshot


async def test_dry_run_is_logged(bench: Bench, snapshot: SnapshotAssertion) -> None:
    assert golden(await bench.run([GOOD], dry_run=True), bench.root) == snapshot


async def test_retries_before_success_are_logged(bench: Bench, snapshot: SnapshotAssertion) -> None:
    script = Heard({"error": 529, "message": "overloaded"}, {"error": 429, "retry_after": 2}, GOOD)
    assert golden(await bench.run(script), bench.root) == snapshot


async def test_failed_step_and_its_fallback_are_logged(bench: Bench, snapshot: SnapshotAssertion) -> None:
    bench.set(skills__prefilter_min_score=1, runtime__on_step_failure="retry_once_then_fallback_then_abort")
    script = Heard(decided(use("greeter"), command("echo no >&2; exit 3")), decided(text="Goodbye."))
    assert golden(await bench.run(script), bench.root) == snapshot
