"""The node pipeline on the real board: from a shipped source to a patch, with crashes, limits and human answers."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.skills.skill import SkillState
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from tests.support.documents import NODE, run_step
from tests.support.pipeline import DEMO, advised, family, files, one_turn, shipped_advisor, submit, work
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

SHIPPED = {"linkshelf-api.md": "linkshelf_api", "linkshelf-openapi.yaml": "linkshelf_openapi"}


async def test_shipped_source_becomes_a_patch_with_all_artifacts(swarm: SwarmRig) -> None:
    root = await submit(swarm, DEMO / "Linkshelf.node.ts")
    await work(swarm, advised(swarm, shipped_advisor()))
    tasks = await family(swarm, root)
    assert [task.status for task in tasks.values()] == [TaskStatus.DONE] * 13
    left = await files(swarm, tasks["root"])
    for wanted in NODE.by_id["pr-prepare"].leaves:
        assert any(name.startswith(wanted) for name in left), wanted
    request = json.loads(left["pull_request.json"])
    assert (request["merge_executed"], request["human_review_required"]) == (False, True)
    assert json.loads(left["validation.json"])["passed"] is True
    assert '"DELETE"' in left["project/nodes/linkshelf/operations.py"], "the bounded fix is in"
    assert left["source_bundle/Linkshelf.node.ts"] == (DEMO / "Linkshelf.node.ts").read_text()
    assert "pull_request.patch" in left


@pytest.mark.parametrize("name", list(SHIPPED))
async def test_document_that_says_all_becomes_a_node_without_an_advisor(swarm: SwarmRig, name: str) -> None:
    root = await submit(swarm, DEMO / name)
    await work(swarm, advised(swarm, None))
    tasks = await family(swarm, root)
    assert tasks["root"].status is TaskStatus.DONE, {name: task.summary for name, task in tasks.items()}
    assert not {"code-implement", "code-fix.1"} & set(tasks)
    left = await files(swarm, tasks["root"])
    schema = json.loads(left["node_schema.json"])
    assert (schema["source_type"], schema["name"]) == ("TYPE2", SHIPPED[name])
    assert {"POST /links", "GET /links", "GET /links/{id}"} <= {
        f"{operation['method']} {operation['path']}" for operation in schema["operations"]
    }


async def test_patch_merges_cleanly_and_the_checked_out_base_stays_unchanged(swarm: SwarmRig, tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "--quiet", "--initial-branch=main")
    git("commit", "--quiet", "--allow-empty", "--message", "begin")
    before = git("rev-parse", "main")
    git("branch", "fireswarm/node-linkshelf")  # of an earlier run, or of a person
    settings = {"backbone": {"auto_merge_enabled": True}}
    root = await submit(swarm, DEMO / "Linkshelf.node.ts", repository=str(tmp_path))
    await work(swarm, advised(swarm, shipped_advisor(), **settings))
    left = await files(swarm, (await family(swarm, root))["root"])
    branch = json.loads(left["pull_request.json"])["branch"]
    assert git("rev-parse", "main") == before, "somebody has it checked out"
    assert branch == "fireswarm/node-linkshelf-2"
    assert git("rev-parse", "fireswarm/node-linkshelf") == before, "no branch is moved"
    assert git("status", "--porcelain") == ""
    git("merge", "--quiet", branch)
    assert (tmp_path / "nodes" / "linkshelf" / "operations.py").read_text() == left[
        "project/nodes/linkshelf/operations.py"
    ]
    assert git("worktree", "list").count("\n") == 1


@pytest.mark.parametrize("kind", ["missing", "a folder", "no commit", "no branch"])
def test_repository_to_which_nothing_can_be_added_is_refused_at_the_first_step(kind: str, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    commands = {
        "missing": [],
        "a folder": [["mkdir", str(repository)]],
        "no commit": [["git", "init", "--quiet", str(repository)]],
        "no branch": [
            ["git", "init", "--quiet", str(repository)],
            [*git, "commit", "--quiet", "--allow-empty", "--message", "begin"],
            [*git, "checkout", "--quiet", "--detach"],
        ],
    }
    for command in commands[kind]:
        subprocess.run(command, check=True)
    source = str(DEMO / "Linkshelf.node.ts")
    result = run_step("node-normalize", tmp_path / "w", (), source=source, repository=str(repository))
    assert result.state is SkillState.FAILED
    assert "name the folder of a git repository with a first commit, or none" in result.summary


async def test_base_without_a_checkout_is_merged_when_auto_merge_is_enabled(swarm: SwarmRig, tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "--quiet", "--initial-branch=main", "seed")
    git("-C", "seed", "commit", "--quiet", "--allow-empty", "--message", "begin")
    git("clone", "--quiet", "--bare", "seed", "bare.git")
    root = await submit(swarm, DEMO / "Linkshelf.node.ts", repository=str(tmp_path / "bare.git"))
    core = advised(swarm, shipped_advisor(), backbone={"auto_merge_enabled": True})
    await work(swarm, core)
    made = json.loads((await files(swarm, (await family(swarm, root))["root"]))["pull_request.json"])
    after = git("-C", "bare.git", "rev-parse", "main").strip()
    assert (made["merge_executed"], made["human_review_required"]) == (True, False)
    assert after == made["commit"]


async def test_code_that_cannot_be_fixed_is_escalated_after_three_attempts(swarm: SwarmRig) -> None:
    asked: list[str] = []

    def useless(request: Any) -> dict[str, Any]:
        text = request.messages[0].text
        asked.append(text[:40])
        if "validation_logs.txt" not in text:
            return shipped_advisor()(request)
        lines = text[text.index("# project/nodes/linkshelf/operations.py") :].splitlines()
        start = lines.index("```") + 1
        first, second, third = lines[start : start + 3]
        changed = first.replace('."""', '.."""')
        path = "nodes/linkshelf/operations.py"
        hunk = f"@@ -1,3 +1,3 @@\n-{first}\n+{changed}\n {second}\n {third}\n"
        return {"patch": f"--- a/{path}\n+++ b/{path}\n{hunk}", "explanation": "a try"}

    root = await submit(swarm, DEMO / "Linkshelf.node.ts")
    await work(swarm, advised(swarm, useless))
    tasks = await family(swarm, root)
    assert sum(name.startswith("code-fix") for name in tasks) == 3, tasks["code-fix.1"].summary
    ended = tasks["root"]
    assert (ended.status, ended.status_reason) == (TaskStatus.BLOCKED, StatusReason.ESCALATED)
    report = (await files(swarm, next(task for name, task in tasks.items() if "escalate" in name)))[
        "escalation_report.md"
    ]
    assert "attempts to fix it: 3 of 3" in report and "1 failed" in report
    for number in (1, 2, 3):
        tried = report.partition(f"## Attempt {number}\n")[2].partition("\n## ")[0]
        assert "    a try" in tried and "1 failed" in tried
        assert "    +++ b/nodes/linkshelf/operations.py" in tried
    run = tasks["root"].task_id
    assert f"`swarm pipeline resume {run} --from code-fix`" in report and f"`swarm artifacts {run}`" in report
    assert "escalation_report.md" in await files(swarm, tasks["root"]), "it is a file of the objective"
    assert not any("pr-prepare" in name for name in tasks)


async def test_advice_outside_the_scope_is_refused_before_anything_is_written(swarm: SwarmRig) -> None:
    calls = 0

    def stubborn(request: Any) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        return {"files": [{"path": "nodes/linkshelf/transport.py", "content": "x = 1\n"}], "notes": ""}

    root = await submit(swarm, DEMO / "Linkshelf.node.ts")
    await work(swarm, advised(swarm, stubborn))
    refused = (await family(swarm, root))["code-convert"]
    assert (refused.status, refused.status_reason, calls) == (TaskStatus.BLOCKED, StatusReason.ESCALATED, 2)
    assert "outside the scope" in str(refused.error) and refused.result is None


async def test_step_without_a_model_waits_for_an_answer_from_a_person(swarm: SwarmRig) -> None:
    root = await submit(swarm, DEMO / "Linkshelf.node.ts")
    core = advised(swarm, None)
    await work(swarm, core)
    waiting = (await family(swarm, root))["code-convert"]
    assert (waiting.status, waiting.status_reason) == (TaskStatus.BLOCKED, StatusReason.INPUT_REQUIRED)
    [question] = waiting.questions
    assert question.name == "advice" and "no model can be asked" in question.description
    await swarm.board.answer(waiting.task_id, {"advice": {"files": [{"path": "elsewhere.py", "content": ""}]}})
    await work(swarm, core)
    again = (await family(swarm, root))["code-convert"]
    assert again.status_reason is StatusReason.INPUT_REQUIRED and "outside the scope" in again.summary
    request = type("Request", (), {"messages": [type("Message", (), {"text": "Scope: nodes/linkshelf/operations.py"})]})
    good = shipped_advisor()(request)
    good["files"][0]["content"] = good["files"][0]["content"].replace("REMOVE", "DELETE")
    await swarm.board.answer(waiting.task_id, {"advice": good})
    await work(swarm, core)
    assert (await family(swarm, root))["root"].status is TaskStatus.DONE


class Died(BaseException):
    """Stands in for the death of the process."""


@pytest.mark.parametrize("number", (13, 33))
async def test_killed_pipeline_continues_without_paying_for_advice_twice(
    swarm: SwarmRig, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def counting(request: Any) -> dict[str, Any]:
        asked.append(len(request.messages[0].text))
        return shipped_advisor()(request)

    root = await submit(swarm, DEMO / "Linkshelf.node.ts")
    real, commits = swarm.store.commit, 0

    async def commit(writes: Any, **options: Any) -> Any:
        nonlocal commits
        commits += 1
        done = await real(writes, **options)
        if commits == number:
            raise Died
        return done

    with monkeypatch.context() as patch:
        patch.setattr(swarm.store, "commit", commit)
        try:
            while await one_turn(swarm, advised(swarm, counting)) is not None:
                pass
        except Died:
            pass
    await swarm.clock.advance(400)
    for role in ("scout", "executor", "architect", "predictor", "memory"):
        await swarm.board.sweep(role)
    await work(swarm, advised(swarm, counting))
    assert (await family(swarm, root))["root"].status is TaskStatus.DONE
    assert len(asked) == 2, "one translation, one fix"


UNPLACED = """# Notes

