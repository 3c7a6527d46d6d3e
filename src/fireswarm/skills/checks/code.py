"""Static rules for a skill's code, checked without running it; reports file, line and rule.

A skill is a synchronous function that ends. The rules find code that would outlive the call, wait forever or need an
event loop. A rule is a function from a module to its findings, listed in ``RULES``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fireswarm.contracts.skills.advice import ExecutionMode
from fireswarm.skills.running.without_models import is_model_sdk

MAX_CODE_BYTES = 1_000_000
MAX_CODE_FILES = 200


class CodeFault(NamedTuple):
    """One violation in a code file."""

    path: Path
    line: int
    rule: str
    message: str


Finding = tuple[int, str, str]
Rule = Callable[["Module"], Iterator[Finding]]


@dataclass(slots=True)
class Module:
    """A parsed file: all its nodes, collected once for all rules. ``names`` maps a name to the imported object."""

    nodes: list[ast.AST]
    names: dict[str, str] = field(default_factory=dict)
    _calls: list[tuple[ast.Call, str]] | None = None

    @classmethod
    def of(cls, tree: ast.Module) -> Module:
        """Collect the imports of a module."""
        module = cls(list(ast.walk(tree)))
        for node in module.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name if alias.asname else alias.name.partition(".")[0]
                    module.names[alias.asname or first] = first
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    module.names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        return module

    def full(self, node: ast.expr) -> str:
        """Return the full name of an expression, with imports resolved, or ""."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.names.get(node.id, node.id), *reversed(parts)])

    def calls(self) -> list[tuple[ast.Call, str]]:
        """Return every call with the full name of the called object."""
        if self._calls is None:
            self._calls = [(node, self.full(node.func)) for node in self.nodes if isinstance(node, ast.Call)]
        return self._calls


def check_code(folder: Path, entry: Path, mode: ExecutionMode | None = None) -> list[CodeFault]:
    """Check the Python files in the folder of a skill's entry and below; a deterministic skill may not use a model."""
    scripts = (folder / entry).parent
    files = sorted(scripts.rglob("*.py"))[:MAX_CODE_FILES]
    rules = (*RULES, no_model) if mode is ExecutionMode.DETERMINISTIC else RULES
    return [CodeFault(file, *finding) for file in files for finding in check_source(file, rules)]


def check_source(path: Path, rules: Sequence[Rule] | None = None) -> list[Finding]:
    """Check one file; invalid content is a finding, not an exception."""
    try:
        with path.open("rb") as file:
            return findings_in(file.read(MAX_CODE_BYTES), rules)
    except OSError as error:
        return [(1, "code-unreadable", str(error.strerror))]


