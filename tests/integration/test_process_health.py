"""A role process tells its orchestrator that it lives and works, and Prometheus its figures."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from fireswarm.api.routes.metrics import ProcessHealth
from fireswarm.client import Swarm
from fireswarm.errors import StoreUnavailable
from fireswarm.settings import load_settings
from fireswarm.swarm.opening.embedded_store import serving
from tests.support.fleet import environment, lay_out, until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig
from tests.support.working import with_skills, working

pytestmark = pytest.mark.anyio


def client_of(health: ProcessHealth) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(health.make_application()), base_url="http://localhost")


async def test_process_is_ready_while_it_works_and_reads_the_store(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = ProcessHealth(swarm.store)
    async with client_of(health) as client:
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/readyz")).status_code == 503
        async with working(with_skills(swarm)) as worker:
            health.worker = worker
            assert (await client.get("/readyz")).status_code == 200
            health.kept.forget()

            async def fail(*_: object) -> None:
                raise StoreUnavailable("away")

            with monkeypatch.context() as away:
                away.setattr(type(swarm.store), "query", fail)
                assert (await client.get("/readyz")).status_code == 503
            health.kept.forget()
            assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/readyz")).status_code == 503, "it has drained"
        assert (await client.get("/healthz")).status_code == 200


async def test_role_process_serves_its_figures(tmp_path: Path) -> None:
    lay_out(tmp_path, {}, settings={})
    async with serving(load_settings(tmp_path)) as store:
        command = [sys.executable, "-m", "fireswarm.cli", "role", "scout", "--health-port", "0", "--store", store]
        async with await anyio.open_process(command, cwd=tmp_path, env=environment(), stdout=None) as process:
            try:
                await use_process(process, tmp_path, store)
            finally:
                if process.returncode is None:
                    process.kill()


async def use_process(process: Process, root: Path, store: str) -> None:
    """Ask the process for its health, give it a task, read its figures, and stop it."""
    assert process.stderr is not None
    said = ""
    with anyio.fail_after(PATIENCE_SECONDS):
        async for piece in TextReceiveStream(process.stderr):
            said += piece
            if "/healthz" in said:
                break
    address = said.partition("health on ")[2].partition("/healthz")[0]
    async with httpx2.AsyncClient(base_url=address, timeout=PATIENCE_SECONDS) as client:

        async def is_ready() -> bool:
            return (await client.get("/readyz")).status_code == 200

        await until(is_ready, seconds=PATIENCE_SECONDS, what="being ready")
        async with Swarm.open(store, root=root) as swarm:
            await swarm.run("do nothing", role="scout", skill="noop", timeout_seconds=PATIENCE_SECONDS)
        figures = (await client.get("/metrics")).text
    assert "fireswarm_process_turns_total 1.0" in figures
    assert 'fireswarm_process_claims_total{result="won"} 1.0' in figures
    assert 'fireswarm_process_store_operations_total{kind="reads"}' in figures
    process.send_signal(signal.SIGTERM)
    with anyio.fail_after(PATIENCE_SECONDS):
        assert await process.wait() == 0
