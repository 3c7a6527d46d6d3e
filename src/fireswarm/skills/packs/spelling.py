"""Find a skill by its name or the name of its folder, in any spelling of a model. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fireswarm.skills.packs.catalog import Skill

_BETWEEN = re.compile(r"[\s_-]+")


def find_skill_name(said: str, skills: Mapping[str, Skill], among: Iterable[str]) -> str:
    """Return the name of the skill in *among* that *said* means, or "".

    Case is ignored, and ``_``, blanks and ``-`` are equal. A folder's name that several skills share matches none.
    """
    wanted = _fold(said)
    known = [name for name in among if wanted and name in skills]
    for name in known:
        if _fold(name) == wanted:
            return name
    by_folder = [name for name in known if _fold(skills[name].folder.name) == wanted]
    return by_folder[0] if len(by_folder) == 1 else ""


def _fold(name: str) -> str:
    return _BETWEEN.sub("-", name.strip().casefold()).strip("-")
