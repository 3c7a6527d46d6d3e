"""Dockerfile and compose.yaml without an engine: build steps in a clean folder, processes under bubblewrap.

The substitutions are listed in tests/support/image.py. Not covered: pulling base images, the engine's layers,
networks and volumes, and Docker's seccomp profile.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from typer.main import get_command

from firelite.__main__ import TOKEN, main
from fireswarm.cli.swarm.main import app as swarm_app
from fireswarm.swarm.roles.card import load_roles
from tests.support.image import SUBSTITUTES, USER, Image, Stage, exec_form, parse

ROOT = Path(__file__).parents[2]
STAGES = parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ROLES = {name: service for name, service in SERVICES.items() if name != "store"}
ENTRYPOINT = exec_form(STAGES[-1].last("ENTRYPOINT"))
COMMAND_SECONDS = 60

# ── contents of the files ─────────────────────────────────────────────────────────────────────────────


def test_dockerfile_has_two_slim_stages_and_ends_as_an_unprivileged_user() -> None:
    assert [stage.base for stage in STAGES] == ["python:3.12-slim"] * 2
    assert STAGES[-1].last("USER") == USER
    assert "0" not in USER.split(":")


def test_entrypoint_and_command_use_the_exec_form() -> None:
    command = exec_form(STAGES[-1].last("CMD"))
    assert (ENTRYPOINT, command) == (["swarm"], ["role", "scout"])


def parse_command(words: list[str]) -> Any:
    """Parse words as the swarm command does, without running anything; returns the parameters."""
    group: Any = get_command(swarm_app)
    with group.make_context("swarm", list(words)) as context:
        name, command, rest = group.resolve_command(context, words)
        return command.make_context(name, list(rest), parent=context).params


def test_compose_has_one_service_per_role_with_a_valid_command() -> None:
    assert set(ROLES) == set(load_roles(ROOT / "roles"))
    for name, service in ROLES.items():
        assert "entrypoint" not in service
        assert parse_command(service["command"])["name"] == name


def test_command_of_the_store_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    async def record(options: Any) -> None:
        given.append(options)

    monkeypatch.setattr("firelite.__main__._serve", record)
    for name, value in SERVICES["store"]["environment"].items():
        monkeypatch.setenv(name, value)
    assert TOKEN in SERVICES["store"]["environment"]
    assert SERVICES["store"]["entrypoint"] == ["firelite"]
    assert main(SERVICES["store"]["command"]) == 0
    assert (given[0].host, given[0].port) == ("0.0.0.0", 8080)
    assert ROLES["scout"]["environment"]["FIRESTORE_EMULATOR_HOST"] == "store:8080"


@pytest.mark.parametrize("name", list(SERVICES))
def test_service_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["tmpfs"] == ["/tmp"]
    assert service["cap_drop"] == ["ALL"]
    assert service["init"] is False
    assert service["stop_grace_period"] == "10s"
    assert "ports" not in service


def test_build_context_contains_only_the_paths_the_dockerfile_copies() -> None:
    copied = {word.removeprefix("./") for stage in STAGES for word in copied_from_context(stage)}
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {line[1:] for line in lines if line.startswith("!")} == copied


def copied_from_context(stage: Stage) -> list[str]:
    copies = [text.split() for keyword, text in stage.instructions if keyword == "COPY"]
    return [word for words in copies if not words[0].startswith("--") for word in words[:-1]]


# ── the built image and its processes ─────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The last stage of the Dockerfile, executed in a clean folder."""
    pytest.importorskip("ensurepip", reason="this Python cannot make the image's virtual environment")
    built = Image(ROOT, tmp_path_factory.mktemp("image") / "root")
    built.build(STAGES)
    return built


def can_confined() -> bool:
    """Return True if bubblewrap can start a process as PID 1 on a read-only file system."""
    if shutil.which("bwrap") is None or shutil.which("setpriv") is None:
        return False
    command = ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--as-pid-1", "true"]
    return subprocess.run(command, capture_output=True).returncode == 0


def visible(path: Path) -> list[str]:
    """Bind *path* read-only. Parent folders that other users may not enter are replaced by empty, enterable ones."""
    folders = [*reversed(path.parents)][1:]
    closed = next((folder for folder in folders if not folder.stat().st_mode & 0o001), None)
    empty = Path("/tmp") if path.is_relative_to("/tmp") else closed
    words = ["--tmpfs", str(closed)] if closed is not None and closed == empty else []
    for folder in folders if empty else ():
        if folder.is_relative_to(str(empty)) and folder != empty:
            words += ["--perms", "0755", "--dir", str(folder)]
    return [*words, "--ro-bind", str(path), str(path)]


