"""sandbox: run a model's code without network and without access to files outside one folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread

from fireswarm.capabilities.capability import Capability, CapabilityContext, tool
from fireswarm.capabilities.code_run import CodeRun, SandboxLimits, list_files
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import InvalidInput

MAX_CODE_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class Execution:
    """The tool, on one folder that persists between calls."""

    folder: Path
    limits: SandboxLimits

    async def execute_code(
        self,
        code: str,
        language: Literal["python", "shell"] = "python",
        stdin: str = "",
        timeout_seconds: float | None = None,
    ) -> dict[str, Any]:
        """Runs code in a sandbox without network.

        Files in the current folder persist for the next call. Print the results that you need.
        """
        if len(code) > MAX_CODE_CHARS:
            raise InvalidInput(f"the code has {len(code):,} characters; at most {MAX_CODE_CHARS:,} are allowed")
        limits = self.limits
        if timeout_seconds is not None:
            if not 0 < timeout_seconds <= limits.timeout_seconds:
                raise InvalidInput(f"timeout_seconds must be greater than 0 and at most {limits.timeout_seconds:g}")
            limits = limits.model_copy(update={"timeout_seconds": timeout_seconds})
        result = await CodeRun(language, code, self.folder, limits, stdin).run()
        files, total = await anyio.to_thread.run_sync(list_files, self.folder)
        return result | {"files": files, "file_count": total}


@asynccontextmanager
async def _open(config: SandboxLimits, context: CapabilityContext) -> AsyncGenerator[Sequence[Tool]]:
    folder = Path(await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="fireswarm-sandbox-")))
    try:
        yield [tool(Execution(folder, config).execute_code)]
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


SANDBOX = Capability(
    "sandbox",
    "Sandbox",
    "Runs Python or shell code in a sandbox: no network, only its own files, limited resources.",
    opens=_open,
    system_prompt="You can execute code in a sandboxed environment. Use the execute_code tool to run code safely.",
    config=SandboxLimits,
    operator_keys=tuple(SandboxLimits.model_fields),
    icon="box",
    category="Execution",
)
