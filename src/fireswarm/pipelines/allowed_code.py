"""Which names generated code may use: a list of modules, its own package, and no other way to anything else.

This is checked before the code runs. The boundary is the confinement: the check keeps code out of a node that a reader
would not expect there, and says where and why.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

MODULES = frozenset(
    {
        *("__future__", "base64", "binascii", "calendar", "collections", "collections.abc", "copy", "dataclasses"),
        *("datetime", "decimal", "enum", "fractions", "functools", "hashlib", "hmac", "html", "itertools", "json"),
        *("html.entities", "html.parser", "json.decoder", "json.encoder", "json.scanner"),
        *("math", "numbers", "random", "re", "secrets", "statistics", "string", "textwrap", "time", "typing"),
        *("unicodedata", "urllib.parse", "uuid", "zoneinfo"),
    }
)
"""Modules of Python without a way to processes, a network or files that code chooses."""

TRANSPORT = frozenset(
    {"BASE_URL", "TIMEOUT_SECONDS", "ApiError", "Send", "Told", "base_url", "credential", "send_over_http", "written"}
)
"""What a node may take from its transport, its one way to a network."""

CALLS = frozenset(
    {
        *("__import__", "__builtins__", "__loader__", "__spec__", "breakpoint", "compile", "delattr", "eval", "exec"),
        *("exit", "getattr", "globals", "input", "locals", "open", "quit", "setattr", "vars"),
    }
)
"""Builtins that run text, open files, or lead to any name."""

LEADING = frozenset(
    {
        *("os", "sys", "posix", "nt", "builtins", "importlib", "subprocess", "socket", "io", "codecs", "shutil"),
        *("inspect", "ctypes", "gc", "threading", "pathlib", "atexit", "pickle", "marshal", "runpy", "copyreg"),
        *("types", "weakref", "abc", "keyword", "warnings", "contextlib", "operator", "heapq", "locale", "struct"),
        *("platform", "bisect", "ipaddress", "bltns", "sre_compile", "sre_parse", "urlopen", "urlretrieve"),
        *("get_type_hints", "ForwardRef", "evaluate_forward_ref", "singledispatch", "singledispatchmethod"),
        *("make_dataclass", "Formatter", "getnode", "uuid1", "reset_tzpath", "file_digest"),
    }
)
"""Names of modules that other modules have imported, and functions that run text or follow names in it."""

METHODS = frozenset({"__init__", "__name__", "__doc__", "__post_init__", "__str__", "__repr__", "__eq__"})
"""Names with double underscores that lead nowhere else."""

_FRAMES = re.compile(r"(?:f|gi|tb|cr|ag|co)_(?:frame|back|globals|locals|builtins|code|consts)|_.*")
_FIXED = re.compile(
    r"nodes/[^/]+/(?:(?:__init__|client|node|transport|shaping|paging)\.py|schema\.json|pyproject\.toml|readme\.md)"
)
_NODE = re.compile(r"nodes/.+\.py", re.IGNORECASE)
_ADVISED_TEST = re.compile(r"tests/test_[^/]+_advised\.py")

Fault = tuple[int, str]


def is_fixed(path: str) -> bool:
    """Return whether only a template writes the file: the shell of a node, its schema and its transport."""
    return _FIXED.fullmatch(path.casefold()) is not None


def fixed_faults(paths: list[str]) -> list[str]:
    """Return a fault for each file that advice may not change."""
    why = "a template writes it, and advice may not change it"
    return [f"{path} is fixed: {why}" for path in paths if is_fixed(path)]


def use_faults(path: str, text: str) -> list[str]:
    """Return what code uses that it may not, with line and reason. Files that templates write are not looked at."""
    is_test = _ADVISED_TEST.fullmatch(path) is not None
    if is_fixed(path) or not (is_test or _NODE.fullmatch(path)):
        return []
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # `code_faults` says so
    faults = sorted({fault for node in ast.walk(tree) for fault in _faults_of(node, is_test)})
    faults += sorted(_modules_as_values(tree))
    return [f"{path}:{line}: forbidden-use: {why}" for line, why in faults]


def _faults_of(node: ast.AST, is_test: bool) -> Iterator[Fault]:
    match node:
        case ast.Import():
            yield from ((node.lineno, why) for each in node.names if (why := _why_not_import(each, is_test)))
        case ast.ImportFrom():
            yield from ((node.lineno, why) for why in _why_not_names(node, is_test))
        case ast.Name(id=name) if name in CALLS:
            yield node.lineno, f"{name} runs text, opens files or leads to any name"
        case ast.Attribute(attr=name):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if why := _why_not_attribute(name, owner):
                yield node.lineno, why
        case ast.MatchClass():
            yield from ((node.lineno, why) for name in node.kwd_attrs if (why := _why_not_attribute(name, "")))
        case _:
            pass


def _why_not_import(each: ast.alias, is_test: bool) -> str:
    whole = each.name.rpartition(".")[0]
    if whole and not each.asname and each.name in MODULES and whole not in MODULES:
        return f"write `from {each.name} import NAME`: {whole} leads to other modules"
    return _why_not_module(each.name, is_test)


def _why_not_module(name: str, is_test: bool) -> str:
    if name in MODULES or (is_test and name == "pytest"):
        return ""
    return f"{name} cannot be imported: a node has {', '.join(sorted(MODULES))}, its own package, and its transport"


def _why_not_names(node: ast.ImportFrom, is_test: bool) -> Iterator[str]:
    module, names = node.module or "", [each.name for each in node.names]
    own = module.split(".") if is_test else []
    is_own = node.level == 1 if not is_test else not node.level and own[0] == "nodes" and len(own) > 1
    if not is_own:
        whole = "." * node.level + module
        if why := _why_not_module(whole, is_test):
            yield why
        yield from (f"{each} of {whole}: {why}" for each in names if (why := _why_not_attribute(each, "")))
        return
    if not module:
        yield f"import names from {', '.join(names)}, not the module: a module leads to what it has imported"
    elif module.rpartition(".")[2] == "transport":
        yield from (f"transport has no {each} for a node" for each in names if each not in TRANSPORT)
    if "*" in names:
        yield "name what is imported: * takes all"
    yield from (f"{each} is a module of Python" for each in names if each in MODULES or each in LEADING)


def _why_not_attribute(name: str, owner: str) -> str:
    if name in METHODS or (owner in ("self", "cls") and not name.startswith("__")):
        return ""
    if name in LEADING or _FRAMES.fullmatch(name):
        return f".{name} leads out of the node"
    return ""


def _modules_as_values(tree: ast.Module) -> set[Fault]:
    """Return where an imported module is used as a value: under another name its parts could not be followed."""
    imported = {
        (each.asname or each.name.partition(".")[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for each in node.names
    }
    followed = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {
        (node.lineno, f"{node.id} is a module: use it only as {node.id}.NAME")
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in imported and id(node) not in followed
    }
