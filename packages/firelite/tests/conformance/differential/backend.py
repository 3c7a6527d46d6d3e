"""Send the steps of a case to a server and collect its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc
import grpc.aio

from conformance.differential.answers import Answer
from conformance.differential.steps import Step
from conformance.differential.values import PROJECT
from conformance.differential.writes import CURRENT, STALE
from firelite.documents.protos import MessagePb, TimestampPb
from firelite.wire.methods import METHODS

ADMIN = (("authorization", "Bearer owner"),)
"""Google's emulator answers administrative calls only with this header."""
BLOCKED_SECONDS = 0.15
"""A transaction's request without an answer for so long waits for a lock, and the next step begins."""
STUCK_SECONDS = 60.0


class Backend:
    """One server. Every run of a case uses a project that has not been used before."""

    def __init__(self, endpoint: str) -> None:
        self._channel = grpc.aio.insecure_channel(endpoint)
        self._methods = {method.rpc: method for method in METHODS}
        self._placeholder = PROJECT.encode()

    async def close(self) -> None:
        await self._channel.close()

    async def run(self, steps: Sequence[Step], project: str) -> list[Answer]:
        """Return one answer per step."""
        run = _Run(self, project)
        tasks = [await run.start(step) for step in steps]
        return list(await asyncio.gather(*tasks))

    async def send(self, step: Step, request: MessagePb, project: str) -> Answer:
        """Send a request in which *project* replaces the placeholder."""
        method = self._methods[step.rpc]
        name = project.encode()
        assert len(name) == len(self._placeholder)  # the serialized messages stay valid

        def serialize(message: MessagePb) -> bytes:
            return message.SerializeToString().replace(self._placeholder, name)

        def deserialize(data: bytes) -> MessagePb:
            return method.response.pb().FromString(data.replace(name, self._placeholder))

        options: Any = {"request_serializer": serialize, "response_deserializer": deserialize}
        path = f"/google.firestore.v1.Firestore/{step.rpc}"
        try:
            if method.streams_responses:
                call: Any = self._channel.unary_stream(path, **options)(request, metadata=ADMIN, timeout=STUCK_SECONDS)
                return Answer("OK", tuple([message async for message in call]))
            unary: Any = self._channel.unary_unary(path, **options)
            return Answer("OK", (await unary(request, metadata=ADMIN, timeout=STUCK_SECONDS),))
        except grpc.aio.AioRpcError as error:
            return Answer(error.code().name, (), error.details() or "")


class _Run:
    """The state of one run: open transactions and the last update time of each document."""

    def __init__(self, backend: Backend, project: str) -> None:
        self._backend = backend
        self._project = project
        self._transactions: dict[str, bytes] = {}
        self._update_times: dict[str, TimestampPb] = {}
        self._last: dict[str, asyncio.Task[Answer]] = {}

    async def start(self, step: Step) -> asyncio.Task[Answer]:
        """Start a step after the actor's previous one. Return when it ends or waits for a lock.

        A read outside the transactions starts after all earlier steps.
        """
        if not step.actor and step.rpc != "Commit" and self._last:
            await asyncio.wait(self._last.values())
        task = asyncio.create_task(self._send(step, self._last.get(step.actor)))
        self._last[step.actor] = task
        running = any(not other.done() for other in self._last.values())
        contended = bool(self._transactions) and running
        await asyncio.wait({task}, timeout=BLOCKED_SECONDS if contended else None)
        return task

    async def _send(self, step: Step, previous: asyncio.Task[Answer] | None) -> Answer:
        if previous is not None:
            await previous
        answer = await self._backend.send(step, self._fill(step), self._project)
        self._learn(step, answer)
        return answer

    def _fill(self, step: Step) -> MessagePb:
        """Return the request with the transaction's id and the documents' real update times."""
        request = type(step.request)()
        request.CopyFrom(step.request)
        if step.actor and step.rpc != "BeginTransaction":
            request.transaction = self._transactions.get(step.actor, b"missing")
        if step.rpc in ("Commit", "BatchWrite"):
            for write in request.writes:
                self._fill_time(write, write.update.name or write.delete or write.transform.document)
        elif step.rpc == "UpdateDocument":
            self._fill_time(request, request.document.name)
        elif step.rpc == "DeleteDocument":
            self._fill_time(request, request.name)
        return request

    def _fill_time(self, message: MessagePb, name: str) -> None:
        if message.current_document.WhichOneof("condition_type") != "update_time":
            return
        time = message.current_document.update_time
        seconds = time.seconds
        if seconds in (CURRENT, STALE) and name in self._update_times:
            time.CopyFrom(self._update_times[name])
            time.seconds -= seconds == STALE

    def _learn(self, step: Step, answer: Answer) -> None:
        if answer.code != "OK":
            return
        if step.rpc == "BeginTransaction":
            self._transactions[step.actor] = answer.messages[0].transaction
        elif step.rpc in ("Commit", "BatchWrite"):
            for write, result in zip(step.request.writes, answer.messages[0].write_results, strict=True):
                if result.HasField("update_time"):
                    self._update_times[write.update.name or write.transform.document] = result.update_time
        elif step.rpc in ("CreateDocument", "UpdateDocument"):
            self._update_times[answer.messages[0].name] = answer.messages[0].update_time
