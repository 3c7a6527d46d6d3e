"""``/v1/mail``: handoff envelopes and messages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from fireswarm.api.models.records import MessageOut, MessagePage
from fireswarm.api.models.work import TASK_ID
from fireswarm.api.paging import DEFAULT_LIMIT, Cursor, Limit, read_page
from fireswarm.api.session import CurrentSession, InPath
from fireswarm.contracts.swarm.envelope import MailStatus
from fireswarm.storage.documents.paths import MAILBOX, message_path
from fireswarm.swarm.records.mailbox import parse_message

router = APIRouter(prefix="/v1/mail", tags=["mail"])


@router.get("", response_model=MessagePage)
async def list_mail(
    given: CurrentSession,
    to: Annotated[
        str | None, Query(max_length=200, description="filter by receiving role or agent", examples=["scout"])
    ] = None,
    task: Annotated[str | None, Query(max_length=200, description="filter by task id", examples=[TASK_ID])] = None,
    status: Annotated[MailStatus | None, Query(description="filter by status", examples=["new"])] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Any:
    """List messages, newest first."""
    filters = {"to_agent_id": to, "task_id": task, "status": status}
    page = await read_page(given.swarm, MAILBOX, "created_at", parse_message, limit=limit, cursor=cursor, **filters)
    return MessagePage.model_validate(page.fields())


@router.get("/{message_id}", response_model=MessageOut)
async def get_mail(given: CurrentSession, message_id: InPath) -> Any:
    """Show one message."""
    snapshot = given.own_document(await given.swarm.parts.store.get(message_path(message_id)), "message")
    return MessageOut.model_validate(parse_message(snapshot))
