"""Skills that are functions: `@skill` turns a function into a skill that runs in the worker's process."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio.to_thread

from fireswarm.contracts.foreign.call import call_foreign
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
        result = await call_foreign(partial(self._call, request), f"skill {self.name!r}", SkillFailed)
        if not isinstance(result, SkillResult):
            raise TypeError(f"skill {self.name!r} returned {type(result).__name__} instead of SkillResult")
        return result

    async def _call(self, request: SkillRequest) -> object:
        """Call the function, which may return anything."""
        if inspect.iscoroutinefunction(self.function):
            return await self.function(request)
        return await anyio.to_thread.run_sync(self.function, request, abandon_on_cancel=True)

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
