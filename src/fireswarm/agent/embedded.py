"""Run the stand-alone agent from a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fireswarm.agent.run import Watching, carry_out
from fireswarm.agent.task import AgentTask
from fireswarm.contracts.ports import ChatModel
from fireswarm.contracts.swarm.event import EventRecord
from fireswarm.mind import Conclusion
from fireswarm.runs.make_mind import agent_catalog
from fireswarm.settings import AgentSettings, load_found_settings
from fireswarm.settings.load import home_folder
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.swarm.submission.arguments import check_call


@check_call
async def run_agent(
    task: str,
    *,
    root: Path | str = ".",
    skills: Sequence[Path] = (),
    context: Mapping[str, Any] | None = None,
    settings: AgentSettings | None = None,
    model: ChatModel | None = None,
    dry_run: bool = False,
    yes: bool = False,
    on_event: Callable[[EventRecord], None] | None = None,
) -> Conclusion:
    """Run one task with a model, as ``agent run`` does, and return its conclusion.

    *root* holds ``agent.yaml`` and ``skills/``; runs are written to its ``runs/``. *skills* are folders to search
    instead. *model* replaces the configured one. With *dry_run* no model is called. With *yes*, actions that need an
    approval are allowed; without it, the conclusion waits with the first of them as its question. Raises ConfigError,
    MissingApiKey, and InvalidInput for an argument of another type.
    """
    folder, settings, catalog = _prepare(root, settings, skills)
    work = AgentTask(task=task, context=dict(context or {}), dry_run=dry_run, yes=yes)
    conclusion, _ = await carry_out(settings, catalog, work, folder, Watching(on_event=on_event), model=model)
    return conclusion


def _prepare(
    root: Path | str, settings: AgentSettings | None, skills: Sequence[Path]
) -> tuple[Path, AgentSettings, Catalog]:
    """Resolve the root folder, and load its settings and skills."""
    folder, home = Path(root).resolve(), home_folder()
    settings = settings or load_found_settings(None, folder, home)
    return folder, settings, agent_catalog(settings, folder, home, skills)
