"""Send a notice once: to a webhook, signed as Standard Webhooks describe it, or to a command."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import tempfile
from datetime import datetime
from pathlib import Path

import anyio
import httpx2
from anyio import to_thread

from fireswarm.contracts.limits import truncate
from fireswarm.errors import ConfigError
from fireswarm.processes.confinement.process_limits import ProcessLimits
from fireswarm.processes.output import OutputTail
from fireswarm.processes.run import CannotStart, Confined, Program
from fireswarm.settings.swarm import ReceiverSettings
from fireswarm.swarm.notices.notice import Notice, body_of

MAX_OUTPUT_BYTES = 4_000
"""Output of a command that is kept, for the reason why it failed."""


class NotSent(Exception):
    """A delivery failed; the message is the reason."""


async def send(notice: Notice, receiver: ReceiverSettings, now: datetime, folder: Path) -> None:
    """Deliver a notice. Raises NotSent, also after the time limit."""
    body = json.dumps(body_of(notice, receiver), ensure_ascii=False).encode()
    if receiver.command:
        await to_thread.run_sync(_run, receiver, body, folder, abandon_on_cancel=False)
    else:
        await _post(notice, receiver, now, body)


async def _post(notice: Notice, receiver: ReceiverSettings, now: datetime, body: bytes) -> None:
    headers = {"content-type": "application/json", "user-agent": "fireswarm"}
    if receiver.format == "standard":
        headers |= sign(notice.notice_id, now, body, os.environ.get(receiver.secret_env, ""))
    try:
        with anyio.fail_after(receiver.timeout_seconds):
            async with (
                httpx2.AsyncClient(timeout=receiver.timeout_seconds, follow_redirects=False) as http,
                http.stream("POST", receiver.find_address(), content=body, headers=headers) as answer,
            ):
                status = answer.status_code
    except TimeoutError:
        raise NotSent(f"no answer within {receiver.timeout_seconds:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ConfigError, OSError) as error:
        raise NotSent(str(error) or type(error).__name__) from error
    if not 200 <= status < 300:
        raise NotSent(f"the receiver answered with status {status}")


def sign(notice_id: str, now: datetime, body: bytes, secret: str) -> dict[str, str]:
    """Return the headers of Standard Webhooks; without a *secret*, those of no signature.

    A secret that begins with ``whsec_`` is base64, as that specification has it; any other is taken as it is.
    """
    sent_at = str(int(now.timestamp()))
    headers = {"webhook-id": notice_id, "webhook-timestamp": sent_at}
    if secret:
        key = base64.b64decode(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()
        signed = hmac.new(key, f"{notice_id}.{sent_at}.".encode() + body, hashlib.sha256).digest()
        headers["webhook-signature"] = f"v1,{base64.b64encode(signed).decode()}"
    return headers


def _run(receiver: ReceiverSettings, body: bytes, folder: Path) -> None:
    """Run the command with the body on its standard input. Raises NotSent."""
    output = OutputTail(MAX_OUTPUT_BYTES)
    with tempfile.TemporaryFile() as file:
        file.write(body)
        file.seek(0)
        program = Program(receiver.command, folder, stdin=file.fileno())
        try:
            ended = Confined.start(program, None, ProcessLimits(), output).wait(receiver.timeout_seconds)
        except CannotStart as error:
            raise NotSent(str(error)) from error
    if ended.timed_out:
        raise NotSent(f"{receiver.command[0]} did not end within {receiver.timeout_seconds:g} s")
    if ended.code != 0:
        raise NotSent(truncate(f"{receiver.command[0]} ended with {ended.code}: {output.text().strip()}", 300))
