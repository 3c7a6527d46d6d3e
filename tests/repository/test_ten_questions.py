"""Ten questions of a new reader have an answer at most three links from the first page, and it fits the code."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.pages import FENCE, ROOT, anchors, read
from tests.support.swarm import SwarmRig

SOURCE = "src/fireswarm"
MAX_LINKS = 3


class Asked(NamedTuple):
    """A question, the pages from a first page to the answer, its heading, its words, and what the code has of it."""

    question: str
    path: tuple[str, ...]
    heading: str
    words: tuple[str, ...]
    code: tuple[tuple[str, str], ...]


EXPLANATION, HOW_TO = "docs/explanation/index.md", "docs/how-to/index.md"
ARCHITECTURE, CONTRIBUTING = "docs/explanation/architecture.md", "CONTRIBUTING.md"
QUESTIONS = (
    Asked(
        "Where is a lease renewed?",
        ("docs/index.md", EXPLANATION, ARCHITECTURE),
        "Leases",
        ("a third of its duration", "`swarm/worker/upkeep.py` calls `renew`", "`swarm/board/claim.py`"),
        (
            ("swarm/worker/upkeep.py", r"board\.renew\("),
            ("swarm/board/claim.py", r"async def renew\("),
            ("swarm/board/rules.py", r"return self\.lease_seconds / 3"),
        ),
    ),
    Asked(
        "Where is an approval stored?",
        ("README.md", "docs/explanation/security.md"),
        "Where an approval is stored",
        ("`answered` of the task", "`steps.jsonl`", "`lasting_approvals`", "`mind/approvals.py`"),
        (
            ("contracts/swarm/task.py", r"\n    answered: dict"),
            ("contracts/skills/permissions.py", r"def lasting_approvals\("),
            ("mind/approvals.py", r'recorder\.step\(f"\{APPROVE\}:'),
            ("runs/sinks/step_file.py", r'STEPS_FILE = "steps\.jsonl"'),
            ("swarm/records/policy.py", r"def check_answer\([\s\S]{0,300}sender_role != OPERATOR"),
        ),
    ),
    Asked(
        "Where is a call refused?",
        ("README.md", ARCHITECTURE),
        "The gate",
        ("`mind/gate.py` alone decides", "`decide(call, grant)`", "`contracts/grant.py`"),
        (("mind/gate.py", r"def decide\(call: Call, grant: Grant\)"), ("contracts/grant.py", r"class Grant\b")),
    ),
    Asked(
        "How do I add a provider?",
        ("docs/index.md", CONTRIBUTING),
        "A provider",
        (
            "`llm/providers/`",
            "`ChatModel`",
            "`settings/providers.py`",
            "`MODEL_LIMITS`",
        ),
        (
            ("contracts/ports.py", r"class ChatModel\("),
            ("settings/providers.py", r"adapter: ClassVar\[str\][\s\S]*class Providers\("),
            ("settings/model_limits.py", r"MODEL_LIMITS\b.*="),
        ),
    ),
    Asked(
        "How do I add a tool?",
        ("docs/index.md", HOW_TO, CONTRIBUTING),
        "A tool",
        ("`mind/calls/specs.py`", "`mind/handlers/`", "`_own_tools` in `mind/tools.py`", "`@tool`"),
        (
            ("mind/calls/specs.py", r"RUN_COMMAND_SPEC\b"),
            ("mind/handlers/run_command.py", r"async def run_command\("),
            ("mind/tools.py", r"def _own_tools\("),
        ),
    ),
    Asked(
        "How do I add a setting?",
        ("README.md", CONTRIBUTING),
        "A setting",
        ("`settings/agent.py`", "`ENVIRONMENT` of", "`make generate`", "`settings/untrusted.py`"),
        (("settings/swarm.py", r"ENVIRONMENT: dict"), ("settings/agent.py", r"class AgentSettings\(")),
    ),
    Asked(
        "What happens when a worker is killed?",
        ("docs/index.md", ARCHITECTURE),
        "When a worker is killed",
        ("`leases.lease_seconds`", "`swarm/board/sweep.py`", "`timeout`", "`dead_letter`", "can commit nothing"),
        (
            ("swarm/board/sweep.py", r"end_run_write\(task, task\.lease, RunStatus\.TIMEOUT"),
            ("swarm/board/sweep.py", r"attempt >= task\.max_attempts[\s\S]{0,200}DEAD_LETTER"),
            ("contracts/swarm/status.py", r"MISSED_BEATS = 2\.5"),
        ),
    ),
    Asked(
        "Where is money counted and limited?",
        ("docs/index.md", ARCHITECTURE),
        "Budgets and limits",
        ("`Meter.check` in `llm/budget.py`", "`llm/spend.py`", "`budget_exceeded`", "`type: spend`"),
        (("llm/budget.py", r"class Meter:[\s\S]*async def check\("), ("llm/spend.py", r"class StoreLedger:")),
    ),
    Asked(
        "What is in agent_tasks, and how do I write a task by hand in the Firebase console?",
        ("docs/index.md", HOW_TO, "docs/how-to/task-by-hand.md", "docs/reference/documents.md"),
        "agent_tasks",
        ("| `assigned_to` |", "| `status` |", "| `objective` |", "| `lease` |"),
        (
            ("swarm/board/by_hand/adopt.py", r"async def adopt\("),
            ("storage/documents/paths.py", r'TASKS = "agent_tasks"'),
        ),
    ),
    Asked(
        "How do I run roles on Cloud Run?",
        ("docs/index.md", HOW_TO, "docs/how-to/cloud-run.md"),
        "Run roles on Cloud Run",
        ("`swarm role scout", "`FIRESWARM_BLOBS`", "`GOOGLE_CLOUD_PROJECT`", "`roles/datastore.user`"),
        (("settings/swarm.py", r'"FIRESWARM_BLOBS"'), ("cli/swarm/main.py", r"\brole\b")),
    ),
)


def links(page: str) -> set[str]:
    """Return the pages that a page links to, as paths in the repository."""
    targets = re.findall(r"\]\(([^)#\s]+)[^)\s]*\)", FENCE.sub("", read(ROOT / page)))
    return {os.path.normpath(Path(page).parent / target) for target in targets if "://" not in target}


def section(page: str, heading: str) -> str:
    """Return the text below a heading, up to the next one of its level or above."""
    text = read(ROOT / page)
    found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,6}} |\Z)", text, re.M | re.S)
    assert found is not None, f"{page} has no heading {heading!r}"
    level = len(found[1])
    rest = text[found.start(2) :]
    end = re.search(rf"^#{{1,{level}}} ", rest, re.M)
    return " ".join(rest[: end.start() if end else None].split())


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked.question)
def test_answer_is_at_most_three_links_away(asked: Asked) -> None:
    assert asked.path[0] in ("docs/index.md", "README.md")
    assert len(asked.path) - 1 <= MAX_LINKS
    for page, following in zip(asked.path, asked.path[1:], strict=False):
        assert following in links(page), f"{page} has no link to {following}"


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked.question)
def test_answer_stands_below_its_heading_and_fits_the_code(asked: Asked) -> None:
    page = asked.path[-1]
    assert asked.heading.lower().replace(" ", "-") in anchors(ROOT / page)
    text = section(page, asked.heading)
    assert [words for words in asked.words if words not in text] == []
    missing = [(file, pattern) for file, pattern in asked.code if not re.search(pattern, read(ROOT / SOURCE / file))]
    assert missing == []


def test_files_that_an_answer_names_exist() -> None:
    for asked in QUESTIONS:
        named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*/[a-z_]+\.py)`", section(asked.path[-1], asked.heading)))
        absent = {file for file in named if not (ROOT / SOURCE / file).exists() and not (ROOT / file).exists()}
        assert absent == set(), asked.question


@pytest.mark.anyio
async def test_the_three_fields_of_the_page_are_enough_for_a_task(swarm: SwarmRig) -> None:
    page = "docs/how-to/task-by-hand.md"
    fields = {
        name: value
        for name, value in re.findall(r"\| `(\w+)` \| string \|[^|`]*`([^`]+)`", section(page, "Three fields"))
    }
    assert len(fields) == 3
    await swarm.connect().collection("agent_tasks").document("by-hand").create(fields)
    await swarm.board.admit_hand_written(fields["assigned_to"])
    held = await swarm.claim_one(role=fields["assigned_to"])
    assert held.task.objective == fields["objective"]
    assert f"session `{held.task.session_hash}`" in section(page, "Three fields")


def test_there_are_ten_questions() -> None:
    assert len({asked.question for asked in QUESTIONS}) == 10