def findings_in(code: bytes | str, rules: Sequence[Rule] | None = None) -> list[Finding]:
    """Return the violations in *code*; invalid content is a finding, not an exception."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [(getattr(error, "lineno", None) or 1, "code-syntax", f"not valid Python: {error}")]
    module = Module.of(tree)
    try:
        return sorted({finding for rule in (RULES if rules is None else rules) for finding in rule(module)})
    except RecursionError:
        return [(1, "code-syntax", "the code is too deeply nested")]


def no_async(module: Module) -> Iterator[Finding]:
    """Forbid ``async`` and ``await``."""
    kinds = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
    for node in module.nodes:
        if isinstance(node, kinds):
            yield node.lineno, "async-code", "skills are synchronous: remove async def, async for, async with and await"
        elif isinstance(node, ast.comprehension) and node.is_async:
            yield node.target.lineno, "async-code", "skills are synchronous: remove the async comprehension"


_LOOPS = (
    "asyncio.run", "asyncio.get_event_loop", "asyncio.new_event_loop", "asyncio.get_running_loop",
    "asyncio.set_event_loop", "asyncio.Runner", "asyncio.ensure_future", "asyncio.create_task", "anyio.run",
    "anyio.from_thread.start_blocking_portal", "trio.run", "uvloop.run", "uvloop.install", "curio.run",
    "nest_asyncio.apply",
)  # fmt: skip


def no_event_loop(module: Module) -> Iterator[Finding]:
    """Forbid starting or using an event loop."""
    for node, name in module.calls():
        if name in _LOOPS or name.endswith((".run_until_complete", ".run_forever", ".run_coroutine_threadsafe")):
            yield node.lineno, "event-loop", f"skills are synchronous: do not use an event loop ({name})"


_THREADS = ("threading.Thread", "threading.Timer", "_thread.start_new_thread", "multiprocessing.Process")
_POOLS = (
    "concurrent.futures.ThreadPoolExecutor", "concurrent.futures.ProcessPoolExecutor",
    "concurrent.futures.thread.ThreadPoolExecutor", "concurrent.futures.process.ProcessPoolExecutor",
    "multiprocessing.Pool", "multiprocessing.pool.ThreadPool",
)  # fmt: skip


def no_lasting_threads(module: Module) -> Iterator[Finding]:
    """Require that threads are joined, and executors closed by ``with``, before the skill returns."""
    managed = {
        id(item.context_expr)
        for node in module.nodes
        if isinstance(node, (ast.With, ast.AsyncWith))
        for item in node.items
    }
    ended = _joined_names(module)
    names = _names_by_call(module)
    for node, name in module.calls():
        if name in _POOLS and id(node) not in managed and names.get(id(node), "") not in ended:
            yield node.lineno, "thread-outlives", f"{name} outlives the call: use it in a `with` statement"
        elif name in _THREADS and names.get(id(node), "") not in ended:
            yield node.lineno, "thread-outlives", f"{name} may outlive the call: join it before returning"


def _joined_names(module: Module) -> set[str]:
    """Return the names on which ``join`` or ``shutdown`` is called, and the lists on whose members they are called."""
    ended: set[str] = set()
    for node in module.nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr in ("join", "shutdown", "cancel", "terminate") and not _is_text(node.func.value):
            ended.add(ast.unparse(node.func.value))
    for node in module.nodes:
        if isinstance(node, (ast.For, ast.comprehension)) and ast.unparse(node.target) in ended:
            ended.add(ast.unparse(node.iter))
    return ended


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, (ast.Constant, ast.JoinedStr))


def _names_by_call(module: Module) -> dict[int, str]:
    """Map each call to the name that holds its result: assigned, in an assigned list, or appended to a list."""
    names: dict[int, str] = {}
    for node in module.nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            calls = [id(inner) for inner in ast.walk(node.value) if isinstance(inner, ast.Call)]
            if calls:
                names |= dict.fromkeys(calls, ast.unparse(target))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            name = ast.unparse(node.func.value)
            for inner in ast.walk(node):
                names.setdefault(id(inner), name)
    return names


_VERBS = ("get", "post", "put", "patch", "delete", "head", "options", "request", "stream")
_TIMED = {f"{library}.{verb}" for library in ("requests", "httpx", "httpx2") for verb in _VERBS}
_CLIENTS = ("requests.Session", "requests.session", "httpx.Client", "httpx2.Client")
_BY_POSITION = {"urllib.request.urlopen": 3, "http.client.HTTPConnection": 3, "http.client.HTTPSConnection": 3}
"""Calls whose timeout may be positional: the number of arguments that includes it."""


def http_with_timeout(module: Module) -> Iterator[Finding]:
    """Require a timeout on each HTTP request; httpx's default of five seconds is not a decision of the skill."""
    names = _names_by_call(module)
    sessions = {names[id(node)] for node, name in module.calls() if name in _CLIENTS and id(node) in names}
    sessions |= {
        ast.unparse(item.optional_vars)
        for node in module.nodes
        if isinstance(node, ast.With)
        for item in node.items
        if item.optional_vars is not None
        and isinstance(item.context_expr, ast.Call)
        and module.full(item.context_expr.func) in _CLIENTS
    }
    timed = {
        name
        for node, called in module.calls()
        if called in _CLIENTS and _has_timeout(node) and (name := names.get(id(node)))
    }
    for node, name in module.calls():
        owner, _, verb = name.rpartition(".")
        by_client = owner in sessions and verb in _VERBS and owner not in timed
        positional = _BY_POSITION.get(name)
        if not (name in _TIMED or by_client or positional) or _has_timeout(node):
            continue
        if positional is None or len(node.args) < positional:
            yield (
                node.lineno,
                "http-timeout",
                f"{name} without timeout=: a server that does not respond would block the turn",
            )


def _has_timeout(node: ast.Call) -> bool:
    timeouts = [word for word in node.keywords if word.arg == "timeout" or word.arg is None]
    return any(not (isinstance(word.value, ast.Constant) and word.value.value is None) for word in timeouts)


def no_model(module: Module) -> Iterator[Finding]:
    """Forbid models: the output of a deterministic skill depends only on its input."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in filter(is_model_sdk, named):
            yield (
                node.lineno,
                "model-in-deterministic",
                f"a deterministic skill imports {name}: make it hybrid and ask for advice",
            )
            break


RULES: tuple[Rule, ...] = (
    no_async,
    no_event_loop,
    no_lasting_threads,
    http_with_timeout,
)
"""Rules for every skill's code."""
