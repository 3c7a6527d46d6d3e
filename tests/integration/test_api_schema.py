"""schemathesis tests a ``swarm api`` process against its OpenAPI document."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx2

from tests.support.fleet import environment, lay_out

TOKEN = "a-token-for-schemathesis"
SEED = "20261122"
EXAMPLES = "3"
"""Per operation, besides one for each boundary of its schema: some 1,200 requests, 15 to 25 s on two busy cores."""

NOT_CHECKED = "positive_data_acceptance"
"""A schema cannot say which roles, skills and cursors there are, so data that fits it may be refused."""


def test_api_conforms_to_its_openapi_document(tmp_path: Path) -> None:
    lay_out(tmp_path, {"nothing": ""}, settings={"store": {"uri": "memory"}})
    env = environment() | {"FIRESWARM_API_TOKEN": TOKEN, "COLUMNS": "160"}
    log = tmp_path / "api.log"
    command = [sys.executable, "-m", "fireswarm.cli", "api", "--port", "0"]
    with (
        log.open("w") as errors,
        subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=errors, text=True) as api,
    ):
        try:
            assert api.stdout is not None
            url = api.stdout.readline().split()[2].removesuffix("/v1,")
            done = fuzz(url, tmp_path)
            print(f"seed {SEED}", done.stdout[-8_000:], done.stderr[-2_000:])
            assert httpx2.get(f"{url}/v1/status").status_code == 401  # the process is still running
        finally:
            api.kill()
    assert done.returncode == 0
    assert "Traceback" not in log.read_text()


def fuzz(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run schemathesis; the stream of events never ends, so it is left out, and no request waits for a task."""
    (folder / "schemathesis.toml").write_text('[parameters]\n"query.wait" = 0\n')
    arguments = [
        *("--header", f"Authorization: Bearer {TOKEN}"),
        *("--seed", SEED),
        *("--max-examples", EXAMPLES),
        *("--exclude-path", "/v1/events"),
        *("--exclude-checks", NOT_CHECKED),
        *("--generation-database", "none"),
        *("--request-timeout", "10"),
        *("--workers", "1"),
        "--no-color",
    ]
    program = Path(sys.executable).parent / "schemathesis"
    command = [str(program), "run", f"{url}/openapi.json", *arguments]
    return subprocess.run(command, cwd=folder, env=os.environ | {"NO_PROXY": "*"}, capture_output=True, text=True)
