"""fireswarm: a durable, multi-role agent swarm on Firestore.

The public names. Each is imported from its module on first use, so that ``import fireswarm`` is fast. ``__init__.pyi``
is generated from the table below; type checkers read it.
"""

MODULES = ("errors", "pipelines")
"""Public modules."""

NAMES = {
    "agent.embedded": ("run_agent",),
    "capabilities.capability": ("Capability", "CapabilityContext", "NoConfig", "tool"),
    "client": ("Swarm",),
    "clocks": ("VirtualClock",),
    "contracts.base": ("command_line", "count_noun"),
    "contracts.limits": ("MAX_DETAIL_CHARS", "truncate"),
    "contracts.llm.response": ("AgentResponse",),
    "contracts.regular_file": ("read_regular_file", "read_without_links"),
    "contracts.skills.advice": (
        "MAX_MATERIAL_CHARS",
        "AdviceKind",
        "AdviceRequest",
        "CodeAdvice",
        "Evidence",
        "Material",
        "PatchAdvice",
        "TraceEntry",
        "TraceMap",
    ),
    "contracts.skills.artifact": ("Artifact", "Attachment", "Signal"),
    "contracts.skills.capability": ("CapabilityUse",),
    "contracts.skills.conversation": (
        "ConversationEvent",
        "ConversationView",
        "InputField",
        "InputRequest",
        "PocketFact",
        "TaskState",
    ),
    "contracts.skills.skill": (
        "ChildResult",
        "Fact",
        "PlannedTask",
        "Question",
        "SkillRequest",
        "SkillResult",
        "SkillState",
    ),
    "contracts.swarm.envelope": ("Envelope",),
    "contracts.swarm.event": ("EventRecord", "EventType", "TaskEvent"),
    "contracts.swarm.role": ("RoleCard",),
    "contracts.swarm.task": ("StatusReason", "Submitted", "Task", "TaskResult", "TaskSpec", "TaskStatus"),
    "llm.providers.scripted": ("ScriptedModel",),
    "processes.git": ("ask_git", "read_branch", "run_git"),
    "settings.extras": ("install_command",),
    "settings.packaged": ("__version__",),
    "settings": ("AgentSettings", "Settings", "load_agent_settings", "load_settings"),
    "skills.figures": (
        "format_change",
        "format_counts",
        "format_extent",
        "format_measured_share",
        "format_number",
        "format_percent",
        "format_range",
        "format_rank",
        "format_score",
        "format_share",
        "format_size",
    ),
    "skills.file_kinds": ("binary_kind",),
    "skills.functions": ("FunctionSkill", "skill"),
    "skills.routing.fit": ("Fit", "measure_fit"),
    "skills.running.in_child": ("load_entry",),
    "skills.text_files": (
        "LeftOut",
        "is_secret_file",
        "read_artifact_object",
        "read_text",
        "walk_files",
        "without_secrets",
    ),
    "storage.search.bm25": ("rank_texts",),
    "swarm.opening.stand_alone": ("create_agent_adapter",),
    "swarm.worker.loop": ("Worker",),
    "swarm.worker.role": ("RoleConfig",),
}
"""Public names by the module that defines them."""

_HOMES = {name: module for module, names in NAMES.items() for name in names}

__all__ = sorted((*MODULES, *_HOMES))  # pyright: ignore[reportUnsupportedDunderAll] - the stub has the list


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in MODULES:
        return import_module(f"fireswarm.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'fireswarm' has no attribute {name!r}")
    value: object = getattr(import_module(f"fireswarm.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
