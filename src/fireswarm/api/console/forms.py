"""The fields and files of a form that a browser sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from fireswarm.errors import InvalidInput

MAX_FIELDS, MAX_FILES = 200, 20
MAX_TEXT_BYTES = 512 * 1024
"""Maximum size of all fields of a form without files, and of one field of a form with files."""

MAX_FORM_BYTES = 20_000_000
"""Maximum size of a form with its files; larger files are named by their path or address."""

MAX_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class Upload:
    """A file of a form: the last part of its name, its media type, its content."""

    name: str
    media_type: str
    content: bytes


async def read_form(request: Request) -> tuple[Mapping[str, str], tuple[Upload, ...]]:
    """Return the fields and the files of a form. Raises InvalidInput for too many, and for what is no form."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "multipart/form-data":
        body = await request.body()
        if len(body) > MAX_TEXT_BYTES:
            raise InvalidInput(f"the form has {len(body):,} bytes; at most {MAX_TEXT_BYTES:,} are allowed")
        try:
            return dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=MAX_FIELDS)), ()
        except ValueError:
            raise InvalidInput(f"the form has too many fields: at most {MAX_FIELDS} are allowed") from None
    fields: dict[str, str] = {}
    uploads: list[Upload] = []
    try:
        async with request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS, max_part_size=MAX_TEXT_BYTES) as form:
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    uploads += [await _upload(value)] if value.filename else []
                else:
                    fields[name] = value
    except HTTPException as error:
        raise InvalidInput(f"the form cannot be read: {error.detail}") from error
    return fields, tuple(uploads)


async def _upload(file: UploadFile) -> Upload:
    name = (file.filename or "").replace("\\", "/").rpartition("/")[2]
    kept = "".join(sign for sign in name if sign.isprintable()).strip(" .")[-MAX_NAME_CHARS:]
    return Upload(kept or "file", file.content_type or "application/octet-stream", await file.read())
