"""The tools and resources of the MCP server. The texts of tools are read by models."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from fireswarm.client import Swarm
from fireswarm.contracts.swarm.agent import DEFAULT_ROLE
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import FireswarmError, InvalidInput, NotFound
from fireswarm.redaction import Redactor
from fireswarm.settings.packaged import __version__
from fireswarm.swarm.records.artifacts import find_numbered, name_of, read_answer, read_content

MAX_WAIT_SECONDS = 300.0
"""Longest wait of one call: clients give a call up after some minutes."""

MAX_LISTED, MAX_FILE_BYTES = 50, 10_000_000

INSTRUCTIONS = (
    "A swarm of agents that works on objectives, also after this connection has ended. Submit an objective, wait for "
    "its task, and read its answer and files. A task that is blocked says why, and what continues it."
)

LOOKS = ToolAnnotations(read_only_hint=True)
Tool = Callable[..., Awaitable[Any]]
TaskId = Annotated[str, Field(description="id of the task")]


@dataclass(frozen=True, slots=True)
class SwarmTools:
    """What a client can do. Its own approvals are allowed only with *approves*: a model then decides for a person."""

    swarm: Swarm
    redactor: Redactor
    approves: bool = False

    def make_server(self) -> MCPServer[Any]:
        """Return the server with its tools and resources."""
        server = MCPServer[Any]("fireswarm", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
        looks: list[Tool] = [self.get_task, self.list_tasks, self.wait_for_task]
        acts: list[Tool] = [self.submit_objective, self.answer_questions, self.say_to_task]
        acts += [self.cancel_task, self.retry_task, *((self.approve_action, self.deny_action) if self.approves else ())]
        for look in looks:
            server.add_tool(self._reporting(look), annotations=LOOKS)
        for act in acts:
            server.add_tool(self._reporting(act))
        server.resource("fireswarm://tasks/{task_id}/files/{number}", name="file of a task")(self.read_file)
        return server

    async def submit_objective(
        self,
        objective: Annotated[str, Field(description="what is to be done")],
        role: Annotated[str, Field(description="role that begins; the architect plans and hands on")] = DEFAULT_ROLE,
        path: Annotated[str, Field(description="folder to work in, on the machine of the roles")] = "",
        expected_outcome: Annotated[str, Field(description="what a good result has")] = "",
    ) -> dict[str, Any]:
        """Submit an objective. The same objective in the same folder is the same task; it is not done twice."""
        context: dict[str, Any] = {}
        if path:
            if not await anyio.Path(path).is_dir():
                raise InvalidInput(f"the folder {path} does not exist")
            context["path"] = str(await anyio.Path(path).resolve())
        more: dict[str, Any] = {"expected_outcome": expected_outcome} if expected_outcome else {}
        submitted = await self.swarm.submit(objective, role=role, context=context, created_by="mcp", **more)
        return {"created": submitted.created, **await self._describe(submitted.task)}

    async def wait_for_task(
        self,
        task_id: TaskId,
        seconds: Annotated[float, Field(gt=0, le=MAX_WAIT_SECONDS, description="longest wait")] = 60.0,
    ) -> dict[str, Any]:
        """Wait until a task ends or needs a person, at most some seconds, and describe it. Call it again to go on."""
        task = await self._read(task_id)
        try:
            task = await self.swarm.wait(task, timeout_seconds=seconds)
        except TimeoutError:
            task = await self._read(task_id)
        return await self._describe(task)

    async def get_task(self, task_id: TaskId) -> dict[str, Any]:
        """Describe a task: status, why it does not move, open questions, answer, files, and the tasks of its plan."""
        return await self._describe(await self._read(task_id))

    async def list_tasks(
        self,
        status: Annotated[str, Field(description="queued, in_progress, blocked, done or canceled; empty: any")] = "",
        limit: Annotated[int, Field(ge=1, le=MAX_LISTED)] = 20,
    ) -> list[dict[str, Any]]:
        """List tasks of this session, most recently changed first."""
        found = await self.swarm.tasks(status=status or None, session=self.swarm.session, limit=limit)
        return [self._clean(_summarize(task)) for task in found]

    async def answer_questions(
        self,
        task_id: TaskId,
        answers: Annotated[dict[str, Any], Field(description="answers by the names of the open questions")],
    ) -> dict[str, Any]:
        """Answer the open questions of a task; it goes on. Requests for approval are not answered by this."""
        task = await self._read_for_answers(task_id)
        return await self._describe(await self.swarm.answer(task, answers))

    async def _read_for_answers(self, task_id: str) -> Task:
        """Read a task. Raises InvalidInput for one that asks for an approval: a person decides on that."""
        task = await self._read(task_id)
        if not self.approves and any(question.approval is not None for question in task.questions):
            raise InvalidInput(
                f"task {task_id} asks for an approval, which a person gives: in the console, or with `swarm approve`"
            )
        return task

    async def say_to_task(self, task_id: TaskId, text: str) -> dict[str, Any]:
        """Say something to the model of a task. A finished objective gets a follow-up task, which is returned."""
        return await self._describe(await self.swarm.say(await self._read(task_id), text))

    async def cancel_task(self, task_id: TaskId, reason: str = "by an MCP client") -> dict[str, Any]:
        """Cancel a task and all tasks below it, for good."""
        await self.swarm.cancel(await self._read(task_id), reason)
        return await self._describe(await self._read(task_id))

    async def retry_task(self, task_id: TaskId) -> dict[str, Any]:
        """Queue a task that gave up again."""
        return await self._describe(await self.swarm.retry(await self._read(task_id)))

    async def approve_action(
        self, task_id: TaskId, question: Annotated[str, Field(description="key of the request")]
    ) -> dict[str, Any]:
        """Allow the action that a task asks for, once."""
        return await self._describe(await self.swarm.approve(await self._read(task_id), question))

    async def deny_action(
        self, task_id: TaskId, question: Annotated[str, Field(description="key of the request")], reason: str = ""
    ) -> dict[str, Any]:
        """Refuse the action that a task asks for; its model is told the reason."""
        return await self._describe(await self.swarm.deny(await self._read(task_id), question, reason=reason))

    async def read_file(self, task_id: str, number: str) -> str | bytes:
        """Return a file of a task: text as a text, other content as bytes."""
        try:
            task = await self._read(task_id)
            artifact = find_numbered(task, number, self.swarm.parts.blobs)
            content = await read_content(self.swarm.parts.blobs, artifact, MAX_FILE_BYTES)
        except FireswarmError as error:
            raise ResourceError(self.redactor.clean(str(error))) from error
        try:
            return self.redactor.clean(content.data.decode())
        except UnicodeDecodeError:
            return content.data

    async def _read(self, task_id: str) -> Task:
        """Return a task of the session. Raises NotFound for any other."""
        task = await self.swarm.get(task_id)
        if task.session_hash != self.swarm.session:
            raise NotFound(f"there is no task {task_id}: list_tasks lists the tasks")
        return task

    async def _describe(self, task: Task) -> dict[str, Any]:
        """Return a task as a model reads it."""
        tree = await self.swarm.objective(task)
        artifacts = task.result.artifacts if task.result is not None else ()
        told: dict[str, Any] = {
            **_summarize(task),
            "why": await self.swarm.explain(task),
            "answer": await read_answer(self.swarm.parts.blobs, task),
            "questions": [
                {
                    "key": question.key,
                    "name": question.name,
                    "text": question.description,
                    "type": question.type,
                    "choices": [*question.choices],
                    "approval": None if question.approval is None else question.approval.shown,
                }
                for question in task.questions
            ],
            "files": [
                {"name": name_of(each), "uri": f"fireswarm://tasks/{task.task_id}/files/{number}"}
                for number, each in enumerate(artifacts)
            ],
            "tasks": [_summarize(each) for each in tree[:MAX_LISTED] if each.task_id != task.task_id],
        }
        return self._clean(told)

    def _clean(self, told: dict[str, Any]) -> dict[str, Any]:
        return dict(self.redactor.value(told))

    def _reporting(self, tool: Tool) -> Tool:
        """Return a tool whose known errors are told to the client's model."""

        @functools.wraps(tool)
        async def call(*given: Any, **more: Any) -> Any:
            try:
                return await tool(*given, **more)
            except FireswarmError as error:
                raise ToolError(self.redactor.clean(str(error))) from error

        return call


def _summarize(task: Task) -> dict[str, Any]:
    return {
        "task_id": task.task_id,
        "objective": task.objective,
        "role": task.assigned_to,
        "status": task.status.value,
        "reason": task.status_reason.value if task.status_reason else "",
        "summary": task.summary,
    }
