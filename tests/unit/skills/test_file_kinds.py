"""Binary files are named by kind; only text is text."""

from __future__ import annotations

import random

import pytest

from fireswarm.skills.file_kinds import UNKNOWN_BINARY, binary_kind

RANDOM = random.Random(7).randbytes(4_000)
NO_ZEROS = bytes(byte or 1 for byte in RANDOM)


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("letter.docx", b"PK\3\4\0\0word/document.xml", "Word document"),
        ("LETTER.DOCX", b"", "Word document"),
        ("sheet.xlsx", b"PK\3\4", "Excel workbook"),
        ("deck.pptx", b"PK\3\4", "PowerPoint presentation"),
        ("text.odt", b"PK\3\4", "OpenDocument text"),
        ("scan.pdf", b"%PDF-1.4\nonly text", "PDF document"),
        ("download", b"%PDF-1.7\n" + NO_ZEROS, "PDF document"),
        ("photo.jpeg", NO_ZEROS, "JPEG image"),
        ("noending", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG image"),
        ("attachment", b"PK\3\4\0\0..word/document.xml", "Word document"),
        ("attachment", b"PK\3\4\0\0", "ZIP archive"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "Word document"),
        ("old.ppt", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "PowerPoint presentation"),
        ("font.woff2", b"wOF2", "Font"),
        ("song.mp3", b"ID3", "Audio file"),
        ("film.mp4", b"\0\0\0\x18ftypmp42", "Video file"),
        ("data.sqlite", b"SQLite format 3\0", "SQLite database"),
        ("app.db", b"SQLite format 3\0", "SQLite database"),
        ("backup.tar.gz", b"\x1f\x8b\x08", "Compressed archive"),
        ("blob", RANDOM, UNKNOWN_BINARY),
        ("blob.xyz", NO_ZEROS, UNKNOWN_BINARY),
        ("strange.dat", b"\0\1\2" * 50, UNKNOWN_BINARY),
    ],
)
def test_binary_files_are_named_by_kind(name: str, head: bytes, kind: str) -> None:
    assert binary_kind(name, head) == kind


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("a.txt", b""),
        ("a.txt", "Überschrift, naïve".encode()),
        ("a.txt", "Überschrift, naïve café".encode("latin-1")),
        ("a.txt", "Übersicht".encode("utf-16")),
        ("a.doc", b"A plain text that somebody called doc."),
        ("log", b"\x1b[31mred\x1b[0m\n"),
        ("日本語.md", "日本語のテキスト\n".encode()),
        ("cut.txt", ("é" * 5_000).encode()[:9_999]),
        ("odd.txt", b"x" + ("é" * 5_000).encode()),
    ],
)
def test_text_is_text_in_any_encoding(name: str, head: bytes) -> None:
    assert binary_kind(name, head) is None
