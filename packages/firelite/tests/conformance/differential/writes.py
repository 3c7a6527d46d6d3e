"""Random writes: documents, masks, transforms, preconditions, and the requests that carry them."""

from __future__ import annotations

from random import Random

from google.cloud.firestore_v1.types import firestore, write

from conformance.differential.values import DATABASE, FIELDS, NAMES, ROOT, ValueMaker, is_vector
from firelite.documents.protos import MessagePb, PreconditionPb, Write, WritePb

BatchWriteRequest = firestore.BatchWriteRequest.pb()
CommitRequest = firestore.CommitRequest.pb()
CreateDocumentRequest = firestore.CreateDocumentRequest.pb()
DeleteDocumentRequest = firestore.DeleteDocumentRequest.pb()
UpdateDocumentRequest = firestore.UpdateDocumentRequest.pb()
FieldTransform = write.DocumentTransform.FieldTransform.pb()

CURRENT, STALE, FUTURE = 1, 2, 253_402_300_000
"""Seconds of an update_time precondition that the runner replaces by the document's time, or by one before it."""
WRITABLE = ("a", "b", "c", "m.x", "m.y", "m", "v", "m.z.x", "`a b`")


class WriteMaker:
    """Makes requests that change the documents of one case."""

    def __init__(self, values: ValueMaker) -> None:
        self.values = values
        self.rng: Random = values.rng

    def change(self) -> tuple[str, MessagePb]:
        """Return the name of an RPC and its request."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.5:
            return "Commit", self.commit(self.write() for _ in range(rng.choice((1, 1, 1, 2, 3, 4))))
        if kind < 0.75:
            writes = [self.write() for _ in range(rng.choice((1, 2, 3, 5)))]
            return "BatchWrite", BatchWriteRequest(database=DATABASE, writes=writes)
        if kind < 0.83:
            request = CreateDocumentRequest(parent=ROOT, collection_id="c", document_id=rng.choice(("a", "b", "new")))
            self.values.fill(request.document.fields, faults=0.03)
            return "CreateDocument", request
        if kind < 0.93:
            return "UpdateDocument", self.update()
        request = DeleteDocumentRequest(name=rng.choice(NAMES))
        self._require(request.current_document, 0.4)
        return "DeleteDocument", request

    def commit(self, writes: object) -> MessagePb:
        return CommitRequest(database=DATABASE, writes=writes)

    def create_all(self, names: list[str]) -> MessagePb:
        """Return the commit that sets up the documents of a case."""
        writes: list[WritePb] = []
        for name in names:
            item = Write()
            item.update.name = name
            self.values.fill(item.update.fields)
            writes.append(item)
        return self.commit(writes)

    def update(self) -> MessagePb:
        request = UpdateDocumentRequest()
        request.document.name = self.rng.choice(NAMES[:6])
        self.values.fill(request.document.fields, faults=0.03)
        if self.rng.random() < 0.5:
            request.update_mask.field_paths.extend(self.rng.sample(WRITABLE, self.rng.randrange(3)))
        self._require(request.current_document, 0.4)
        return request

    def write(self) -> WritePb:
        rng = self.rng
        message = Write()
        name = rng.choice(NAMES[:4]) if rng.random() < 0.8 else rng.choice(NAMES)
        kind = rng.random()
        if kind < 0.15:
            message.delete = name
        elif kind < 0.25:
            message.transform.document = name
            for _ in range(rng.randrange(1, 3)):
                message.transform.field_transforms.append(self.transform())
        else:
            message.update.name = name
            self.values.fill(message.update.fields, faults=0.02)
            if rng.random() < 0.5:
                self._mask(message)
            if rng.random() < 0.4:
                for _ in range(rng.randrange(1, 4)):
                    message.update_transforms.append(self.transform())
        self._require(message.current_document, 0.25)
        return message

    def _mask(self, message: WritePb) -> None:
        rng = self.rng
        message.update_mask.SetInParent()
        message.update_mask.field_paths.extend(rng.sample(WRITABLE, rng.randrange(4)))
        if rng.random() < 0.5:
            message.update_mask.field_paths.extend(
                path for path in message.update.fields if path not in message.update_mask.field_paths
            )

    def _require(self, precondition: PreconditionPb, probability: float) -> None:
        rng = self.rng
        if rng.random() < probability:
            if rng.random() < 0.6:
                precondition.exists = rng.random() < 0.7
            else:
                precondition.update_time.seconds = rng.choice((CURRENT, CURRENT, CURRENT, STALE, FUTURE))

    def transform(self) -> MessagePb:
        """Return a field transform; its operand is rarely of a wrong type."""
        rng = self.rng
        message = FieldTransform(field_path=rng.choice((*FIELDS, "m.x", "m.z.x", "a", "b")))
        match rng.randrange(6):
            case 0:
                message.field_path = rng.choice(("at", "m.at"))
                message.set_to_server_value = 1 if rng.random() < 0.95 else 0
            case 1 | 2 as number:
                kind = ("increment", "maximum")[number - 1] if rng.random() < 0.7 else "minimum"
                operand = self.values.number() if rng.random() < 0.95 else self.values.any()
                getattr(message, kind).CopyFrom(operand)
            case 3 | 4:
                kind = rng.choice(("append_missing_elements", "remove_all_from_array"))
                getattr(message, kind).SetInParent()
                for _ in range(rng.randrange(4)):
                    element = self.values.any(again=0.7)
                    if element.WhichOneof("value_type") != "array_value" and not is_vector(element):
                        getattr(message, kind).values.append(element)
            case _:
                kind = rng.choice(("increment", "maximum", "minimum"))
                getattr(message, kind).CopyFrom(self.values.number())
        return message