class Containers:
    """Starts the processes of compose.yaml from the image: read-only but for /tmp and volumes, as the image's user."""

    def __init__(self, image: Image, folder: Path) -> None:
        self.image = image
        self.port = 8080
        volumes = [image.path("/data/store"), image.path("/data/blobs")]
        self._start = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        self._start += ["--perms", "1777", "--tmpfs", "/tmp", *visible(Path(sys.base_prefix))]
        self._start += visible(image.root)
        self._start += [word for volume in volumes for word in ("--bind", str(volume), str(volume))]
        self._start += ["--ro-bind", str(folder), str(image.path("/folder")), "--chdir", str(image.path("/app"))]
        self._start += ["--unshare-pid", "--as-pid-1", "--die-with-parent"]
        if os.geteuid() == 0:
            user, group = USER.split(":")
            setpriv = str(shutil.which("setpriv"))
            self._start += [setpriv, f"--reuid={user}", f"--regid={group}", "--clear-groups", "--bounding-set=-all"]
            self._start += ["--no-new-privs"]

    def here(self, word: str) -> str:
        """Translate a word of compose.yaml: paths of the image, the store's name and its port."""
        word = word.replace("store:8080", f"127.0.0.1:{self.port}").replace("0.0.0.0", "127.0.0.1")
        return self.image.translated(re.sub(r"\b8080\b", str(self.port), word))

    def environment(self, service: dict[str, Any]) -> dict[str, str]:
        given = {
            name: re.sub(r"\$\{\w+:-(.*)\}", r"\1", value) for name, value in service.get("environment", {}).items()
        }
        return {**self.image.environment, **{name: self.here(value) for name, value in given.items()}}

    @contextmanager
    def started(self, name: str) -> Generator[subprocess.Popen[str]]:
        """Run a service with its own command until the block ends."""
        service = SERVICES[name]
        words = [self.here(word) for word in (*service.get("entrypoint", ENTRYPOINT), *service["command"])]
        process = subprocess.Popen(
            [*self._start, *words],
            env=self.environment(service),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        watchdog = threading.Timer(COMMAND_SECONDS, kill, [process])
        watchdog.daemon = True
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            kill(process)
            process.communicate()

    def run(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run another command as `docker compose exec` would for this service."""
        return subprocess.run(
            [*self._start, *(self.here(word) for word in words)],
            env=self.environment(SERVICES[name]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )


def kill(container: subprocess.Popen[str]) -> None:
    """Kill PID 1 of a container, which ends all its processes, and bubblewrap itself."""
    if container.poll() is None:
        for process in [*psutil.Process(container.pid).children(), container]:
            process.kill()


def first_line(container: subprocess.Popen[str], words: str) -> str:
    """Wait for the first line with *words*; AssertionError with the output if it ends without one.

    On a busy machine, the watchdog may print stacks before: loading stalls the event loop.
    """
    assert container.stdout is not None
    told: list[str] = []
    for line in container.stdout:
        if words in line:
            return line
        told.append(line)
    raise AssertionError("".join(told))


def first_process(container: subprocess.Popen[str]) -> psutil.Process:
    """Return PID 1 of a container as this machine sees it."""
    [process] = psutil.Process(container.pid).children()
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert re.search(r"^NSpid:.*\t1$", status, re.M), status
    return process


def stopped(container: subprocess.Popen[str]) -> int:
    """Stop a container as Docker does: SIGTERM to PID 1, and no more than the grace period."""
    first_process(container).send_signal(signal.SIGTERM)
    return container.wait(timeout=float(SERVICES["scout"]["stop_grace_period"].removesuffix("s")))


def test_build_steps_install_the_package_without_development_packages(image: Image) -> None:
    assert set(image.substituted) == {reason for reason, _ in SUBSTITUTES.values()}
    python = image.path("/opt/fireswarm/bin/python")
    code = "import sys, fireswarm, importlib.util as u; print(fireswarm.__file__, u.find_spec('hypothesis'))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd=image.root, env={})
    file, absent = found.stdout.split()
    assert Path(file).is_relative_to(image.path("/opt/fireswarm/lib"))
    assert absent == "None"
    assert image.path("/app/.fireswarm").readlink() == Path("/tmp/fireswarm")


@pytest.fixture
def containers(image: Image, tmp_path: Path) -> Containers:
    if not can_confined():
        pytest.skip("bubblewrap or setpriv is missing or refused: no process can run on a read-only root here")
    tmp_path.chmod(0o755)
    (tmp_path / "garden.md").write_text("# Garden\n\n- [ ] water the basil\n")
    image.path("/folder").mkdir(exist_ok=True)
    return Containers(image, tmp_path)


def test_role_and_store_work_on_a_read_only_root_and_exit_with_zero_on_sigterm(containers: Containers) -> None:
    containers.port = 0
    with containers.started("store") as store:
        containers.port = int(json.loads(first_line(store, "endpoint"))["endpoint"].rpartition(":")[2])
        healthy = containers.run("store", *SERVICES["store"]["healthcheck"]["test"][1:])
        assert healthy.returncode == 0, healthy.stderr
        with containers.started("scout") as scout:
            first_line(scout, "works as role scout")
            if os.geteuid() == 0:
                assert first_process(scout).uids().real == int(USER.split(":")[0])
            words = (
                "submit",
                "Report on this folder",
                "--role",
                "scout",
                "--path",
                str(containers.image.path("/folder")),
            )
            done = containers.run("scout", *ENTRYPOINT, *words, "--wait")
            assert done.returncode == 0, done.stdout + done.stderr
            assert stopped(scout) == 0
        assert stopped(store) == 0
    [inventory] = containers.image.path("/data/blobs").rglob("inventory.json")
    assert [file["path"] for file in json.loads(inventory.read_bytes())["files"]] == ["garden.md"]


def test_process_in_a_container_cannot_write_outside_tmp_and_the_volumes(containers: Containers) -> None:
    for folder, writable in {"/app": False, "/opt/fireswarm": False, "/data/blobs": True}.items():
        file = str(containers.image.path(folder) / "probe")
        assert (containers.run("scout", "python", "-c", f"open({file!r}, 'w')").returncode == 0) is writable, folder
    assert containers.run("scout", "python", "-c", "open('/tmp/probe', 'w')").returncode == 0
