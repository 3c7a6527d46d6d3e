"""The process that serves the embedded store ends: one of those that use it serves it, and all the others go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import psutil
import pytest

from firelite.storage import lockfile
from firelite.storage.lockfile import lock_path, read_endpoint
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.errors import StoreUnavailable
from fireswarm.settings import Settings, load_settings
from fireswarm.storage.documents import queries
from fireswarm.swarm.opening import embedded_store
from fireswarm.swarm.opening.embedded_store import serving
from tests.integration.test_cli import ECHO, line_with, ok, running
from tests.support.fleet import lay_out, role_processes, swarm_up, until, with_signal
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

TOKEN = "a-token-for-tests-of-43-characters-in-length"

OTHER_USER = 65_534


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lay_out(tmp_path, {"echo": ECHO}, settings={"worker": {"drain_seconds": 1}})
    return tmp_path


@asynccontextmanager
async def opened(root: Path) -> AsyncGenerator[Swarm]:
    """A program that uses the store of the folder, as a command does that stays open."""
    async with Swarm.open(settings=load_settings(root, environment={})) as swarm:
        yield swarm


@contextmanager
def api_of(root: Path) -> Generator[tuple[subprocess.Popen[str], httpx2.Client]]:
    """A `swarm api` process, and a client of it."""
    with running(root, "api", "--port", "0", FIRESWARM_API_TOKEN=TOKEN) as process:
        url = line_with(process, "API on").split()[2].removesuffix("/v1,")
        with httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
            yield process, client


def data_of(root: Path) -> Path:
    return root / ".fireswarm" / "store.db"


def pid_of_server(root: Path) -> int:
    """The process that has the file open, by the lock."""
    return int(json.loads(data_of(root).with_name("store.db.lock").read_text() or '{"pid": 0}')["pid"])


async def until_served(root: Path) -> None:
    async def served() -> bool:
        return read_endpoint(data_of(root)) == f"unix:{root}/.fireswarm/store.sock"

    await until(served, seconds=PATIENCE_SECONDS, what="a server")


def kill_all(up: psutil.Process) -> None:
    """Kill a fleet with its role processes, as a crash of the machine's services does."""
    family = [*up.children(recursive=True), up]
    for member in family:
        with_signal(member, signal.SIGKILL)
    assert psutil.wait_procs(family, timeout=PATIENCE_SECONDS)[1] == []


async def objectives(swarm: Swarm) -> list[str]:
    """The objectives in the store, as soon as it can be read."""
    found: list[str] = []

    async def read() -> bool:
        try:
            found.extend(task.objective for task in await swarm.tasks())
        except StoreUnavailable:
            return False
        return True

    await until(read, seconds=PATIENCE_SECONDS, what="an answer of the store")
    return sorted(found)


async def submit_over(client: httpx2.Client, objective: str) -> None:
    """Submit a task over the API, again until the store answers."""

    async def submitted() -> bool:
        sent = await anyio.to_thread.run_sync(
            lambda: client.post("/v1/tasks", json={"objective": objective, "role": "scout"})
        )
        return sent.status_code in (200, 201)

    await until(submitted, seconds=PATIENCE_SECONDS, what="a submission")


def listed_over(client: httpx2.Client) -> list[str]:
    return sorted(task["objective"] for task in client.get("/v1/tasks").raise_for_status().json()["items"])


async def test_client_goes_on_when_the_whole_fleet_was_killed(root: Path) -> None:
    with swarm_up(root, "--roles", "scout") as up:
        await until_served(root)
        async with opened(root) as swarm:
            await swarm.submit("before", role="predictor")
            async with swarm.parts.store.listen(queries.queued_tasks("predictor")) as batches:
                assert len(await anext(batches)) == 1
                await anyio.to_thread.run_sync(kill_all, up)
                assert await objectives(swarm) == ["before"]
                await swarm.submit("after", role="predictor")
                with anyio.fail_after(PATIENCE_SECONDS):
                    while len(await anext(batches)) != 2:
                        pass
            listed: Any = await anyio.to_thread.run_sync(ok, root, "tasks")
            assert {task["objective"] for task in listed} == {"before", "after"}
            work = (await swarm.submit("say hello", role="scout", skill="noop")).task
            with swarm_up(root, "--roles", "scout"):
                task = await swarm.wait(work, timeout_seconds=PATIENCE_SECONDS)
                assert task.status is TaskStatus.DONE
                assert "a fleet already works" not in (root / "up.log").read_text()
    listed = await anyio.to_thread.run_sync(ok, root, "tasks")
    assert sorted(task["objective"] for task in listed) == ["after", "before", "say hello"]


