"""Every word that a command prints is taken by the option that filters by it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio.to_thread
import pytest

from fireswarm.contracts.ports import Create
from fireswarm.contracts.swarm.envelope import MailStatus
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.settings import load_settings
from fireswarm.swarm.opening.open_parts import open_parts
from tests.support.fleet import lay_out
from tests.support.swarm_command import swarm

FORMS: list[Callable[[str], str]] = [
    str,
    str.upper,
    lambda word: word.replace("_", "-"),
    lambda word: word.replace("_", " ").capitalize(),
]


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    """A folder with one task in each state."""
    lay_out(tmp_path, {}, settings={})
    now = datetime.now(UTC)
    common = {"objective": "dig", "assigned_to": "scout", "session_hash": "s", "created_at": now, "updated_at": now}
    blocked = {**common, "status": "blocked"}
    tasks = [
        *(Create(f"agent_tasks/{word}", {**common, "status": word}) for word in TaskStatus),
        *(Create(f"agent_tasks/{word}", {**blocked, "status_reason": word}) for word in StatusReason),
    ]
    async with open_parts(load_settings(tmp_path, {})) as parts:
        await parts.store.commit(tasks)
    return tmp_path


@pytest.mark.anyio
async def test_each_status_in_the_table_can_be_given_as_a_filter(root: Path) -> None:
    def check() -> None:
        rows = [line.split("\t") for line in swarm(root, "tasks").stdout.splitlines()[1:]]
        assert {row[2] for row in rows} == {*TaskStatus, *StatusReason}
        for row in rows:
            found = swarm(root, "tasks", "--status", row[2]).stdout
            assert row[0] in found, row[2]
            if row[2] in list(StatusReason):
                assert {line.split("\t")[2] for line in found.splitlines()[1:]} == {row[2]}
                assert row[0] in swarm(root, "tasks", "--status", f"blocked/{row[2]}").stdout
        for form in FORMS:
            assert "dead_let" in swarm(root, "tasks", "--status", form("dead_letter")).stdout

    await anyio.to_thread.run_sync(check)


@pytest.mark.parametrize(
    ("command", "option", "words"),
    [
        ("runs", "--status", list(RunStatus)),
        ("mail", "--status", list(MailStatus)),
        ("memory", "--type", ["fact", "session_summary", "agent_status"]),
        ("show 0a", "--level", ["debug", "info", "warning", "error"]),
    ],
)
def test_words_are_taken_in_any_printed_form_and_others_are_answered_with_a_close_one(
    command: str, option: str, words: list[str], tmp_path: Path
) -> None:
    lay_out(tmp_path, {}, settings={})
    for word in words:
        for form in FORMS:
            assert option not in swarm(tmp_path, *command.split(), option, form(word)).stderr
        typo = swarm(tmp_path, *command.split(), option, f"{word}x")
        assert f"did you mean {word}?" in typo.stderr


def test_a_role_without_tasks_that_does_not_exist_is_answered_with_a_close_one(tmp_path: Path) -> None:
    lay_out(tmp_path, {}, settings={})
    for command in ("tasks", "runs"):
        assert "did you mean scout?" in swarm(tmp_path, command, "--role", "scot").stderr
        assert swarm(tmp_path, command, "--role", "scout").returncode == 0
