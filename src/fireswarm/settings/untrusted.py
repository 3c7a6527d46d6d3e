"""Guard of settings: what the file of a folder may set until its user trusts the content of the file.

A folder may come from a stranger. Each key of ``agent.yaml`` and ``swarm.yaml`` is in exactly one of four classes:
``FREE``, ``LOWERED``, ``INSIDE`` and ``GUARDED``. A key that is in none of them is guarded. A file that the user names,
the user's own file, and the environment are trusted.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from fireswarm.contracts.base import command_line
from fireswarm.settings.model_limits import USUAL_ANSWER_TOKENS
from fireswarm.settings.providers import TUNING, OpenAiSettings, is_paid_by_account
from fireswarm.settings.swarm import STORE_TOKEN, Settings
from fireswarm.settings.trust import TrustedFiles, digest_of, trusts_all


def _keys(section: str, names: str) -> tuple[str, ...]:
    return tuple(f"{section}.{name}" for name in names.split())


FREE = frozenset(
    (
        *("root", "session", "roles.*.effort"),
        *_keys(
            "model", "effort max_context_tokens response_headroom_tokens decision_mode structured_output_mode stream"
        ),
        *_keys("model.providers.*", "location region"),
        *_keys("runtime", "profile on_step_failure"),
        *_keys("permissions", "ask deny"),
        *_keys("skills", "builtin prefilter_top_k prefilter_min_score prefilter_zero_candidate_strategy reranker"),
        *_keys("skills", "disclosure_max_reference_bytes disclosure_max_reference_tokens"),
        *_keys("logging", "run_id_pattern debug_llm_bodies sanitize_control_chars redact_secrets"),
        *_keys("store", "history_seconds"),
        *_keys("leases", "lease_seconds backoff_base_seconds backoff_max_seconds"),
        *_keys("queue", "max_queued aging_seconds"),
        *_keys("worker", "concurrency drain_seconds sessions think heartbeat_working_seconds heartbeat_idle_seconds"),
        *_keys("state", "retention_days"),
        *_keys("backbone", "max_steps fix_loop_max max_changed_files"),
    )
)
"""Harmless keys. ``root`` is always the folder of the file; the limits of ``backbone`` can only be lowered."""

LOWERED = frozenset(
    (
        *_keys("model", "max_tokens request_timeout_seconds"),
        *_keys("model.providers.*", "requests_per_minute tokens_per_minute"),
        *_keys("runtime", "timeout_seconds max_turns max_llm_retries retry_base_delay_seconds retry_max_delay_seconds"),
        *_keys("runtime", "max_output_bytes max_memory_mb max_processes max_disk_mb signal_grace_seconds"),
        *_keys("skills", "max_depth max_folders"),
        *_keys("budget", "task_tokens task_usd session_tokens session_usd day_tokens day_usd"),
        *("store.history_disk_bytes", "worker.plan_rounds", "memory.prompt_tokens", "backbone.default_timeout_seconds"),
    )
)
"""Numbers that an untrusted file may only lower: ``swarm.yaml`` below the default, ``agent.yaml`` also below the number
of the user's own file."""

LARGEST = {"model.max_tokens": USUAL_ANSWER_TOKENS}
"""Limits of numbers without a default; the others of these have none."""

INSIDE = frozenset(("skills.dir", "logging.jsonl_dir", "store.data", "store.blobs"))
"""Places that an untrusted file may choose inside of its folder only, also where links lead."""


def _among(*values: object) -> Callable[[Any], bool]:
    return lambda value: value in values


_never = _among()


def _is_unpaid(value: Any) -> bool:
    """Return True unless the value names a provider that is paid by the account of the machine."""
    return isinstance(value, str) and not is_paid_by_account(value)


_MODEL = re.compile(r"(?!.*\b(arn:|projects/|tunedModels/))\w[\w.@:-]*(/\w[\w.@:-]*)?", re.ASCII)
"""Name of a model of the provider, such as ``qwen3:32b`` or ``anthropic/claude-opus-5``. Longer paths and ARNs name
models of a project or an account, whose owner receives the prompts, or has trained the model."""


def _are_plain_models(value: Any) -> bool:
    """Return True for names of models that neither choose an account, nor are in one."""
    names = cast("list[object]", value) if isinstance(value, list) else [value]
    return all(name is None or (_is_unpaid(name) and _MODEL.fullmatch(cast("str", name))) for name in names)


_LOCAL_STORE = re.compile(
    r"embedded|memory|firelite://(unix:/.+|(localhost|127(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}|\[::1\]):\d+)", re.ASCII
)


def _is_local_store(value: Any) -> bool:
    """Return True for a store of this machine. One that is served must not get a token that is for another one."""
    is_local = isinstance(value, str) and _LOCAL_STORE.fullmatch(value) is not None
    return is_local and not (str(value).startswith("firelite:") and os.environ.get(STORE_TOKEN))


_CAPABILITIES = (
    *("workspace", "session_file_system", "web_fetch", "research"),
    *("noop", "current_time", "test_math", "test_weather"),
)
"""Packaged capabilities that start no program."""


