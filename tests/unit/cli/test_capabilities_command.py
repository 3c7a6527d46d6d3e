"""``capabilities`` lists all capabilities, and ``submit --capability`` refuses those that a turn would refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fireswarm.cli.agent.main import app as agent_app
from fireswarm.cli.swarm.main import app as swarm_app
from fireswarm.errors import FireswarmError, NotFound


def run(*arguments: str, agent: bool = False) -> str:
    found = CliRunner().invoke(agent_app if agent else swarm_app, arguments)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == 0, found.output
    return found.stdout


@pytest.mark.parametrize("agent", [True, False])
def test_list_contains_every_capability_with_status_and_category(agent: bool) -> None:
    listed = json.loads(run("capabilities", "--json", agent=agent))
    by_id = {item["id"]: item for item in listed["items"]}
    assert listed["total"] == len(by_id) >= 10
    fetch = by_id["web_fetch"]
    assert (fetch["status"], fetch["icon"], fetch["category"]) == ("available", "globe", "Network")
    assert (by_id["sandbox"]["icon"], by_id["sandbox"]["category"]) == ("box", "Execution")
    assert (by_id["research"]["icon"], by_id["research"]["category"]) == ("search", "AI")


def test_single_capability_is_shown_with_settings_and_tools() -> None:
    shown = json.loads(run("capabilities", "sandbox", "--json"))
    assert [tool["name"] for tool in shown["tools"]] == ["execute_code"]
    assert "memory_bytes" in shown["settings"] and "memory_bytes" in shown["operator_keys"]
    assert json.loads(run("capabilities", "mcp", "--json"))["tools"] is None
    with pytest.raises(NotFound, match="unknown capability 'telepathy'"):
        run("capabilities", "telepathy")


def test_agent_lists_its_own_tools_and_shows_one() -> None:
    own = {
        *("list_files", "read_file", "search_files", "write_file", "edit_file", "write_artifact", "run_command"),
        *("command_output", "stop_command", "use_skill", "read_skill_file", "search_skills", "read_output", "todo"),
        "ask_user",
    }
    assert {tool["name"] for tool in json.loads(run("capabilities", "--json", agent=True))["tools"]} == own
    assert "tools" not in json.loads(run("capabilities", "--json"))
    assert "edit_file" in run("capabilities", agent=True)
    assert "old_text" in run("capabilities", "edit_file", agent=True)
    assert json.loads(run("capabilities", "todo", "--json", agent=True))["parameters"]["required"] == ["items"]
    assert json.loads(run("capabilities", "sandbox", "--json", agent=True))["id"] == "sandbox"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("telepathy", "unknown capability 'telepathy'"),
        ('{"id": "mcp", "config": {"servers": {"x": {"command": "sh"}}}}', "may not set servers"),
        ('{"id": "web_fetch", "config": {"body_seconds": -1}}', "body_seconds"),
        ('{"id": ', "takes an id, or JSON"),
        ("Not An Id", "should have 1 to 50 lower-case letters"),
    ],
)
def test_forbidden_capability_is_rejected_on_submit(tmp_path: Path, given: str, told: str) -> None:
    with pytest.raises(FireswarmError, match=told):
        run("submit", "look", "--role", "scout", "--capability", given, "--root", str(tmp_path), "--store", "memory")


def test_submitted_task_stores_its_capabilities(tmp_path: Path) -> None:
    given = ("--capability", "research", "--capability", '{"id": "web_fetch", "config": {"body_seconds": 9}}')
    told = run("submit", "look", "--role", "scout", *given, "--root", str(tmp_path), "--store", "memory", "--json")
    uses = json.loads(told)["task"]["capabilities"]
    assert [(use["id"], use["config"]) for use in uses] == [("research", {}), ("web_fetch", {"body_seconds": 9.0})]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("capabilities: [telepathy]", "unknown capability 'telepathy'"),
        ("capabilities: [{id: web_fetch, config: {max_redirects: -1}}]", "max_redirects"),
        ("offers: [{id: mcp}]", "servers"),
    ],
)
def test_doctor_reports_roles_with_unusable_capabilities(tmp_path: Path, line: str, told: str) -> None:
    card = tmp_path / "roles" / "scout" / "ROLE.md"
    card.parent.mkdir(parents=True)
    card.write_text(f"---\nname: scout\ndescription: looks\nskills: [noop]\n{line}\n---\nLook.\n")
    found = CliRunner().invoke(swarm_app, ["doctor", "--root", str(tmp_path), "--store", "memory", "--json"])
    findings = [item for item in json.loads(found.output) if item["what"] == "role"]
    assert [item["ok"] for item in findings] == [False] and found.exit_code == 1
    assert findings[0]["detail"].startswith("role scout: ") and told in findings[0]["detail"]
