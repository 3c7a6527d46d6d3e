"""Map errors of the providers to ours. Shared by the adapters; pure."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Generator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from fireswarm.contracts.base import as_utc
from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.contracts.llm.chat import TokenUsage
from fireswarm.errors import ModelError, ModelRejected, ModelUnavailable, PromptTooLong

TRANSIENT = frozenset({408, 409, 429, 529})
"""Statuses that may succeed on a retry, in addition to all 5xx."""

_TOO_LONG = re.compile(
    r"(?i)(?:prompt|input|request) (?:is|was) too (?:long|large)|context.?(?:length|window|limit)|maximum context"
    r"|input token count|too many (?:input )?tokens|maximum (?:number of tokens|prompt length)"
    r"|payload size exceeds|exceeds? the (?:maximum|model'?s?) (?:size|context|number of tokens)"
)
"""What providers say of a prompt that is too long.

Anthropic: "prompt is too long: 201000 tokens > 200000 maximum", "input length and `max_tokens` exceed context limit".
Gemini: "The input token count (1048577) exceeds the maximum number of tokens allowed", "The request payload size
exceeds the limit". OpenAI: "This model's maximum context length is ...". Bedrock: "Input is too long for the model".
"""

MAX_RETRY_AFTER_SECONDS = 7 * 86_400.0
"""Maximum delay that is accepted from a provider.

A run that has to pause for more than ``retry_max_delay_seconds`` ends as blocked.
"""

MISSHAPEN = (AttributeError, TypeError, ValueError, KeyError, IndexError, RecursionError)
"""Exceptions of the SDKs and of our parsing for a body that is not a valid answer, although it may be JSON or HTML."""


@contextlib.contextmanager
def telling_broken(
    on_broken: Callable[[TokenUsage], None] | None, billed: Callable[[], TokenUsage | None]
) -> Generator[None]:
    """Call *on_broken* with the billed usage if the block raises an error; *billed* is None before an answer."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(*MISSHAPEN):  # the pieces so far may not form a valid answer
            if on_broken is not None and (usage := billed()) is not None:
                on_broken(usage)
        raise


def from_status(
    provider: str,
    status: int,
    message: str,
    headers: Mapping[str, str] | None = None,
    advice: Mapping[int, str] | None = None,
) -> ModelError:
    """Return the error for an HTTP status; *advice* precedes the usual advice."""
    said = f"{provider} answered {status}: {truncate(message.strip(), MAX_DETAIL_CHARS) or 'no message'}"
    if status in TRANSIENT or status >= 500:
        return ModelUnavailable(said, status=status, retry_after=retry_after(headers or {}))
    hints = {
        400: "the request is not valid for this model: check model.name and the provider's options",
        401: "the API key is not valid: check the variable named by api_key_env",
        402: "the account cannot be billed: check it with the provider",
        403: "the API key has no access to this model",
        404: "no such model or address: check model.name and base_url",
        **(advice or {}),
    }
    hint = hints.get(status, "the request was rejected; repeating it will not help")
    if status == 413 or (status in (400, 422) and _TOO_LONG.search(message)):
        return PromptTooLong(
            f"{said} (the prompt is too long for the model: lower model.max_context_tokens)", status=status
        )
    return ModelRejected(f"{said} ({hint})", status=status)


def unreachable(provider: str, error: Exception) -> ModelUnavailable:
    """Return the error for a connection that failed, broke or timed out."""
    message = str(error) or type(error).__name__
    return ModelUnavailable(
        f"{provider} is unreachable, or its response was interrupted: {truncate(message, MAX_DETAIL_CHARS)}"
    )


def misshapen(provider: str, error: Exception) -> ModelUnavailable:
    """Return the error for a malformed answer, such as the error page of a gateway."""
    return ModelUnavailable(
        truncate(f"{provider} returned a malformed response: {type(error).__name__}: {error}", MAX_DETAIL_CHARS)
    )


def bad_options(provider: str, error: Exception) -> ModelRejected:
    """Return the error for options that the provider's SDK rejects."""
    return ModelRejected(truncate(f"model.providers.{provider}.options are not accepted: {error}", MAX_DETAIL_CHARS))


def cut_short(provider: str) -> ModelUnavailable:
    """Return the error for a stream that ended before the answer was complete."""
    return ModelUnavailable(f"{provider}: the response was interrupted")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the requested delay in seconds, from ``retry-after-ms`` or ``retry-after`` (seconds or a date)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _clamp(milliseconds / 1_000)
    header = headers.get("retry-after")
    seconds = _number(header)
    if seconds is not None:
        return _clamp(seconds)
    if not header:
        return None
    try:
        when = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    return _clamp((as_utc(when) - datetime.now(UTC)).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text else None
    except ValueError:
        return None
    return number if number is None or number == number else None


def _clamp(seconds: float) -> float:
    return min(max(0.0, seconds), MAX_RETRY_AFTER_SECONDS)
