"""fireswarm: a durable, multi-role agent swarm on Firestore.

The public names. Each is imported from its module when it is first used, so ``import fireswarm`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fireswarm import errors as errors
    from fireswarm import pipelines as pipelines
    from fireswarm.agent.embedded import run_agent as run_agent
    from fireswarm.capabilities.capability import Capability as Capability
    from fireswarm.capabilities.capability import CapabilityContext as CapabilityContext
    from fireswarm.capabilities.capability import NoConfig as NoConfig
    from fireswarm.capabilities.capability import tool as tool
    from fireswarm.clocks import VirtualClock as VirtualClock
    from fireswarm.contracts.base import count_noun as count_noun
    from fireswarm.contracts.limits import MAX_DETAIL_CHARS as MAX_DETAIL_CHARS
    from fireswarm.contracts.limits import truncate as truncate
    from fireswarm.contracts.llm.response import AgentResponse as AgentResponse
    from fireswarm.contracts.regular_file import read_regular_file as read_regular_file
    from fireswarm.contracts.skills.advice import MAX_MATERIAL_CHARS as MAX_MATERIAL_CHARS
    from fireswarm.contracts.skills.advice import AdviceKind as AdviceKind
    from fireswarm.contracts.skills.advice import AdviceRequest as AdviceRequest
    from fireswarm.contracts.skills.advice import CodeAdvice as CodeAdvice
    from fireswarm.contracts.skills.advice import Evidence as Evidence
    from fireswarm.contracts.skills.advice import Material as Material
    from fireswarm.contracts.skills.advice import PatchAdvice as PatchAdvice
    from fireswarm.contracts.skills.advice import TraceEntry as TraceEntry
    from fireswarm.contracts.skills.advice import TraceMap as TraceMap
    from fireswarm.contracts.skills.artifact import Artifact as Artifact
    from fireswarm.contracts.skills.artifact import Attachment as Attachment
    from fireswarm.contracts.skills.artifact import Signal as Signal
    from fireswarm.contracts.skills.capability import CapabilityUse as CapabilityUse
    from fireswarm.contracts.skills.conversation import ConversationView as ConversationView
    from fireswarm.contracts.skills.conversation import InputField as InputField
    from fireswarm.contracts.skills.conversation import InputRequest as InputRequest
    from fireswarm.contracts.skills.conversation import PocketFact as PocketFact
    from fireswarm.contracts.skills.conversation import TaskState as TaskState
    from fireswarm.contracts.skills.skill import ChildResult as ChildResult
    from fireswarm.contracts.skills.skill import Fact as Fact
    from fireswarm.contracts.skills.skill import PlannedTask as PlannedTask
    from fireswarm.contracts.skills.skill import Question as Question
    from fireswarm.contracts.skills.skill import SkillRequest as SkillRequest
    from fireswarm.contracts.skills.skill import SkillResult as SkillResult
    from fireswarm.contracts.skills.skill import SkillState as SkillState
    from fireswarm.contracts.swarm.envelope import Envelope as Envelope
    from fireswarm.contracts.swarm.event import EventRecord as EventRecord
    from fireswarm.contracts.swarm.event import EventType as EventType
    from fireswarm.contracts.swarm.role import RoleCard as RoleCard
    from fireswarm.contracts.swarm.task import StatusReason as StatusReason
    from fireswarm.contracts.swarm.task import Task as Task
    from fireswarm.contracts.swarm.task import TaskResult as TaskResult
    from fireswarm.contracts.swarm.task import TaskSpec as TaskSpec
    from fireswarm.contracts.swarm.task import TaskStatus as TaskStatus
    from fireswarm.llm.providers.scripted import ScriptedModel as ScriptedModel
    from fireswarm.processes.git import run_git as run_git
    from fireswarm.settings import AgentSettings as AgentSettings
    from fireswarm.settings import Settings as Settings
    from fireswarm.settings import load_agent_settings as load_agent_settings
    from fireswarm.settings import load_settings as load_settings
    from fireswarm.skills.functions import FunctionSkill as FunctionSkill
    from fireswarm.skills.functions import skill as skill
    from fireswarm.skills.routing.fit import Fit as Fit
    from fireswarm.skills.routing.fit import measure_fit as measure_fit
    from fireswarm.skills.running.in_child import load_entry as load_entry
    from fireswarm.swarm.swarm import Swarm as Swarm
    from fireswarm.swarm.swarm import TaskEvent as TaskEvent
    from fireswarm.swarm.worker.loop import Worker as Worker
    from fireswarm.swarm.worker.role import RoleConfig as RoleConfig
    from fireswarm.wiring.conversations import create_agent_adapter as create_agent_adapter

__version__ = "0.1.0"

_MODULES = ("errors", "pipelines")
_HOMES = {
    "AdviceKind": "contracts.skills.advice",
    "AdviceRequest": "contracts.skills.advice",
    "AgentResponse": "contracts.llm.response",
    "AgentSettings": "settings",
    "Artifact": "contracts.skills.artifact",
    "Attachment": "contracts.skills.artifact",
    "Capability": "capabilities.capability",
    "CapabilityContext": "capabilities.capability",
    "CapabilityUse": "contracts.skills.capability",
    "ChildResult": "contracts.skills.skill",
    "CodeAdvice": "contracts.skills.advice",
    "ConversationView": "contracts.skills.conversation",
    "count_noun": "contracts.base",
    "create_agent_adapter": "wiring.conversations",
    "Envelope": "contracts.swarm.envelope",
    "EventRecord": "contracts.swarm.event",
    "EventType": "contracts.swarm.event",
    "Evidence": "contracts.skills.advice",
    "Fact": "contracts.skills.skill",
    "Fit": "skills.routing.fit",
    "FunctionSkill": "skills.functions",
    "InputField": "contracts.skills.conversation",
    "InputRequest": "contracts.skills.conversation",
    "load_agent_settings": "settings",
    "load_entry": "skills.running.in_child",
    "load_settings": "settings",
    "Material": "contracts.skills.advice",
    "MAX_DETAIL_CHARS": "contracts.limits",
    "MAX_MATERIAL_CHARS": "contracts.skills.advice",
    "measure_fit": "skills.routing.fit",
    "NoConfig": "capabilities.capability",
    "PatchAdvice": "contracts.skills.advice",
    "PlannedTask": "contracts.skills.skill",
    "PocketFact": "contracts.skills.conversation",
    "Question": "contracts.skills.skill",
    "read_regular_file": "contracts.regular_file",
    "RoleCard": "contracts.swarm.role",
    "RoleConfig": "swarm.worker.role",
    "run_agent": "agent.embedded",
    "run_git": "processes.git",
    "TaskEvent": "swarm.swarm",
    "truncate": "contracts.limits",
    "ScriptedModel": "llm.providers.scripted",
    "Settings": "settings",
    "Signal": "contracts.skills.artifact",
    "skill": "skills.functions",
    "SkillRequest": "contracts.skills.skill",
    "SkillResult": "contracts.skills.skill",
    "SkillState": "contracts.skills.skill",
    "StatusReason": "contracts.swarm.task",
    "Swarm": "swarm.swarm",
    "Task": "contracts.swarm.task",
    "TaskResult": "contracts.swarm.task",
    "TaskSpec": "contracts.swarm.task",
    "TaskState": "contracts.skills.conversation",
    "TaskStatus": "contracts.swarm.task",
    "tool": "capabilities.capability",
    "TraceEntry": "contracts.skills.advice",
    "TraceMap": "contracts.skills.advice",
    "VirtualClock": "clocks",
    "Worker": "swarm.worker.loop",
}
"""Public names and the modules that define them."""

__all__ = [
    "__version__",
    "AdviceKind",
    "AdviceRequest",
    "AgentResponse",
    "AgentSettings",
    "Artifact",
    "Attachment",
    "Capability",
    "CapabilityContext",
    "CapabilityUse",
    "ChildResult",
    "CodeAdvice",
    "ConversationView",
    "count_noun",
    "create_agent_adapter",
    "Envelope",
    "errors",
    "EventRecord",
    "EventType",
    "Evidence",
    "Fact",
    "Fit",
    "FunctionSkill",
    "InputField",
    "InputRequest",
    "load_agent_settings",
    "load_entry",
    "load_settings",
    "Material",
    "MAX_DETAIL_CHARS",
    "MAX_MATERIAL_CHARS",
    "measure_fit",
    "NoConfig",
    "PatchAdvice",
    "pipelines",
    "PlannedTask",
    "PocketFact",
    "Question",
    "read_regular_file",
    "RoleCard",
    "RoleConfig",
    "run_agent",
    "run_git",
    "TaskEvent",
    "ScriptedModel",
    "Settings",
    "Signal",
    "skill",
    "SkillRequest",
    "SkillResult",
    "SkillState",
    "StatusReason",
    "Swarm",
    "Task",
    "TaskResult",
    "TaskSpec",
    "TaskState",
    "TaskStatus",
    "tool",
    "TraceEntry",
    "TraceMap",
    "truncate",
    "VirtualClock",
    "Worker",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"fireswarm.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'fireswarm' has no attribute {name!r}")
    value: object = getattr(import_module(f"fireswarm.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
