"""Skills that are functions: `@skill` turns a function into a skill that runs in the worker's process."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.lowlevel
import anyio.to_thread

from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.errors import ConfigError, SkillFailed
from fireswarm.settings.run_folders import make_state_folder
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.packs.field_values import is_name

Function = Callable[[SkillRequest], SkillResult] | Callable[[SkillRequest], Awaitable[SkillResult]]


@dataclass(eq=False)
class FunctionSkill:
    """A function with a name and a description for routing. Calling it calls the function."""

    name: str
    description: str
    function: Function
    writes: bool = True
    idempotent: bool = False

    def __call__(self, request: SkillRequest) -> SkillResult | Awaitable[SkillResult]:
        """Call the decorated function directly."""
        return self.function(request)

    async def run(self, request: SkillRequest) -> SkillResult:
        """Run the function: an async one on the event loop, any other in a thread.

        Cancelling the call ends an async function; a thread continues until its function returns.
        """
        make_state_folder(request.workdir)
        if inspect.iscoroutinefunction(self.function):
            result = await self._await(request)
        else:
            result = await anyio.to_thread.run_sync(self._call, request, abandon_on_cancel=True)
        if not isinstance(result, SkillResult):
            raise TypeError(f"skill {self.name!r} returned {type(result).__name__} instead of SkillResult")
        return result

    async def _await(self, request: SkillRequest) -> object:
        """Await the function. A CancelledError of its own raises SkillFailed: it would end the worker."""
        called: Any = self.function(request)
        try:
            return await called
        except SystemExit as error:
            raise SkillFailed(f"skill {self.name!r} called sys.exit({error.code!r})") from error
        except asyncio.CancelledError as error:
            await anyio.lowlevel.checkpoint_if_cancelled()
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise SkillFailed(f"skill {self.name!r} was canceled by its own code") from error

    def _call(self, request: SkillRequest) -> SkillResult | Awaitable[SkillResult]:
        """Call the function. `sys.exit` in it raises SkillFailed and does not end the program."""
        try:
            return self.function(request)
        except SystemExit as error:
            raise SkillFailed(f"skill {self.name!r} called sys.exit({error.code!r})") from error

    def listing(self) -> Skill:
        """Return the skill's catalog entry. Its folder is that of the function's module."""
        file = inspect.getsourcefile(inspect.unwrap(self.function)) or "."
        return Skill(
            name=self.name,
            description=self.description,
            folder=Path(file).parent,
            idempotent=self.idempotent or not self.writes,
            metadata={"writes": str(self.writes).lower()},
        )


def skill(
    name: str, description: str = "", *, writes: bool = True, idempotent: bool = False
) -> Callable[[Function], FunctionSkill]:
    """Make a skill of a function that takes a SkillRequest and returns a SkillResult.

    Objectives are matched with the description. ``writes=False`` declares that the function changes no file outside of
    ``request.workdir``: read_only tasks refuse other functions. ``idempotent=True`` declares that it may be repeated
    after a crash; a function that writes and does not say so blocks its task instead. Raises ConfigError for an empty
    description or a name that is not lower-case words joined by hyphens.
    """
    if callable(name):
        raise ConfigError(f"write @skill(NAME, DESCRIPTION) before the function {getattr(name, '__name__', name)!r}")
    if not is_name(name):
        raise ConfigError(f"{name!r} is not a skill name: use lower-case letters and digits, joined by hyphens")
    if not description.strip():
        raise ConfigError(f"skill {name!r} needs a description: objectives are matched with it")

    def wrap(function: Function) -> FunctionSkill:
        wrapped = FunctionSkill(name, description, function, writes, idempotent)
        functools.update_wrapper(wrapped, function)
        return wrapped

    return wrap
