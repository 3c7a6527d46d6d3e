"""Languages and types by file name: fixed tables, so that every machine gives the same result."""

from __future__ import annotations

from mimetypes import MimeTypes
from pathlib import PurePosixPath

_BY_SUFFIX = {
    ".py": "Python", ".pyi": "Python", ".ipynb": "Jupyter", ".js": "JavaScript", ".mjs": "JavaScript",
    ".cjs": "JavaScript", ".jsx": "JavaScript", ".ts": "TypeScript", ".tsx": "TypeScript", ".go": "Go",
    ".rs": "Rust", ".java": "Java", ".kt": "Kotlin", ".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++",
    ".hpp": "C++", ".cs": "C#", ".rb": "Ruby", ".php": "PHP", ".swift": "Swift", ".scala": "Scala",
    ".sh": "Shell", ".bash": "Shell", ".ps1": "PowerShell", ".sql": "SQL", ".r": "R", ".lua": "Lua",
    ".pl": "Perl", ".ex": "Elixir", ".exs": "Elixir", ".hs": "Haskell", ".dart": "Dart", ".vue": "Vue",
    ".pyx": "Cython", ".proto": "Protocol Buffers", ".tf": "Terraform", ".md": "Markdown", ".markdown": "Markdown",
    ".mdx": "Markdown", ".rst": "reStructuredText", ".txt": "Text", ".adoc": "AsciiDoc", ".html": "HTML",
    ".htm": "HTML", ".css": "CSS", ".scss": "CSS", ".json": "JSON", ".jsonl": "JSON", ".yaml": "YAML",
    ".yml": "YAML", ".toml": "TOML", ".ini": "INI", ".cfg": "INI", ".xml": "XML", ".csv": "CSV", ".tsv": "CSV",
    ".rules": "Rules", ".svg": "SVG", ".tex": "TeX",
}  # fmt: skip

_BY_NAME = {
    "dockerfile": "Dockerfile", "makefile": "Makefile", "rakefile": "Ruby", "gemfile": "Ruby", "license": "Text",
    "readme": "Text", "cmakelists.txt": "CMake", "jenkinsfile": "Groovy",
}  # fmt: skip

CODE = frozenset({
    "Python", "JavaScript", "TypeScript", "Go", "Rust", "Java", "Kotlin", "C", "C++", "C#", "Ruby", "PHP", "Swift",
    "Scala", "Shell", "PowerShell", "SQL", "R", "Lua", "Perl", "Elixir", "Haskell", "Dart", "Vue", "Cython",
    "Protocol Buffers", "Terraform", "Groovy",
})  # fmt: skip

PROSE = frozenset({"Markdown", "reStructuredText", "Text", "AsciiDoc", "TeX"})

_MIME = {
    "Markdown": "text/markdown", "TOML": "application/toml", "YAML": "application/yaml", "Python": "text/x-python",
    "TypeScript": "text/x-typescript", "JavaScript": "text/javascript", "JSON": "application/json", "CSV": "text/csv",
    "Jupyter": "application/x-ipynb+json",
}  # fmt: skip
_GUESS = MimeTypes(filenames=())


def language_of(path: str) -> str:
    """Return the language of a file by its name, or ""."""
    name = PurePosixPath(path).name.lower()
    return _BY_NAME.get(name) or _BY_SUFFIX.get(PurePosixPath(name).suffix, "")


def is_code(language: str) -> bool:
    """Return True if the complexity of *language* is worth measuring."""
    return language in CODE


def is_prose(language: str) -> bool:
    """Return True if *language* is text for people."""
    return language in PROSE


def mime_of(path: str, *, binary: bool) -> str:
    """Return the media type by name, otherwise ``text/plain`` or ``application/octet-stream`` by content."""
    guessed = _MIME.get(language_of(path)) or _GUESS.guess_type(path, strict=True)[0]
    if guessed is None or (binary and guessed.startswith("text/")):
        return "application/octet-stream" if binary else "text/plain"
    return guessed