def _start_nothing(value: Any) -> bool:
    """Return True for packaged capabilities, at most with numbers: their texts and lists name hosts and programs."""
    return isinstance(value, list) and all(map(_starts_nothing, cast("list[Any]", value)))


def _starts_nothing(use: Any) -> bool:
    given = cast("Mapping[Any, Any]", use) if isinstance(use, Mapping) else {"id": use}
    config: Any = given.get("config", {})
    has_numbers = isinstance(config, Mapping) and all(
        isinstance(value, (int, float)) for value in cast("Mapping[Any, Any]", config).values()
    )
    return given.keys() <= {"id", "config"} and given.get("id") in _CAPABILITIES and has_numbers


_SCALAR = (str, int, float, type(None))


def _only_tune(value: Any) -> bool:
    """Return True for options of a provider that are single values, or maps of them for thinking, and only tune."""
    given = cast("Mapping[Any, Any]", value) if isinstance(value, Mapping) else {"": value}
    return all(_tunes(name, chosen) for name, chosen in given.items())


def _tunes(name: Any, value: Any) -> bool:
    inner = TUNING.get(name)
    if inner and isinstance(value, Mapping):
        parts = cast("Mapping[Any, Any]", value)
        return parts.keys() <= inner and all(isinstance(part, _SCALAR) for part in parts.values())
    return inner is not None and isinstance(value, _SCALAR)


GUARDED: Mapping[str, Callable[[Any], bool]] = {
    "capabilities": _start_nothing,
    "model.provider": _is_unpaid,
    "model.name": _are_plain_models,
    "model.fallback": _are_plain_models,
    "roles.*.model": _are_plain_models,
    "roles.*.fallback": _are_plain_models,
    "model.script": _never,
    "model.providers.*.base_url": _never,
    "model.providers.*.project": _never,
    "model.providers.*.options": _only_tune,
    "model.providers.*.api_key_env": _never,
    "model.providers.openai.api_key_env": _among(OpenAiSettings.usual_key),
    "runtime.confinement": _among("bubblewrap"),
    "runtime.network": _never,
    "runtime.readable": _never,
    "runtime.pass_environment": _never,
    "runtime.shell_linux": _never,
    "runtime.shell_windows": _never,
    "permissions.default": _among("ask", "deny"),
    "permissions.allow": _never,
    "skills.outside_scripts": _never,
    "skills.reranker_model": _are_plain_models,
    "budget.prices": _never,  # a price of nothing would lift each budget
    "logging.level": _among("debug"),  # a higher one hides what runs
    "store.uri": _is_local_store,
    "store.project": _never,
    "store.database": _never,
    "state.backend": _never,
    "state.database_url": _never,
    "memory.share": _never,  # facts of another project, in a store that the user names
    "memory.project": _never,
    "memory.embeddings": _is_unpaid,
    "memory.embedding_model": _are_plain_models,
    "backbone.confinement": _among("bubblewrap"),
    "backbone.auto_merge_enabled": _never,
    "backbone.require_human_review": _never,
    **dict.fromkeys(_keys("console", "operators viewers iap_audience"), _never),
    **dict.fromkeys(_keys("notify.*", "url url_env secret_env command on format console timeout_seconds"), _never),
}
"""Keys that start programs, choose who receives prompts, files, keys or money, speak for the user, or loosen limits.

An untrusted file may give them their default, and values for which the function returns True."""


ANY, LOWER, INNER, TRUST = "any value", "a lower number", "a place in the folder", "harmless values"
"""The classes in words: what an untrusted file may set."""

_HINTS = {LOWER: "; a lower number needs no trust", INNER: "; a place inside of the folder needs no trust"}


class Given(NamedTuple):
    """A value of a file: its key as written there, its key in the classes, and the field for it."""

    written: str
    key: str
    field: FieldInfo
    value: Any


def guarded_values(values: Mapping[str, Any], folder: Path = Path()) -> dict[str, Any]:
    """Return what only a trusted file of *folder* may set, by dotted keys as they are written in *values*.

    What the schema does not have is left out, since no value of it passes the validation.
    """
    return {given.written: given.value for given in _walk(values, Settings) if not _is_allowed(given, folder)}


def guarded_keys(values: Mapping[str, Any], folder: Path = Path()) -> list[str]:
    """Return the keys of `guarded_values`."""
    return list(guarded_values(values, folder))


def _walk(values: Mapping[Any, Any], kind: type[BaseModel], written: str = "", above: str = "") -> Iterator[Given]:
    """Yield the values of a section of a file, in the order of the schema."""
    for name, field in kind.model_fields.items():
        key = f"{above}{field.alias or name}"
        section, is_map = sections_of(field)
        for spelling in dict.fromkeys((field.alias or name, name)):
            value, place = values.get(spelling), f"{written}{spelling}"
            if section is None and spelling in values:
                yield Given(place, key, field, value)
            elif section is not None and isinstance(value, Mapping):
                inner = cast("Mapping[Any, Any]", value)
                for part, content in inner.items() if is_map else (("", inner),):
                    shown = str(part).replace("\n", "\\n")  # a name is part of a line of an error
                    if isinstance(content, Mapping):
                        here, there = (f"{place}.{shown}.", f"{key}.*.") if is_map else (f"{place}.", f"{key}.")
                        yield from _walk(cast("Mapping[Any, Any]", content), section, here, there)


