"""Content of files of a session: the form in which it is stored, and in which it is returned."""

from __future__ import annotations

import base64
import binascii

from fireswarm.capabilities.session_files.storage import StoredFile, size_of
from fireswarm.errors import InvalidInput
from fireswarm.redaction import environment_redactor


def stored_content(given: str, encoding: str, most: int) -> str | bytes:
    """Return the content to store: text without secrets, or the decoded bytes of base64."""
    if len(given) > 2 * most:  # not searched for secrets, which takes long; base64 has 4 characters for 3 bytes
        raise _too_large(f"{len(given):,} characters", most)
    content: str | bytes = given
    if encoding == "base64":
        try:
            content = base64.b64decode("".join(given.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidInput(f"the content is not base64: {error}") from error
        if environment_redactor().has_secret(content):
            raise InvalidInput("the content contains what looks like a secret: remove it")
    elif any("\ud800" <= char <= "\udfff" for char in given):
        raise InvalidInput("the content contains lone surrogates: send it as base64")
    else:
        content = environment_redactor().text(given)
    if size_of(content) > most:
        raise _too_large(f"{size_of(content):,} bytes", most)
    return content


def _too_large(size: str, most: int) -> InvalidInput:
    return InvalidInput(
        f"the content has {size}, more than the {most:,} bytes of a file: "
        "split it into several files, or raise max_file_bytes in the capability's configuration"
    )


def expect_version(path: str, before: StoredFile | None, version: int | None) -> None:
    """Raise InvalidInput unless the stored file has the version, if one is given."""
    there = before.version if before else 0
    if version is not None and there != version:
        raise InvalidInput(f"{path} has version {there}, not {version}: read it again, then write")


def returned_content(content: str | bytes) -> str:
    """Return stored content as text: bytes as base64."""
    return content if isinstance(content, str) else base64.b64encode(content).decode()
