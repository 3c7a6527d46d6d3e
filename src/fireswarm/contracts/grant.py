"""Permissions of one run: what its calls may do. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from fireswarm.contracts.ports import SkillTerms
from fireswarm.contracts.skills.permissions import StricterPermissions
from fireswarm.contracts.swarm.constraints import Constraints


class Verdict(StrEnum):
    """Decision on a call, from the mildest to the strictest."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Grant:
    """The permissions of one run.

    ``cwd`` is its workspace, ``role`` the role that works in it, "" for the command ``agent``. ``profile`` is
    permissive, demo_safe or read_only. ``allow``, ``ask`` and ``deny`` are the operator's rules, ``default``
    decides on a change that no rule allows, and ``stricter`` holds the rules of the role card and the task. With
    ``yes``, every call that is not denied is allowed. ``confined`` is False if commands run without confinement;
    ``runs_outside_scripts`` is True if skills may run scripts outside their folders. ``named`` is the skill with
    which the run was started, ``skill`` the one in use; the allowed tools of both restrict every call. Confined
    commands see ``cwd`` and ``readable``, reach the network if ``network`` is True and they may write, and get the
    environment variables ``environment`` besides the usual ones. ``base`` is the folder of the objective, to which
    paths in ``ask`` and ``deny`` rules are relative too; None if that is ``cwd``.
    """

    cwd: Path
    profile: str = "permissive"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    default: Verdict = Verdict.ALLOW
    stricter: StricterPermissions = StricterPermissions()
    yes: bool = False
    confined: bool = True
    runs_outside_scripts: bool = False
    named: SkillTerms | None = None
    skill: SkillTerms | None = None
    readable: tuple[Path, ...] = ()
    network: bool = False
    environment: tuple[str, ...] = ()
    role: str = ""
    base: Path | None = None

    def using(self, skill: SkillTerms | None) -> Grant:
        """Return the grant while *skill* is in use."""
        return replace(self, skill=skill)

    @property
    def writes(self) -> bool:
        """True if the run may change its workspace."""
        return self.profile == "permissive"


def stricter_profile(constraints: Constraints, profile: str) -> str:
    """Return the stricter profile of the task and the runtime: permissive, demo_safe or read_only."""
    if constraints.read_only or profile == "read_only":
        return "read_only"
    return "demo_safe" if constraints.demo_safe or profile == "demo_safe" else "permissive"
