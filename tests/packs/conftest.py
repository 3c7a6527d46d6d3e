"""Fixtures for the tests of the packaged skills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.skills.skill import SkillRequest
from tests.support.packs import NOW, MakeRequest, Repository


@pytest.fixture
def make_request(tmp_path_factory: pytest.TempPathFactory) -> MakeRequest:
    """Return a function that makes a request with a new workdir; keyword arguments replace the defaults."""

    def make(**fields: Any) -> SkillRequest:
        usual: dict[str, Any] = {
            "task_id": "task-1",
            "session_hash": "session",
            "objective": "Look at this folder.",
            "role": "scout",
            "roles": ("scout", "architect", "executor", "predictor", "memory"),
            "workdir": tmp_path_factory.mktemp("work"),
            "now": NOW,
        }
        return SkillRequest(**(usual | fields))

    return make


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "project")
