"""`swarm answer` with a value outside the choices of a question."""

from __future__ import annotations

from pathlib import Path

from tests.integration.test_cli import line_with, ok, running, swarm
from tests.support.fleet import lay_out

PICK = """
from fireswarm import Question, SkillResult, SkillState

def run(request):
    if "column" not in request.answers:
        ask = Question(name="column", description="Which column?", allowed={"enum": ["price", "size"]})
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="which?", questions=(ask,))
    return SkillResult(summary=f"picked {request.answers['column']}")
"""


def test_answer_is_a_choice_whatever_its_case_and_any_other_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path
    lay_out(root, {"pick": PICK}, settings={"worker": {"drain_seconds": 1}})
    with running(root, "up", "--roles", "scout") as up:
        line_with(up, "role processes")
        assert swarm(root, "submit", "pick", "--role", "scout", "--wait").returncode == 1
        [task] = ok(root, "tasks")
        refused = swarm(root, "answer", task["task_id"], "column=costs", "--json")
        assert refused.returncode == 1
        assert "error (invalid_input): " in refused.stderr
        assert "'costs' is not one of ['price', 'size']" in refused.stderr
        assert ok(root, "tasks") == [task]
        ok(root, "answer", task["task_id"], "column=PRICE")
        assert swarm(root, "watch", task["task_id"]).returncode == 0
        assert ok(root, "tasks")[0]["summary"] == "picked price"
