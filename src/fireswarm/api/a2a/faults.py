"""Errors of the protocol: our errors as a client of A2A gets them, without secrets."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator
from http import HTTPStatus

from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from fireswarm.api.problems import refusal_of
from fireswarm.errors import FireswarmError, TerminalTask
from fireswarm.redaction import Redactor

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def protocol_errors(redactor: Redactor) -> Generator[None]:
    """Raise errors of the block as errors of the protocol."""
    try:
        yield
    except A2AError as error:
        raise type(error)(redactor.clean(error.message), error.data) from error
    except FireswarmError as error:
        raise _convert(error, redactor) from error
    except Exception as error:  # the package would send the text of any exception to the client
        logger.exception("a request of an A2A client failed")
        raise InternalError("internal error; see the log of the server") from error


def _convert(error: FireswarmError, redactor: Redactor) -> A2AError:
    refusal = refusal_of(error, redactor)
    if isinstance(error, TerminalTask):
        return UnsupportedOperationError(refusal.detail)
    if refusal.status == HTTPStatus.NOT_FOUND:
        return TaskNotFoundError(refusal.detail)
    if refusal.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return InvalidParamsError(refusal.detail)
    return InternalError(refusal.detail)
