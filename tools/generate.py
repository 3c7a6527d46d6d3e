"""Generate indexes, schemas, tables and pictures of the documents. ``--check`` fails when a file differs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pictures
import reference
from pydantic import BaseModel

from fireswarm.contracts.llm.chat import LlmRequestMeta
from fireswarm.contracts.llm.decision import ModelDecision, StepExecutionResult, TokenBudget
from fireswarm.contracts.llm.response import AgentResponse
from fireswarm.contracts.skills.catalog import SkillCandidate, SkillMetadata
from fireswarm.contracts.skills.context import ConversationState
from fireswarm.contracts.skills.conversation import Terms
from fireswarm.contracts.skills.skill import Fact, SkillRequest, SkillResult
from fireswarm.contracts.swarm.agent import Agent
from fireswarm.contracts.swarm.envelope import Envelope, Message
from fireswarm.contracts.swarm.event import EventRecord
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.contracts.swarm.run import RunDocument
from fireswarm.contracts.swarm.status import AgentStatus
from fireswarm.contracts.swarm.task import Task, TaskSpec
from fireswarm.settings import AgentSettings, Settings
from fireswarm.skills.routing.related import STEMMED, stem_thesaurus
from fireswarm.storage.documents.indexes import COMPOSITES, TTL_FIELDS, UNINDEXED, VECTOR_DIMENSIONS, VECTOR_INDEXES
from fireswarm.swarm.records.policy import HandoffPolicy
from fireswarm.swarm.schedules.schedule import Schedule

ROOT = Path(__file__).resolve().parents[1]

SCHEMAS: dict[str, type[BaseModel]] = {
    "agent_tasks": Task,
    "agents": Agent,
    "agent_schedules": Schedule,
    "agent_runs": RunDocument,
    "agent_mailbox": Message,
    "mcp_memory.agent_status": AgentStatus,
    "mcp_memory.fact": Fact,
    "envelope": Envelope,
    "task_spec": TaskSpec,
    "skill_request": SkillRequest,
    "skill_result": SkillResult,
    "skill_terms": Terms,
    "agent_response": AgentResponse,
    "agent_contexts": ConversationState,
    "role_card": RoleCard,
    "handoff_policy": HandoffPolicy,
    "swarm_yaml": Settings,
    "agent_yaml": AgentSettings,
    "event_record": EventRecord,
    "skill_metadata": SkillMetadata,
    "skill_candidate": SkillCandidate,
    "token_budget": TokenBudget,
    "model_decision": ModelDecision,
    "step_execution_result": StepExecutionResult,
    "llm_request_meta": LlmRequestMeta,
}
ORDERS = {"asc": "ASCENDING", "desc": "DESCENDING"}


def generated() -> Iterator[tuple[Path, str]]:
    """Yield every generated file with its content."""
    yield ROOT / "firestore.indexes.json", json.dumps(indexes(), indent=2) + "\n"
    for name, model in SCHEMAS.items():
        schema = model.model_json_schema(mode="serialization")
        yield ROOT / "schemas" / f"{name}.json", json.dumps(schema, indent=2, sort_keys=True) + "\n"
    yield ROOT / "src" / "fireswarm" / "skills" / "routing" / STEMMED, stem_thesaurus()
    yield ROOT / "src" / "fireswarm" / "__init__.pyi", public_names()
    yield ROOT / "schemas" / "openapi.json", json.dumps(reference.openapi(), indent=2) + "\n"
    yield from reference.documents()
    yield from pictures.pictures()


def public_names() -> str:
    """Return the stub of the package: its public names, for type checkers."""
    package = import_module("fireswarm")  # its stub hides the table
    lines = ['"""Public names. Generated from ``__init__.py`` by ``make generate``."""', ""]
    lines += [f"from fireswarm import {name} as {name}" for name in package.MODULES]
    for module, names in sorted(package.NAMES.items()):
        lines += [f"from fireswarm.{module} import {name} as {name}" for name in names]
    return "\n".join([*lines, "", "__all__: list[str]", ""])


def indexes() -> dict[str, Any]:
    """Return the composite indexes and field overrides in the Firebase CLI's format."""
    composites = [
        {
            "collectionGroup": collection,
            "queryScope": "COLLECTION",
            "fields": [{"fieldPath": field, "order": ORDERS[direction]} for field, direction in fields],
        }
        for collection, shapes in COMPOSITES.items()
        for fields in shapes
    ]
    composites += [
        {
            "collectionGroup": collection,
            "queryScope": "COLLECTION",
            "fields": [
                *({"fieldPath": field, "order": ORDERS["asc"]} for field in filters),
                {"fieldPath": vector, "vectorConfig": {"dimension": VECTOR_DIMENSIONS, "flat": {}}},
            ],
        }
        for collection, shapes in VECTOR_INDEXES.items()
        for *filters, vector in shapes
    ]
    overrides: list[dict[str, Any]] = []
    for collection, fields in UNINDEXED.items():
        for field in fields:
            override: dict[str, Any] = {"collectionGroup": collection, "fieldPath": field, "indexes": []}
            if TTL_FIELDS.get(collection) == field:
                override["ttl"] = True
            overrides.append(override)
    for collection, field in TTL_FIELDS.items():
        if field not in UNINDEXED.get(collection, ()):  # queries use it: keep its index
            indexed = [{"order": "ASCENDING", "queryScope": "COLLECTION"}]
            overrides.append({"collectionGroup": collection, "fieldPath": field, "indexes": indexed, "ttl": True})
    return {"indexes": composites, "fieldOverrides": overrides}


def main() -> int:
    """Write or check the files, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a file is not what the code generates")
    check: bool = parser.parse_args().check
    stale: list[str] = []
    for path, content in generated():
        if path.exists() and path.read_text(encoding="utf-8") == content:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    if stale:
        print(("differ from the code, run `make generate`: " if check else "wrote ") + ", ".join(stale))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
