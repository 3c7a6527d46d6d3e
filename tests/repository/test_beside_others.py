"""fireswarm can be installed beside the libraries that people use with it: a resolver finds versions for both."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OTHERS = ["google-adk>=2", "langchain-google-genai>=4", "pydantic-ai>=2"]
NO_INDEX = ("dns error", "failed to fetch", "connection refused", "timed out", "no route to host", "network")


def needs() -> list[str]:
    """What fireswarm and firelite need, without each other."""
    files = [ROOT / "pyproject.toml", ROOT / "packages" / "firelite" / "pyproject.toml"]
    found = [line for file in files for line in tomllib.loads(file.read_text())["project"]["dependencies"]]
    return [line for line in found if not line.startswith("firelite")]


@pytest.mark.parametrize("other", OTHERS)
def test_a_resolver_finds_versions_for_both(other: str, tmp_path: Path) -> None:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv on the PATH")
    wanted = tmp_path / "wanted.in"
    wanted.write_text("\n".join([*needs(), other]))
    command = [uv, "pip", "compile", "--quiet", "--python-version", "3.12", str(wanted)]
    resolved = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    if resolved.returncode and any(word in resolved.stderr.lower() for word in NO_INDEX):
        pytest.skip("needs a package index")
    assert resolved.returncode == 0, resolved.stderr
