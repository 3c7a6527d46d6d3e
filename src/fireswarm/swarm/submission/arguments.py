"""Check the arguments of the public client: a wrong type or value is one InvalidInput, which says what to give.

The annotation of a parameter chooses its check, as it is written. An annotation without a check is an error when the
class is defined, so no method can be added without one.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from numbers import Integral, Real
from pathlib import Path
from typing import Any, cast

from fireswarm.contracts.base import PATTERN_WORDS, check_json, is_document_id, show_value
from fireswarm.contracts.skills.conversation import MAX_FACT_BYTES
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.task import StatusReason, Submitted, Task, TaskSpec, TaskStatus, canonical_json
from fireswarm.errors import InvalidInput

MAX_WHOLE = 2**53
"""Largest whole number that JSON readers do not round; larger ones do not fit into the store."""

Whole = int
"""A whole number of at least 0."""

Natural = int
"""A whole number of at least 1."""

Seconds = float
"""A number of at least 0."""

Amount = float
"""A finite number greater than 0."""

TaskId = str
"""A task id, or the beginning of one."""

FactId = str
"""The id of a fact, or the beginning of one."""

JsonValue = Any
"""A JSON value other than null, of at most 16,384 bytes as JSON."""

ScheduleName = str
"""The name of a schedule."""


SCHEDULE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}$"
_SCHEDULE_NAME = re.compile(SCHEDULE_NAME)


class _Wrong(Exception):
    """The value does not fit. The text says what to give, after the word `give`."""


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The checks of a function's parameters. ``names`` are those that may be given by position."""

    function: str
    names: tuple[str, ...]
    checks: Mapping[str, Callable[[Any], Any]]

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments in the types of their parameters. Raises InvalidInput."""
        checked = [self._check(name, value) for name, value in zip(self.names, args, strict=False)]
        return [*checked, *args[len(checked) :]], {name: self._check(name, value) for name, value in kwargs.items()}

    def _check(self, name: str, value: Any) -> Any:
        check = self.checks.get(name)
        if check is None:
            return value
        try:
            return check(value)
        except _Wrong as wrong:
            raise InvalidInput(f"{self.function}: {name} is {show_value(value)}: give {wrong}") from None


def check_arguments[C: type](cls: C) -> C:
    """Decorate a class: each public method checks its arguments before it does anything else."""
    for name, value in list(vars(cls).items()):
        static = isinstance(value, staticmethod)
        function: Any = cast("Any", value).__func__ if static else value
        if not name.startswith("_") and inspect.isfunction(function):
            checked = check_call(function, f"{cls.__name__}.{name}")
            setattr(cls, name, staticmethod(checked) if static else checked)
    return cls


def check_call[F: Callable[..., Any]](function: F, name: str = "") -> F:
    """Return *function* with a check of its arguments; *name* is its name in errors."""
    arguments = _arguments_of(function, name or getattr(function, "__name__", "call"))

    @functools.wraps(function)
    async def wait_for(*args: Any, **kwargs: Any) -> Any:
        given, named = arguments.check(args, kwargs)
        return await function(*given, **named)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given, named = arguments.check(args, kwargs)
        return function(*given, **named)

    return cast("F", wait_for if inspect.iscoroutinefunction(function) else call)


def _arguments_of(function: Callable[..., Any], name: str) -> _Arguments:
    names: list[str] = []
    checks: dict[str, Callable[[Any], Any]] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        if parameter.name != "self" and parameter.kind is not parameter.VAR_KEYWORD:  # make_spec checks further fields
            checks[parameter.name] = _check_of(parameter, name)
    return _Arguments(name, tuple(names), checks)


def _check_of(parameter: inspect.Parameter, function: str) -> Callable[[Any], Any]:
    written = str(parameter.annotation)
    kind = written.removesuffix(" | None")
    check = CHECKS.get(kind)
    if check is None:
        raise TypeError(f"{function}: no check for {parameter.name}: {written}; add one to {__name__}.CHECKS")
    if kind == "str" and parameter.default is parameter.empty:
        check = _words
    return check if kind == written else functools.partial(_or_none, check)


def _or_none(check: Callable[[Any], Any], value: Any) -> Any:
    try:
        return None if value is None else check(value)
    except _Wrong as wrong:
        raise _Wrong(f"{wrong}, or None") from None


# ── one check for each annotation ─────────────────────────────────────────────────────────────────────────


def _task(value: Any) -> Any:
    if isinstance(value, (Task, Submitted)) or (is_document_id(value) and _is_unicode(value)):
        return value
    raise _Wrong("the id of a task, or the task as `submit` or `get` returns it")


def _id_of(text: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if is_document_id(value) and _is_unicode(value):
            return value
        raise _Wrong(text)

    return check


def _schedule_name(value: Any) -> Any:
    if isinstance(value, str) and _SCHEDULE_NAME.fullmatch(value):
        return value
    raise _Wrong(f"a name of {PATTERN_WORDS[SCHEDULE_NAME]}, such as morning-report")


def _text(value: Any) -> Any:
    if isinstance(value, str) and _is_unicode(value):
        return value
    raise _Wrong("a text")


def _words(value: Any) -> Any:
    if isinstance(value, str) and _is_unicode(value) and value.strip():
        return value
    raise _Wrong("a text that is not empty")


def _is_unicode(text: str) -> bool:
    return text.isascii() or text.encode(errors="replace").decode() == text


def _objective(value: Any) -> Any:
    if isinstance(value, (str, TaskSpec)):
        return value  # TaskSpec has checked, or will check, the text
    raise _Wrong("the objective as a text, or a TaskSpec")


def _path(value: Any) -> Any:
    if isinstance(value, (str, os.PathLike)) and "\0" not in str(cast("object", value)):
        return value
    raise _Wrong("a path")


def _yes_or_no(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _Wrong("True or False")


def _whole_from(least: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= MAX_WHOLE:
            return int(value)
        raise _Wrong(f"a whole number from {least} to {MAX_WHOLE:,}")

    return check


def _number(value: Any, text: str, least: Callable[[float], bool]) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.nan
        if least(number):  # not NaN, which fits no comparison
            return number
    raise _Wrong(text)


def _seconds(value: Any) -> float:
    return _number(value, "a number of at least 0", lambda number: number >= 0)


def _amount(value: Any) -> float:
    return _number(value, "a number greater than 0", lambda number: 0 < number < math.inf)


def _json_map(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise _Wrong("a dict with texts as keys")
    given = cast("Mapping[Any, Any]", value)
    try:
        return check_json(given)
    except (ValueError, RecursionError) as error:
        raise _Wrong(f"JSON values: {error}") from error


def _json_value(value: Any) -> Any:
    try:
        size = len(canonical_json(check_json(value)).encode())
    except (ValueError, RecursionError) as error:
        raise _Wrong(f"a JSON value: {error}") from error
    if value is None or size > MAX_FACT_BYTES:
        raise _Wrong(f"a JSON value other than null, of at most {MAX_FACT_BYTES:,} bytes")
    return value


def _map_of(text: str, fits: Callable[[Any], bool]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        pairs = cast("Mapping[Any, Any]", value).items() if isinstance(value, Mapping) else [(None, None)]
        if all(isinstance(name, str) and fits(item) for name, item in pairs):
            return value
        raise _Wrong(text)

    return check


def _list_of(text: str, fits: Callable[[Any], bool]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if _is_list(value) and all(map(fits, value)):
            return value
        raise _Wrong(f"a list of {text}")

    return check


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _word_of(words: type[StrEnum]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if isinstance(value, str) and value in _values(words):
            return words(value)
        raise _Wrong(f"one of {', '.join(_values(words))}")

    return check


def _values(words: Iterable[StrEnum]) -> list[str]:
    return [word.value for word in words]


def _settings(value: Any) -> Any:
    from fireswarm.settings import Settings

    if isinstance(value, Settings):
        return value
    raise _Wrong("Settings, such as load_settings returns")


def _agent_settings(value: Any) -> Any:
    from fireswarm.settings import AgentSettings

    if isinstance(value, AgentSettings):
        return value
    raise _Wrong("AgentSettings, such as load_agent_settings returns")


def _with_methods(text: str, *methods: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, type) and all(callable(getattr(value, method, None)) for method in methods):
            return value
        raise _Wrong(text)

    return check


def _function(value: Any) -> Any:
    if callable(value):
        return value
    raise _Wrong("a function")


CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "AnyTask": _task,
    "TaskId": _id_of("a task id, or the beginning of one: `swarm tasks` lists them"),
    "FactId": _id_of("the id of a fact, or the beginning of one: `swarm memory` lists them"),
    "ScheduleName": _schedule_name,
    "str": _text,
    "str | TaskSpec": _objective,
    "Path | str": _path,
    "bool": _yes_or_no,
    "Whole": _whole_from(0),
    "Natural": _whole_from(1),
    "Seconds": _seconds,
    "Amount": _amount,
    "TaskStatus | str": _word_of(TaskStatus),
    "StatusReason | str": _word_of(StatusReason),
    "JsonValue": _json_value,
    "Mapping[str, Any]": _json_map,
    "Mapping[str, Task]": _map_of("tasks by their ids", lambda item: isinstance(item, Task)),
    "Mapping[str, Sequence[FunctionSkill | str]]": _map_of("a list of skills for each role", _is_list),
    "Sequence[str]": _list_of("texts", lambda item: isinstance(item, str) and _is_unicode(item)),
    "Sequence[Path]": _list_of("Path", lambda item: isinstance(item, Path)),
    "Sequence[PlannedTask]": _list_of("PlannedTask", lambda item: isinstance(item, PlannedTask)),
    "Settings": _settings,
    "AgentSettings": _agent_settings,
    "Clock": _with_methods("a clock, such as VirtualClock()", "now", "observe", "sleep", "wait"),
    "ChatModel": _with_methods("a model, such as ScriptedModel", "complete", "count_tokens", "preview"),
    "Callable[[EventRecord], None]": _function,
}
"""The check of each annotation, without ``| None``. It returns the value, and raises _Wrong."""
