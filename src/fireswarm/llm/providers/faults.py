"""Map errors of the providers to ours, and name the cause of a failed connection. Shared by the adapters."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import ssl
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

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
    """Return the error for a connection that failed, broke or timed out, with the cause if it is known."""
    if cause := cause_of(error):
        return ModelUnavailable(f"{provider} is unreachable: {truncate(cause, MAX_DETAIL_CHARS)}")
    message = str(error) or type(error).__name__
    return ModelUnavailable(
        f"{provider} is unreachable, or its response was interrupted: {truncate(message, MAX_DETAIL_CHARS)}"
    )


def cause_of(error: BaseException) -> str:
    """Return why a connection failed, and what to do, or "" if the exceptions below *error* do not say it."""
    below = list(_below(error))
    target = next((url for each in below if (url := _url_of(each))), "")
    variable, proxy = _proxy_for(target)
    server = f"the proxy {proxy} of {variable}" if proxy else urlsplit(target).netloc.rpartition("@")[2] or "the server"
    advice = f"check {variable}, or name the server in NO_PROXY" if proxy else "check base_url and the network"
    for each in below:
        if "Proxy" in type(each).__name__ and (answer := re.search(r"\b[45]\d\d\b", str(each))):
            return _refusal_of_proxy(answer[0], server, variable)
    for each in below:
        if isinstance(each, ssl.SSLError):
            return _tls_fault(each, urlsplit(target).hostname or "the server", server, variable)
        if isinstance(each, socket.gaierror):
            return f"the name of {server} cannot be resolved: {advice}"
        if isinstance(each, ConnectionRefusedError):
            return f"{server} refused the connection, nothing listens there: {advice}"
        if isinstance(each, TimeoutError) or type(each).__name__ in _TIMEOUTS:
            return f"{server} did not answer in time: {advice}"
        if isinstance(each, OSError) and each.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
            return f"there is no route to {server}: {advice}"
    return ""


_TIMEOUTS = ("ConnectTimeout", "ReadTimeout", "WriteTimeout", "PoolTimeout", "APITimeoutError")
"""Names of the exceptions of HTTP clients for a time limit."""

_NOT_TRUSTED = (18, 19, 20, 21)
"""OpenSSL's codes of a certificate that is self-signed, or whose issuer is not known here."""

_EXPIRED = (9, 10)
"""OpenSSL's codes of a certificate that is not valid yet, or no longer."""


def _below(error: BaseException) -> Iterator[BaseException]:
    """Yield *error* and the exceptions from which it was raised, those of groups and of HTTP libraries included."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        inner = [each.__cause__, each.__context__, getattr(each, "reason", None), *each.args]
        inner += each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        waiting += [item for item in inner if isinstance(item, BaseException)]


def _url_of(error: BaseException) -> str:
    """Return the address of the failed request, if the exception of an HTTP client has it."""
    with contextlib.suppress(RuntimeError, AttributeError):  # httpx raises RuntimeError for an error without a request
        return str(getattr(error, "request").url)  # noqa: B009 - the types of several libraries
    return ""


def _proxy_for(url: str) -> tuple[str, str]:
    """Return the variable that names a proxy for *url*, and the proxy's host and port without its user and password."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return "", ""
    for name in (f"{parts.scheme}_proxy", "all_proxy"):
        for variable in (name, name.upper()):
            if value := os.environ.get(variable):
                place = urlsplit(value if "://" in value else f"http://{value}").netloc.rpartition("@")[2]
                return variable, place
    return "", ""


def _refusal_of_proxy(status: str, server: str, variable: str) -> str:
    if status == "407":
        return f"{server} wants a user and a password (407): put both before its address in {variable}"
    return f"{server} refused the connection ({status}): ask who runs the proxy to allow this server, or use NO_PROXY"


def _tls_fault(error: ssl.SSLError, host: str, server: str, variable: str) -> str:
    """Return why no secure connection was made."""
    code = getattr(error, "verify_code", 0)
    if code in _EXPIRED:
        return f"the certificate of {host} is not valid now, it has expired or is not valid yet: check the clock here"
    if code in _NOT_TRUSTED:
        why = getattr(error, "verify_message", "")
        return (
            f"the certificate of {host} is not trusted ({why}): if a proxy or gateway of your organization opens the "
            f"connections, set SSL_CERT_FILE to a file with its CA certificate"
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of {host} is not accepted: {error.verify_message}"
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"):
        where = f"{variable} and " if variable else ""
        return f"{server} does not speak TLS on this port: check the scheme, http or https, in {where}base_url"
    return f"no secure connection to {server}: {error.reason or error}"


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


def check_vectors(provider: str, texts: int, vectors: Sequence[tuple[float, ...]], dimensions: int) -> None:
    """Raise ModelUnavailable if an answer has not one vector of the size *dimensions* for each text; 0 is any size."""
    if len(vectors) != texts:
        raise unreachable(provider, ValueError(f"{texts} texts were sent, {len(vectors)} vectors came back"))
    for each in vectors:
        if dimensions and len(each) != dimensions:
            fault = f"the vectors have {len(each)} numbers, and {dimensions} were asked for: choose another model"
            raise unreachable(provider, ValueError(fault))