async def test_one_of_several_serves_when_the_server_was_killed(root: Path) -> None:
    with api_of(root) as (server, first), api_of(root) as (second, one), api_of(root) as (third, other):
        assert pid_of_server(root) == server.pid
        await submit_over(first, "before")
        waiting, clients = {second.pid: second, third.pid: third}, {second.pid: one, third.pid: other}
        expected = ["before"]
        while waiting:
            server.kill()
            server.wait()
            await until_served(root)
            for pid in waiting:
                await submit_over(clients[pid], f"with {len(waiting)}, over {pid}")
                expected.append(f"with {len(waiting)}, over {pid}")
            assert all(listed_over(clients[pid]) == sorted(expected) for pid in waiting)
            server = waiting.pop(pid_of_server(root))
        async with opened(root) as program:
            assert await objectives(program) == sorted(expected)
            server.kill()
            server.wait()
            assert await objectives(program) == sorted(expected)
            assert pid_of_server(root) == os.getpid()


async def test_program_takes_over_from_a_command_that_was_ended_and_hands_over_at_its_own_end(root: Path) -> None:
    async with AsyncExitStack() as stack:
        with api_of(root) as (process, _):
            program = await stack.enter_async_context(opened(root))
            await program.submit("one", role="scout")
            process.terminate()
            assert process.wait(PATIENCE_SECONDS) == 0
        assert await objectives(program) == ["one"]
        with api_of(root) as (_, client):
            await submit_over(client, "two")
            await stack.aclose()
            await until_served(root)
            await submit_over(client, "three")
            assert listed_over(client) == ["one", "three", "two"]


async def test_role_processes_go_on_when_the_server_beside_their_fleet_was_killed(root: Path) -> None:
    with api_of(root) as (process, client), swarm_up(root, "--roles", "scout") as up:
        body = {"objective": "say hello", "role": "scout", "skill": "noop"}
        sent = (await anyio.to_thread.run_sync(lambda: client.post("/v1/tasks", json=body))).raise_for_status().json()

        async def done() -> bool:
            path = f"/v1/tasks/{sent['task_id']}"
            return (await anyio.to_thread.run_sync(client.get, path)).json()["status"] == "done"

        await until(done, seconds=PATIENCE_SECONDS, what="the work of a role process")
        roles = role_processes(up)
        process.kill()
        process.wait()
        await until_served(root)
        assert pid_of_server(root) == up.pid
        work: Any = await anyio.to_thread.run_sync(
            ok, root, "submit", "say hello", "--role", "scout", "--skill", "noop"
        )
        async with opened(root) as swarm:
            task = await swarm.wait(work["task"]["task_id"], timeout_seconds=PATIENCE_SECONDS)
        assert task.status is TaskStatus.DONE and role_processes(up) == roles != []


async def test_pages_of_the_console_go_on_when_the_whole_fleet_was_killed(root: Path) -> None:
    with swarm_up(root, "--roles", "scout") as up:
        await until_served(root)
        await anyio.to_thread.run_sync(ok, root, "submit", "paint the boat", "--role", "predictor")
        with running(root, "console", "--port", "0") as console, httpx2.Client(follow_redirects=True) as browser:
            link = line_with(console, "console, a link").split()[-1]
            assert "paint the boat" in browser.get(link).text
            kill_all(up)
            tasks = link.partition("/enter")[0] + "/tasks"

            async def shown() -> bool:
                page = await anyio.to_thread.run_sync(lambda: browser.get(tasks, timeout=60))
                return page.status_code == 200 and "paint the boat" in page.text

            await until(shown, seconds=PATIENCE_SECONDS, what="the page of the tasks")
            assert pid_of_server(root) == console.pid