Base URL: https://notes.example/v1

## List notes

```
GET /notes
```

## Add a note

```
POST /notes
```

| Name | Type |
| --- | --- |
| text | string |

## Change a note

```
PUT /notes/:id
```

| Name | Type |
| --- | --- |
| id | string |
| text | string |
"""


async def test_advisor_gets_one_operation_at_a_time_with_its_source(swarm: SwarmRig, tmp_path: Path) -> None:
    asked: list[str] = []

    def one_function(request: Any) -> dict[str, Any]:
        text = request.messages[0].text
        name = re.findall(r"Write the function `(\w+)`", text)[0]
        asked.append(text)
        sending = {
            "note_add_a_note": 'send("POST", "/notes", body=_text(parameters))',
            "note_change_a_note": 'send("PUT", "/notes/" + quote(parameters["id"]), body=_text(parameters))',
        }[name]
        lines = ["from __future__ import annotations", "from typing import Any", "from urllib.parse import quote"]
        lines += ["from .transport import Send", "", "def _text(parameters: dict[str, Any]) -> dict[str, Any]:"]
        lines += [
            '    return {"text": parameters["text"]}',
            "",
            f"def {name}(parameters: dict[str, Any], send: Send) -> Any:",
        ]
        content = "\n".join([*lines, f"    return {sending}", ""])
        return {"files": [{"path": "nodes/notes/operations.py", "content": content}], "notes": ""}

    (tmp_path / "notes.md").write_text(UNPLACED)
    root = await submit(swarm, tmp_path / "notes.md")
    await work(swarm, advised(swarm, one_function))
    tasks = await family(swarm, root)
    assert tasks["root"].status is TaskStatus.DONE, {name: task.summary for name, task in tasks.items()}
    assert len(asked) == 2
    assert "where text is sent" in asked[0] and "PUT /notes/:id" not in asked[0].partition("# source_bundle")[0]
    code = (await files(swarm, tasks["root"]))["project/nodes/notes/operations.py"]
    assert 'return send("GET", "/notes")' in code, "written by template"
    assert code.count("def _text") == 1
    assert "NotImplementedError" not in code
