"""Kinds of binary files, by name and content: what reports call them, and what is not read as text. Pure."""

from __future__ import annotations

from pathlib import PurePosixPath

UNKNOWN_BINARY = "Binary of unknown kind"

SNIFFED_BYTES = 8_192
"""Bytes at the beginning that tell text from binary."""

_MOST_CONTROLS = 0.02
"""Maximum share of control characters in a text that is not UTF-8; in random bytes it is 0.1."""

_KINDS: dict[str, str] = {
    "Word document": "docx docm dotx",
    "Excel workbook": "xlsx xlsm xlsb xltx",
    "PowerPoint presentation": "pptx pptm ppsx potx",
    "OpenDocument text": "odt ott",
    "OpenDocument spreadsheet": "ods ots",
    "OpenDocument presentation": "odp otp",
    "OpenDocument drawing": "odg",
    "Outlook message": "msg pst",
    "Pages document": "pages",
    "Numbers spreadsheet": "numbers",
    "PDF document": "pdf",
    "E-book": "epub mobi azw3",
    "PNG image": "png apng",
    "JPEG image": "jpg jpeg jpe jfif",
    "GIF image": "gif",
    "WebP image": "webp",
    "TIFF image": "tif tiff",
    "Bitmap image": "bmp",
    "Icon": "ico icns cur",
    "HEIF image": "heic heif avif",
    "Photoshop image": "psd psb",
    "Raw photo": "cr2 cr3 nef arw dng",
    "ZIP archive": "zip",
    "Tar archive": "tar",
    "Compressed archive": "gz tgz bz2 tbz xz txz zst lz4 lzma 7z rar cab",
    "Java archive": "jar war ear",
    "Python wheel": "whl egg",
    "Software package": "deb rpm apk dmg iso msi pkg appimage xpi crx",
    "Font": "ttf otf ttc woff woff2 eot",
    "Audio file": "mp3 wav flac ogg oga opus m4a aac wma aiff aif mid midi",
    "Video file": "mp4 m4v mkv mov avi webm wmv mpg mpeg flv 3gp",
    "SQLite database": "sqlite sqlite3 db3",
    "Access database": "mdb accdb",
    "Data file": "parquet feather arrow avro orc hdf5 h5 npy npz pickle pkl joblib mat rdata rds sav dta",
    "Model file": "safetensors onnx gguf pt pth ckpt tflite",
    "Compiled file": "pyc pyo so dll dylib exe o obj a lib class wasm pyd",
    "3D model": "stl glb blend fbx 3ds",
}
_BY_SUFFIX = {suffix: kind for kind, suffixes in _KINDS.items() for suffix in suffixes.split()}

_OLD_OFFICE = {
    "doc": "Word document", "dot": "Word document", "xls": "Excel workbook", "ppt": "PowerPoint presentation",
    "pps": "PowerPoint presentation",
}  # fmt: skip
"""Suffixes that texts have too: they name the kind of content that is binary."""

_BY_START = (
    (b"%PDF-", "PDF document"),
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (b"8BPS", "Photoshop image"),
    (b"PK\3\4", "ZIP archive"),
    (b"PK\5\6", "ZIP archive"),
    (b"\x1f\x8b", "Compressed archive"),
    (b"BZh", "Compressed archive"),
    (b"\xfd7zXZ\0", "Compressed archive"),
    (b"7z\xbc\xaf\x27\x1c", "Compressed archive"),
    (b"\x28\xb5\x2f\xfd", "Compressed archive"),
    (b"Rar!\x1a\x07", "Compressed archive"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\0\1\0\0\0", "Font"),
    (b"OTTO\0", "Font"),
    (b"wOFF", "Font"),
    (b"wOF2", "Font"),
    (b"ID3", "Audio file"),
    (b"fLaC\0", "Audio file"),
    (b"OggS\0", "Audio file"),
    (b"\x1aE\xdf\xa3", "Video file"),
    (b"\x7fELF", "Compiled file"),
    (b"\0asm", "Compiled file"),
    (b"\xca\xfe\xba\xbe", "Compiled file"),
    (b"PAR1", "Data file"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Office document"),
)
_BY_OFFSET = (
    (8, b"WEBP", "WebP image"),
    (8, b"WAVE", "Audio file"),
    (8, b"AVI ", "Video file"),
    (4, b"ftyp", "Video file"),
    (257, b"ustar", "Tar archive"),
)
_ZIPPED = (
    (b"word/", "Word document"),
    (b"xl/", "Excel workbook"),
    (b"ppt/", "PowerPoint presentation"),
    (b"opendocument.text", "OpenDocument text"),
    (b"opendocument.spreadsheet", "OpenDocument spreadsheet"),
    (b"opendocument.presentation", "OpenDocument presentation"),
    (b"epub+zip", "E-book"),
)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"


def binary_kind(name: str, head: bytes) -> str | None:
    """Return the kind of a binary file by its name and its first bytes, or None for a text.

    A name of a known binary kind decides, so that an empty ``letter.docx`` is no text. Otherwise the content decides; a
    binary content without a known beginning is :data:`UNKNOWN_BINARY`.
    """
    suffix = PurePosixPath(name.lower()).suffix.removeprefix(".")
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if not _looks_binary(head):
        return "PDF document" if head.startswith(b"%PDF-") else None
    kind = _kind_by_content(head)
    if suffix in _OLD_OFFICE and kind in (None, "Office document"):
        return _OLD_OFFICE[suffix]
    return kind or UNKNOWN_BINARY


def _looks_binary(head: bytes) -> bool:
    """Return True for zero bytes, or for many control characters in what is not UTF-8."""
    sniffed = head[:SNIFFED_BYTES]
    if sniffed.startswith(_UTF_16):
        return False
    if b"\0" in sniffed:
        return True
    try:
        sniffed.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start >= len(sniffed) - 3 and len(head) > len(sniffed):
            return False  # the last character is cut
        return len(sniffed) - len(sniffed.translate(None, _CONTROLS)) > _MOST_CONTROLS * len(sniffed)
    return False


def _kind_by_content(head: bytes) -> str | None:
    kind = next((kind for start, kind in _BY_START if head.startswith(start)), None)
    if kind == "ZIP archive":
        return next((zipped for mark, zipped in _ZIPPED if mark in head[:SNIFFED_BYTES]), kind)
    return kind or next((kind for place, mark, kind in _BY_OFFSET if head[place:].startswith(mark)), None)
