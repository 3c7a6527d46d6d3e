"""The swarm command line: real processes, real files, clear errors and exit codes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio.to_thread
import psutil
import pytest

from fireswarm.contracts.ports import Create, Update
from fireswarm.contracts.swarm.status import AgentState, AgentStatus
from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.settings import load_settings
from fireswarm.settings.packaged import packaged_path
from fireswarm.swarm.opening.open_parts import open_parts
from tests.support.fleet import environment, lay_out, role_processes, swarm_up, until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm_command import swarm

ECHO = """
from fireswarm.contracts.skills.skill import Question, SkillResult, SkillState

def run(request):
    if "name" not in request.answers:
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="who?",
                           questions=(Question(name="name", description="Who asks?"),))
    return SkillResult(summary=f"hello {request.answers['name']}")
"""


MEMORY_OF_ZERO = {
    "type": "fact", "bucket": "files", "key": "broken", "value": 0, "session_hash": "s", "created_at": datetime.now(UTC)
}  # fmt: skip


def test_help_option_of_the_command_lists_subcommands(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fireswarm.cli", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "submit" in done.stdout


def ok(root: Path, *arguments: str) -> Any:
    done = swarm(root, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lay_out(tmp_path, {"echo": ECHO}, settings={"worker": {"drain_seconds": 1}})
    return tmp_path


@contextmanager
def running(root: Path, *arguments: str, **env: str) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "fireswarm.cli", *arguments],
        cwd=root,
        env=environment() | env,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_SECONDS)


def line_with(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line.strip()
    raise AssertionError(f"the process ended without printing {text}")


def test_submitting_the_same_task_twice_creates_it_once(root: Path) -> None:
    first = ok(root, "submit", "say hello", "--role", "scout", "--context", "n=1")
    second = ok(root, "submit", "say hello", "--role", "scout", "--context", "n=1")
    assert (first["created"], second["created"]) == (True, False)
    task_id = first["task"]["task_id"]
    assert [task["task_id"] for task in ok(root, "tasks")] == [task_id]
    assert [task["task_id"] for task in ok(root, "tasks", "--status", "queued", "--role", "scout")] == [task_id]
    assert ok(root, "tasks", "--status", "done") == []
    assert (
        "no scout agent is running" in swarm(root, "submit", "say hello", "--role", "scout", "--context", "n=1").stderr
    )
    shown = ok(root, "show", task_id[:8])
    assert "waits for an agent of the role scout" in shown["why"]
    for command in ("runs", "agents", "mail", "memory"):
        assert ok(root, command) == []
    assert ok(root, "cancel", task_id) == [task_id]
    assert "cannot change any more" in swarm(root, "cancel", task_id).stderr


@pytest.mark.anyio
async def test_agents_of_a_fleet_that_died_as_a_whole_say_what_is_known_of_their_end(root: Path) -> None:
    async with open_parts(load_settings(root, {})) as swarm_:
        last = datetime.now(UTC) - timedelta(minutes=5)
        for name, state in (("scout-died", AgentState.WORKING), ("scout-stopped", AgentState.STOPPED)):
            await swarm_.heartbeats.beat(
                AgentStatus(agent_id=name, role="scout", session_hash="s1", status=state, created_at=last)
            )
            await swarm_.store.commit([Update(f"mcp_memory/status-{name}", {"created_at": last})])
    printed = (await anyio.to_thread.run_sync(swarm, root, "agents")).stdout
    assert f"scout-died ended: nothing says how: its last heartbeat was at {last:%Y-%m-%d %H:%M:%S} UTC" in printed
    assert "scout-stopped ended" not in printed


def test_tasks_of_a_schedule_are_listed_alone(root: Path) -> None:
    ok(root, "submit", "say hello", "--role", "scout")
    ok(root, "schedule", "set", "report", "0 6 * * *", "write it", "--role", "scout", "--skill", "noop")
    assert ok(root, "tasks", "--schedule", "report") == []
    first, second = (ok(root, "schedule", "run", "report")["task_id"] for _ in range(2))
    assert [task["task_id"] for task in ok(root, "tasks", "--schedule", "report")] == [second, first]
    assert [task["task_id"] for task in ok(root, "tasks", "--schedule", "report", "--limit", "1")] == [second]
    assert ok(root, "tasks", "--schedule", "report", "--status", "done") == []
    assert ok(root, "tasks", "--schedule", "report", "--role", "predictor") == []
    assert "there is no schedule other" in swarm(root, "tasks", "--schedule", "other").stderr


@pytest.mark.anyio
async def test_canceling_names_the_tasks_that_go_on(root: Path) -> None:
    async with open_parts(load_settings(root, {})) as swarm_:
        parent, child = [
            (await swarm_.board.submit(TaskSpec(objective=name, assigned_to="scout", session_hash="s"))).task.task_id
            for name in ("parent", "child")
        ]
        await swarm_.store.commit([Update(f"agent_tasks/{parent}", {"children": [child]})])
        await swarm_.store.commit([Create("mcp_memory/zero", MEMORY_OF_ZERO)])
    done = await anyio.to_thread.run_sync(swarm, root, "cancel", parent)
    assert f"the 1 below it continue: `swarm cancel {parent[:8]} --tree` cancels them" in done.stderr
    assert (await anyio.to_thread.run_sync(swarm, root, "cancel", parent, "--tree")).stderr == ""
    assert {task["status"] for task in await anyio.to_thread.run_sync(ok, root, "tasks")} == {"canceled"}
    assert "\t0\n" in (await anyio.to_thread.run_sync(swarm, root, "memory")).stdout
    retried = await anyio.to_thread.run_sync(swarm, root, "retry", parent)
    assert "submit it again with --again WORD\n" in retried.stderr


def test_custom_role_asks_a_question_and_finishes_after_the_answer(root: Path) -> None:
    card = root / "roles" / "greeter" / "ROLE.md"
    card.parent.mkdir()
    card.write_text("---\nname: greeter\ndescription: greets\nskills: [echo]\n---\nBe kind.\n")
    with running(root, "up", "--roles", "greeter") as up:
        line_with(up, "role processes")
        asked = swarm(root, "submit", "greet", "--role", "greeter", "--wait")
        assert asked.returncode == 1
        assert "swarm show" in asked.stdout
        [task] = ok(root, "tasks")
        assert (task["status"], task["status_reason"]) == ("blocked", "input_required")
        assert "swarm answer" in swarm(root, "show", task["task_id"]).stdout
        refused = swarm(root, "answer", task["task_id"], "nome=Ada")
        assert refused.returncode == 1
        assert "nome is not an open question" in refused.stderr
        ok(root, "answer", task["task_id"], "name=Ada")
        assert swarm(root, "watch", task["task_id"]).returncode == 0
        [task] = ok(root, "tasks")
        assert (task["status"], task["summary"]) == ("done", "hello Ada")
        assert [run["status"] for run in ok(root, "runs")] == ["completed", "completed"]
        [agent] = ok(root, "agents")
        assert (agent["role"], agent["pid"] > 0, agent["mem"] > 1_000_000) == ("greeter", True, True)
        assert swarm(root, "submit", "greet again", "--role", "greeter").stderr == ""
    assert up.returncode == 0
    assert ok(root, "cost")["total"]["writes"] > 4
    [agent] = ok(root, "agents")
    assert agent["status"] == "stopped"


@pytest.mark.parametrize("option", [(), ("--with-parent",)])
def test_role_process_drains_on_sigterm_and_exits_with_zero(root: Path, option: tuple[str, ...]) -> None:
    with running(root, "store", "serve", "--port", "0") as server:
        address = line_with(server, "export FIRESTORE_EMULATOR_HOST=").partition("=")[2]
        with running(root, "role", "scout", "--store", f"firelite://{address}", *option) as role:
            submitted = ok(root, "submit", "x", "--role", "scout", "--skill", "noop")["task"]["task_id"]
            assert swarm(root, "watch", submitted).returncode == 0
            role.send_signal(signal.SIGTERM)
            assert role.wait(timeout=PATIENCE_SECONDS) == 0
        [agent] = ok(root, "agents")
        assert agent["status"] == "stopped"


def test_role_process_ends_when_its_parent_is_already_dead(root: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as ended:
        ended.wait()
    with running(root, "store", "serve", "--port", "0") as server:
        address = line_with(server, "export FIRESTORE_EMULATOR_HOST=").partition("=")[2]
        arguments = ("role", "scout", "--store", f"firelite://{address}", "--with-parent")
        with running(root, *arguments, FIRESWARM_PARENT=str(ended.pid)) as role:
            assert role.wait(timeout=PATIENCE_SECONDS) == 0


@pytest.mark.anyio
async def test_killed_fleet_leaves_no_role_process(root: Path) -> None:
    with swarm_up(root, "--roles", "scout,memory") as up:

        async def two_run() -> bool:
            return len(role_processes(up)) == 2

        await until(two_run, seconds=PATIENCE_SECONDS, what="starting two role processes")
        started = [up, *up.children(recursive=True)]
        up.kill()

        async def none_runs() -> bool:
            return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in started)

        await until(none_runs, seconds=PATIENCE_SECONDS, what="the end of every process")


def test_store_server_prints_its_address_and_shows_the_store_to_other_commands(root: Path) -> None:
    with running(root, "store", "serve", "--port", "0") as server:
        address = line_with(server, "export FIRESTORE_EMULATOR_HOST=").partition("=")[2]
        ok(root, "submit", "found through the lock file", "--role", "scout")
        done = swarm(root, "tasks", "--json", FIRESTORE_EMULATOR_HOST=address)
        assert [task["objective"] for task in json.loads(done.stdout)] == ["found through the lock file"]
        assert ok(root, "store", "stats")["documents"] == 2
        refused = swarm(root, "store", "serve", "--port", "0")
        assert refused.returncode == 1
        assert str(server.pid) in refused.stderr
        assert address in refused.stderr
    assert ok(root, "store", "stats")["documents"] == 2  # the task and its key


def test_store_can_be_exported_reset_and_imported(root: Path) -> None:
    ok(root, "submit", "one", "--role", "scout")
    before = ok(root, "tasks")
    assert swarm(root, "store", "export", "all.jsonl").returncode == 0
    assert swarm(root, "store", "reset", "--yes").returncode == 0
    assert ok(root, "tasks") == []
    assert swarm(root, "store", "import", "all.jsonl").returncode == 0
    after = ok(root, "tasks")
    assert [task["task_id"] for task in after] == [task["task_id"] for task in before]


def test_init_creates_a_swarm_that_passes_the_doctor(tmp_path: Path) -> None:
    done = swarm(tmp_path, "init", "mine")
    assert done.returncode == 0, done.stderr
    mine = tmp_path / "mine"
    for name in ("roles/scout/ROLE.md", "mailbox/policy.yaml", "firestore.rules", "firebase.json"):
        assert (mine / name).is_file()
    card = mine / "roles" / "scout" / "ROLE.md"
    card.write_text(card.read_text() + "\nmine\n")
    swarm(tmp_path, "init", "mine")
    assert card.read_text().endswith("mine\n"), "init overwrote what was there"
    doctor = swarm(mine, "doctor")
    assert doctor.returncode == 0, doctor.stdout
    assert "FAIL" not in doctor.stdout
    (mine / "mailbox" / "policy.yaml").write_text("routes: {pilot: [scout]}\nanswers: {operator: [navigator]}\n")
    noted = " ".join(swarm(mine, "doctor").stdout.split())
    for name in ("pilot", "navigator"):
        assert f"policy.yaml names {name}, which is not a role of this swarm" in noted


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            "provider: gemini-vertex",
            "roles do not use the model gemini-vertex gemini-3.8-flash: gemini-vertex needs ",
        ),
        ("provider: anthropic-vertex", "run `gcloud auth application-default login`"),
        (
            "provider: anthropic-bedrock, name: m, providers: {anthropic-bedrock: {region: eu-west-1}}",
            "`aws sso login`",
        ),
        (
            "provider: anthropic-bedrock, name: m",
            "FAIL model anthropic-bedrock m: anthropic-bedrock needs a region: set ",
        ),
        (
            "provider: openai, name: 'qwen3:32b', providers: {openai: {base_url: 'http://127.0.0.1:9/v1'}}",
            "ok model openai qwen3:32b, no key at http://127.0.0.1:9/v1; unknown context window, 32,000 tokens are "
            "assumed: set model.max_context_tokens; no known price: set budget.prices.qwen3:32b",
        ),
    ],
)
def test_doctor_says_how_the_model_is_reached_or_what_is_missing(model: str, said: str, tmp_path: Path) -> None:
    swarm(tmp_path, "init", "mine")
    (tmp_path / "mine" / "swarm.yaml").write_text(f"model: {{{model}}}\n")
    done = swarm(tmp_path / "mine", "doctor", HOME=str(tmp_path), FIRESWARM_TRUST_SETTINGS="1")
    assert said in " ".join(done.stdout.split()), done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("submit", "x", "--role", "pilot"), "there is no role 'pilot'"),
        (("submit", "", "--role", "scout"), "objective"),
        (("submit", "x", "--path", "/nowhere"), "--path /nowhere does not exist"),
        (
            ("submit", "x", "--role", "scout", "--after", "ghost"),
            "ghost, but session default has no such task",
        ),
        (("submit", "x", "--role", "scout", "--context", "novalue"), "is not key=value"),
        (("submit", "x", "--role", "scout", "--skill", "ghost"), "there is no skill 'ghost'; omit it"),
        (("submit", "x", "--pipeline", "ghost"), "unknown pipeline 'ghost'; known: csv-contract, node"),
        (("submit", "x", "--pipeline", "node", "--skill", "noop"), "exclude each other"),
        (("submit", "x", "--role", "scout", "--deadline", "2026-01-01"), "has passed: nothing was submitted"),
        (("show", "ghost"), "there is no task ghost"),
        (("show", "__x__"), "give a task id, or the beginning of one"),
        (("tasks", "--status", "finished"), "use one of queued, in_progress"),
        (("tasks", "--store", "mysql://x"), "is not known: use embedded"),
        (("tasks", "--store", "firelite://127.0.0.1"), "names no port"),
        (("up", "--roles", "pilot"), "has no role card"),
        (("up", "--replicas", "scout=many"), "must be ROLE=COUNT"),
        (("submit", "   "), "objective: Value error, is blank: describe the work"),
        (("submit", "\u200b\n"), "is blank"),
        (("role", "pilot"), "there is no role 'pilot'"),
        (("demo", "/nowhere"), "is not a folder"),
        (("store", "import", "nothing.jsonl"), "does not exist"),
    ],
)
def test_bad_input_gets_a_clear_message_and_a_non_zero_exit(root: Path, arguments: tuple[str, ...], words: str) -> None:
    done = swarm(root, *arguments)
    assert done.returncode != 0
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["tasks", "doctor"])
def test_unreachable_store_is_named_at_once(root: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fireswarm.swarm.opening.open_parts.CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    done = swarm(root, command, FIRESTORE_EMULATOR_HOST=address)
    assert done.returncode == 1
    assert f"no server listens on {address}, the address of FIRESTORE_EMULATOR_HOST" in " ".join(
        (done.stdout + done.stderr).split()
    )


def test_project_option_with_an_emulator_variable_is_refused(root: Path) -> None:
    done = swarm(root, "tasks", "--project", "mine", FIRESTORE_EMULATOR_HOST="127.0.0.1:1")
    assert done.returncode == 1
    assert "unset it" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("swarm.yaml", "leases: {lease_secnds: 3}\n", "leases.lease_secnds"),
        ("swarm.yaml", "a: [\n", "is not YAML"),
        ("mailbox/policy.yaml", "max_hops: none\n", "max_hops"),
        ("roles/scout/ROLE.md", "no frontmatter\n", "frontmatter"),
        ("roles/scout/ROLE.md", "---\nname: scuot\ndescription: x\nskills: [echo]\n---\n", "make them equal"),
    ],
)
def test_error_in_a_file_names_the_file_and_the_key(root: Path, name: str, content: str, words: str) -> None:
    (root / name).write_text(content)
    for command in ("tasks", "doctor"):
        done = swarm(root, command)
        assert done.returncode == 1
        said = " ".join((done.stderr + done.stdout).split())
        assert words in said
        assert Path(name).name in said


def test_port_in_use_is_named_in_the_error(root: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for command in (("store", "serve", "--memory"), ("up",)):
            done = swarm(root, *command, "--port", port)
            assert done.returncode == 1
            assert port in done.stderr


def test_corrupt_data_file_is_refused_and_left_unchanged(root: Path) -> None:
    ok(root, "submit", "one", "--role", "scout")
    path = root / ".fireswarm" / "store.db"
    path.write_bytes(os.urandom(8192))
    before = path.read_bytes()
    done = swarm(root, "tasks")
    assert done.returncode == 1
    assert "store.db" in done.stderr
    assert path.read_bytes() == before


def test_packaged_path_finds_roles_and_indexes() -> None:
    assert (packaged_path("roles") / "scout" / "ROLE.md").is_file()
    assert packaged_path("firestore.indexes.json").is_file()