async def test_store_in_a_deep_folder_is_taken_over_at_the_same_address(root: Path) -> None:
    deep = root / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    async with AsyncExitStack() as stack:
        uri = await stack.enter_async_context(serving(load_settings(deep, environment={})))
        async with opened(deep) as first, opened(deep) as second:
            await first.submit("one", role="scout")
            await stack.aclose()
            assert await objectives(first) == await objectives(second) == ["one"]
            assert f"firelite://{read_endpoint(data_of(deep))}" == uri
    Path(uri.removeprefix("firelite://unix:")).parent.rmdir()


async def looks_without_a_server(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Awaitable[None]]:
    """Return what waits until a process that stands by has looked three times more and found no server."""
    looks: list[str | None] = []

    def look(path: str | Path) -> str | None:
        looks.append(read_endpoint(path))
        return looks[-1]

    monkeypatch.setattr(lockfile, "read_endpoint", look)

    async def wait() -> None:
        looks.clear()

        async def looked() -> bool:
            return looks[-3:] == [None] * 3

        await until(looked, seconds=PATIENCE_SECONDS, what="three looks")

    return wait


async def test_nobody_takes_a_file_over_whose_lock_somebody_deleted(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = await looks_without_a_server(monkeypatch)
    async with serving(load_settings(root, environment={})), opened(root) as swarm:
        await swarm.submit("one", role="scout")
        lock_path(data_of(root)).unlink()
        await wait()
        assert not lock_path(data_of(root)).exists()
        assert await objectives(swarm) == ["one"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
async def test_a_file_of_another_user_is_not_taken_over(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stands_by: list[str] = []

    async def stand_by(_: Settings, endpoint: str) -> None:
        stands_by.append(endpoint)

    monkeypatch.setattr(embedded_store, "_take_over", stand_by)
    async with serving(load_settings(root, environment={})):
        async with opened(root) as swarm:
            assert await objectives(swarm) == [] and len(stands_by) == 1
        os.chown(data_of(root), OTHER_USER, OTHER_USER)
        async with opened(root) as swarm:
            assert await objectives(swarm) == [] and len(stands_by) == 1


async def test_other_command_waits_for_no_server_that_was_killed(root: Path) -> None:
    with swarm_up(root, "--roles", "scout") as up:
        await until_served(root)
        async with opened(root) as swarm:
            await swarm.submit("one", role="predictor")
            kill_all(up)
            command: Any = await anyio.to_thread.run_sync(ok, root, "tasks")
            assert [task["objective"] for task in command] == ["one"] == await objectives(swarm)


async def test_store_that_cannot_be_opened_is_taken_over_once_it_can(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    indexes = root / "firestore.indexes.json"
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(serving(load_settings(root, environment={})))
        async with opened(root) as program:
            await program.submit("one", role="scout")
            indexes.write_text("no JSON")
            await stack.aclose()

            async def said() -> bool:
                return "store.db cannot be taken over: The index file" in caplog.text

            await until(said, seconds=PATIENCE_SECONDS, what="a warning")
            indexes.unlink()
            assert await objectives(program) == ["one"]


async def test_data_file_that_was_deleted_is_not_made_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bool] = []

    def look(path: Path) -> str | None:
        looks.append(data_of(root).exists())
        return read_endpoint(path)

    monkeypatch.setattr(lockfile, "read_endpoint", look)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(serving(load_settings(root, environment={})))
        async with opened(root) as program:
            await program.submit("one", role="scout")
            kept = data_of(root).rename(root / "kept.db")
            await stack.aclose()

            async def looked() -> bool:
                return looks[-3:] == [False] * 3

            await until(looked, seconds=PATIENCE_SECONDS, what="three looks without a file")
            kept.rename(data_of(root))
            assert await objectives(program) == ["one"]