def sections_of(field: FieldInfo) -> tuple[type[BaseModel] | None, bool]:
    """Return the class of a field that is a section, or a map of sections, and True for a map; else None."""
    is_map = get_origin(field.annotation) is dict
    kind: object = get_args(field.annotation)[1] if is_map else field.annotation
    return (kind, is_map) if isinstance(kind, type) and issubclass(kind, BaseModel) else (None, False)


def find_class(key: str) -> tuple[str, str]:
    """Return the class of a dotted key, in words, and the key under which it stands there."""
    general = re.sub(r"^(model\.providers|roles|notify)\.[^.]+\.", r"\1.*.", key)
    for keys, words in ((FREE, ANY), (LOWERED, LOWER), (INSIDE, INNER)):
        if general in keys:
            return words, general
    return TRUST, key if key in GUARDED else general


def _is_allowed(given: Given, folder: Path) -> bool:
    """Return True if a file that is not trusted may give this value."""
    _, key = find_class(given.key)
    if key in FREE:
        return True
    if key in LOWERED:
        return _is_lower(given, key)
    if key in INSIDE:
        places = cast("list[Any]", given.value) if isinstance(given.value, list) else [given.value]
        return all(_is_inside(place, folder) for place in places)
    try:
        is_default = _convert(given) == given.field.get_default(call_default_factory=True)
    except ValidationError:
        is_default = False
    return is_default or GUARDED.get(key, _never)(given.value)


def _convert(given: Given) -> Any:
    kind = Annotated.__class_getitem__((given.field.annotation, *given.field.metadata, None))  # pyright: ignore
    return TypeAdapter[Any](kind).validate_python(given.value)


def _is_lower(given: Given, key: str) -> bool:
    limit = LARGEST.get(key, given.field.get_default(call_default_factory=True))
    try:
        value = _convert(given)
    except ValidationError:  # no value of the setting
        return True
    return limit is None or value is None or value <= limit


def _is_inside(place: Any, folder: Path) -> bool:
    """Return True for a path inside of *folder*, without ``~``, ``..`` and URLs."""
    if not isinstance(place, str) or place.startswith("~") or ":" in place.removeprefix(Path(place).drive):
        return False
    try:
        return ".." not in Path(place).parts and (folder / place).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a loop of links
        return False


def untrusted_keys(
    file: Path, digest: str, values: Mapping[str, Any], home: Path, *, lowers: bool = False
) -> list[str]:
    """Return the guarded keys of a folder's own *file*, or [] if the user trusts its content.

    With *lowers*, the caller lowers the numbers in ``LOWERED``, and they need no trust.
    """
    keys = [key for key in guarded_keys(values, file.parent) if not (lowers and find_class(key)[1] in LOWERED)]
    return [] if not keys or trusts_all() or TrustedFiles(home).has(file, digest) else keys


def script_file(values: Mapping[str, Any], folder: Path) -> Path | None:
    """Return the file that ``model.script`` of a settings file in *folder* names; None if it is not in that folder."""
    model = values.get("model")
    script = cast("Mapping[str, Any]", model).get("script") if isinstance(model, Mapping) else None
    if not isinstance(script, str):
        return None
    place = folder / named_file(script)
    return place if place.is_file() and place.resolve().is_relative_to(folder.resolve()) else None


def named_file(script: str) -> str:
    """Return the path in a ``model.script``, without the function of a Python file."""
    path, mark, _ = script.partition(".py:")
    return f"{path}.py" if mark else path


def untrusted_script(file: Path, values: Mapping[str, Any], home: Path) -> Path | None:
    """Return the script that a folder's own *file* names, unless the user trusts its content.

    A script may be Python, which runs in the process of the agent.
    """
    script = script_file(values, file.parent)
    with contextlib.suppress(OSError):
        if script is None or trusts_all() or TrustedFiles(home).has(script, digest_of(script.read_bytes())):
            return None
    return script


WHY = "can start programs, send your API key or files elsewhere, use your account, speak for you or loosen limits"


def describe_refusal(keys: Iterable[str], file: Path, lines: Mapping[tuple[str, ...], int]) -> str:
    """Return why *file* needs trust, a line for each of its guarded keys, and how to give it."""
    told = [f"{file}:{_line(key, lines)}: {key} {WHY}{_HINTS.get(find_class(key)[0], '')}" for key in keys]
    return "\n".join([*told, f"read the file, then trust its content: {command_line('agent', 'trust', file)}"])


def _line(key: str, lines: Mapping[tuple[str, ...], int]) -> int:
    keys = tuple(key.split("."))
    while keys and keys not in lines:
        keys = keys[:-1]
    return lines.get(keys, 1)
