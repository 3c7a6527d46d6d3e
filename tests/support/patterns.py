"""Find every regular expression in a folder of Python files, and texts that a slow one takes long for."""

from __future__ import annotations

import ast
import functools
import importlib
import itertools
import random
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from re import _constants as sre  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from types import FrameType
from typing import Any

FUNCTIONS = frozenset({"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"})
ANCHORED = frozenset({"match", "fullmatch"})
GENERIC = "aA0 \t\n_-./:\"'\\é"
ENDS = ("", "\x01", "\nx")
LONG_REPEAT = 16
"""Repeats that are bounded by less are not pumped: their cost does not depend on the text."""


@dataclass(frozen=True, slots=True)
class Use:
    """One regular expression: the file and line, the pattern with its flags, and the methods that are called."""

    place: str
    pattern: str | bytes
    flags: int
    methods: tuple[str, ...]

    def calls(self) -> Iterator[Callable[[Any], object]]:
        """Yield functions that match a text as the code does."""
        compiled = re.compile(self.pattern, self.flags)  # type: ignore[type-var]
        for method in self.methods:
            yield (
                getattr(compiled, method)
                if method in ANCHORED
                else lambda text: sum(1 for _ in compiled.finditer(text))
            )


class Unresolved(Exception):
    """The pattern depends on values that are known only while the program runs."""


class _Names(Mapping[str, Any]):
    """The names of a module, evaluated when they are asked for."""

    def __init__(self, path: Path, tree: ast.Module) -> None:
        self.path, self.assigned = path, dict[str, ast.expr]()
        self.imports: dict[str, ast.ImportFrom] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.assigned[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                self.assigned[node.target.id] = node.value
            elif isinstance(node, ast.ImportFrom):
                self.imports |= {alias.asname or alias.name: node for alias in node.names}

    def __getitem__(self, name: str) -> Any:
        if name == "re":
            return re
        if name in self.assigned:
            return evaluate(self.assigned[name], self)
        if name in self.imports:
            module = self.imports[name].module or ""
            if module.startswith("fireswarm"):
                return getattr(importlib.import_module(module), name)
            if (sibling := self.path.with_name(f"{module}.py")).is_file():
                return module_names(sibling)[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.assigned)

    def __len__(self) -> int:
        return len(self.assigned)


def module_names(path: Path) -> _Names:
    """Return the names that the module at *path* defines."""
    return _Names(path, ast.parse(path.read_text(encoding="utf-8")))


def evaluate(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression at module level. Raises Unresolved if it needs a local variable."""
    code = compile(ast.fix_missing_locations(ast.Expression(node)), "<pattern>", "eval")
    try:
        return eval(code, None, names)
    except (NameError, KeyError, TypeError, AttributeError) as error:
        raise Unresolved(ast.unparse(node)) from error


Examples = Mapping[str, Sequence[str]]
"""Patterns for calls whose pattern is made while the program runs, by ``file: source of the pattern``."""


def find_uses(root: Path, folders: Sequence[str], examples: Examples) -> Iterator[Use]:
    """Yield every expression that the Python files in *folders* of *root* compile or use.

    Raises AssertionError for a pattern that is made while the program runs, if *examples* has none for it.
    """
    paths = [path for folder in folders for path in sorted((root / folder).rglob("*.py"))]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    public = {name for text in texts.values() for name in re.findall(r"^([A-Z]\w*) = re\.compile", text, re.MULTILINE)}
    trees = {
        path: ast.parse(text)
        for path, text in texts.items()
        if re.search(r"^import re$", text, re.MULTILINE) or any(name in text for name in public)
    }
    shared = _methods(tree for path, tree in trees.items() if any(name in texts[path] for name in public))
    for path, tree in trees.items():
        yield from _uses(path, path.relative_to(root).as_posix(), tree, shared, examples)


def _uses(
    path: Path, place: str, tree: ast.Module, shared: Mapping[str, set[str]], examples: Examples
) -> Iterator[Use]:
    names, own = _Names(path, tree), _methods([tree])
    assigned = {
        id(node.value): node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.func.attr in FUNCTIONS):
            continue
        called = {node.func.attr}
        if "compile" in called:
            name = assigned.get(id(node), "")
            called = (own if name.startswith("_") else shared).get(name, set())
        methods = tuple(sorted(called)) if called and called <= ANCHORED else ("search",)
        try:
            pattern = evaluate(node.args[0], names)
            flags = _flags(node)
            yield Use(f"{place}:{node.lineno}", pattern, int(evaluate(flags, names)) if flags else 0, methods)
        except Unresolved:
            key = f"{place}: {ast.unparse(node.args[0])}"
            assert key in examples, f"line {node.lineno}: add examples of this pattern: {key!r}"
            for example in examples[key]:
                yield Use(f"{place}:{node.lineno}", example, 0, methods)


def _flags(node: ast.Call) -> ast.expr | None:
    assert isinstance(node.func, ast.Attribute)
    named = next((word.value for word in node.keywords if word.arg == "flags"), None)
    position = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(node.func.attr, 2)
    return named or (node.args[position] if len(node.args) > position else None)


def _methods(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """Return the methods called on each name. A name that is also used in another way has "search" among them."""
    methods: dict[str, set[str]] = {}
    for tree in trees:
        called: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
                called.add(id(node.value))
                name = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
                methods.setdefault(name, set()).add(node.attr)
        for node in ast.walk(tree):
            if (
                isinstance(node, (ast.Name, ast.Attribute))
                and isinstance(node.ctx, ast.Load)
                and id(node) not in called
            ):
                methods.setdefault(node.id if isinstance(node, ast.Name) else node.attr, set()).add("search")
    return methods


# ── texts ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Shapes:
    """What a parsed pattern is made of: its literals, and each repeat with the text that leads to it."""

    literals: set[str]
    pumps: list[tuple[str, str]]


def _char(items: Any) -> str:
    """Return a character of a class."""
    if items and items[0][0] is sre.NEGATE:
        return next((char for char in "a0 \n!" if not _within(items[1:], char)), "€")
    for kind, value in items:
        if kind is sre.LITERAL:
            return chr(value)
        if kind is sre.RANGE:
            return chr(value[0])
    return next((char for char in "a0 _\n!" if _within(items, char)), "a")


def _pairs(items: Any) -> set[str]:
    """Return pairs of different characters of a class."""
    members = [char for char in "a0. _-/" if _within(items, char)]
    return {left + right for left, right in itertools.combinations(members[:4], 2)}


def _within(items: Any, char: str) -> bool:
    classes = {
        sre.CATEGORY_DIGIT: char.isdigit(), sre.CATEGORY_SPACE: char.isspace(), sre.CATEGORY_WORD: char.isalnum(),
        sre.CATEGORY_NOT_DIGIT: not char.isdigit(), sre.CATEGORY_NOT_SPACE: not char.isspace(),
        sre.CATEGORY_NOT_WORD: not char.isalnum(),
    }  # fmt: skip
    for kind, value in items:
        if kind is sre.LITERAL and chr(value) == char:
            return True
        if kind is sre.RANGE and value[0] <= ord(char) <= value[1]:
            return True
        if kind is sre.CATEGORY and classes[value]:
            return True
    return False


REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


SINGLE: Mapping[Any, Callable[[Any], str]] = {
    sre.LITERAL: chr,
    sre.NOT_LITERAL: lambda value: "a" if value != ord("a") else "b",
    sre.ANY: lambda _: "a",
    sre.IN: _char,
}


def _sample(items: Any, groups: dict[int | None, str], least: int, pick: int = 0) -> str:
    """Return a text that the items match; optional parts occur *least* times, and branches use number *pick*."""
    text = ""
    for kind, value in items:
        if kind in SINGLE:
            text += SINGLE[kind](value)
        elif kind is sre.BRANCH:
            text += _sample(value[1][pick % len(value[1])], groups, least, pick)
        elif kind is sre.SUBPATTERN:
            text += (part := _sample(value[3], groups, least, pick))
            groups[value[0]] = part
        elif kind in REPEATS:
            text += _sample(value[2], groups, least, pick) * min(max(value[0], min(least, value[1])), 40)
        elif kind is sre.ATOMIC_GROUP:
            text += _sample(value, groups, least, pick)
        elif kind is sre.GROUPREF:
            text += groups.get(value, "")
    return text


def _inner(kind: Any, value: Any) -> list[Any]:
    """Return the sequences within an item."""
    if kind is sre.BRANCH:
        return value[1]
    if kind is sre.ATOMIC_GROUP:
        return [value]
    place = {sre.SUBPATTERN: 3, sre.ASSERT: 1, sre.ASSERT_NOT: 1} | dict.fromkeys(REPEATS, 2)
    return [value[place[kind]]] if kind in place else []


def _walk(items: Any, before: str, shapes: _Shapes) -> None:
    """Collect literals and pumps of *items*; *before* matches what precedes them."""
    for place, (kind, value) in enumerate(items):
        lead = before + _sample(items[:place], {}, 0)
        if kind in (sre.LITERAL, sre.NOT_LITERAL):
            shapes.literals.add(chr(value))
        elif kind is sre.IN:
            listed = [one for name, one in value if name is sre.LITERAL]
            shapes.literals |= {chr(one) for one in listed[:12]} | {_char(value)}
        elif kind in REPEATS and value[1] >= LONG_REPEAT:
            body = {_sample(value[2], {}, least, pick) for least in (0, 1) for pick in range(4)}
            body |= {pair for one in value[2] if one[0] is sre.IN for pair in _pairs(one[1])}
            shapes.pumps += [(lead, one) for one in sorted(body) if one]
        for inner in _inner(kind, value):
            _walk(inner, lead, shapes)


def attacks(pattern: str, flags: int) -> Iterator[tuple[str, str, str]]:
    """Yield triples of a beginning, a text to repeat, and an end, derived from the parsed pattern."""
    parsed = parser.parse(pattern, flags)
    shapes = _Shapes(set(), [])
    _walk(parsed, "", shapes)
    if not shapes.pumps:
        return  # nothing repeats: each position costs the same
    leads = sorted({lead for lead, _ in shapes.pumps} - {""}, key=len)[:6]
    chars = [*dict.fromkeys([*GENERIC, *sorted(shapes.literals)[:24]])]
    pumps = [*dict.fromkeys(pump for _, pump in shapes.pumps)][:12]
    whole = {_sample(parsed, {}, least, pick) for least in (0, 1) for pick in range(8)} - {""}
    whole |= {lead + pump for lead, pump in shapes.pumps} | set(leads)
    chance = random.Random(repr(pattern))
    mixed = ["".join(chance.choices(chars, k=chance.randint(2, 4))) for _ in range(16)]
    made = [("", pump, end) for pump in (*chars, *mixed) for end in ENDS[:2]]
    made += [("", pump, end) for pump in sorted(whole)[:24] for end in ENDS]
    made += [(lead, char, end) for lead in leads for char in chars for end in ENDS[1:]]
    made += [(lead, pump, end) for lead, pump in shapes.pumps for end in ENDS if lead]
    made += [("", left + right, ENDS[1]) for left, right in itertools.permutations(pumps, 2)]
    made += [(lead, pump, ENDS[1]) for lead in leads for pump in sorted(whole)[:8]]
    yield from dict.fromkeys(made)


# ── growth ──────────────────────────────────────────────────────────────────────────────────────────────

SCREENED_CHARS = 1_000
SUSPECT_SECONDS = 0.00015
"""Quadratic work on 1,000 characters takes longer. Shapes that take less are not measured again."""
LONG_CHARS, LONG_SECONDS = 32_000, 0.1
LONGEST_CHARS, LONGEST_SECONDS = 256_000, 1.0
"""CPU time that no linear match needs: it takes 10 to 1,000 ns for a character.

Quadratic work takes at least 0.15 s for the first size and 10 s for the second one. The limits are far from both, so a
busy machine changes nothing.
"""


class TooLong(Exception):
    """A match was interrupted."""


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise TooLong


def seconds(call: Callable[[Any], object], text: Any, limit: float) -> float:
    """Return the time of one call; infinity if it used the processor for longer than *limit*. For the main thread."""
    before = signal.signal(signal.SIGVTALRM, _interrupt)
    try:
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, limit)
            began = time.perf_counter()
            call(text)
            return time.perf_counter() - began
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except TooLong:  # also if the timer runs out while it is being stopped
        return float("inf")
    finally:
        signal.signal(signal.SIGVTALRM, before)


def too_slow(call: Callable[[Any], object], make: Callable[[int], Any], size: int, limit: float) -> bool:
    """Return True if a text of *size* characters takes more than *limit* seconds of CPU time, twice."""
    return all(seconds(call, make(size), limit) == float("inf") for _ in range(2))


def _grows(call: Callable[[Any], object], make: Callable[[int], Any]) -> bool:
    """Return True if the time may grow faster than the text. This depends on the load of the machine."""
    short, longer = (
        min(seconds(call, make(size), LONG_SECONDS) for _ in range(3)) for size in (SCREENED_CHARS, 4 * SCREENED_CHARS)
    )
    return short > SUSPECT_SECONDS and longer > 8 * short


def slow_attacks(use: Use) -> Iterator[str]:
    """Yield a description of a text for which the time of *use* grows faster than the text."""
    binary = isinstance(use.pattern, bytes)
    listed = list(attacks(use.pattern.decode("latin-1") if isinstance(use.pattern, bytes) else use.pattern, use.flags))
    for call in use.calls() if listed else ():
        slowest: tuple[float, Callable[[int], Any]] | None = None
        for attack in listed:
            make = functools.partial(_text, attack, binary)
            short = seconds(call, make(SCREENED_CHARS), LONG_SECONDS)
            suspect = short > SUSPECT_SECONDS and (short > LONG_SECONDS or _grows(call, make))
            if suspect and too_slow(call, make, LONG_CHARS, LONG_SECONDS):
                yield f"{use.place} {use.methods}: {attack}"
                break
            if slowest is None or short > slowest[0]:
                slowest = short, make
        else:
            if slowest is not None and too_slow(call, slowest[1], LONGEST_CHARS, LONGEST_SECONDS):
                yield f"{use.place} {use.methods}, at {LONGEST_CHARS:,} characters: {slowest[1]}"


def _text(attack: tuple[str, str, str], binary: bool, size: int) -> Any:
    lead, pump, end = attack
    text = lead + pump * max(1, size // len(pump)) + end
    return text.encode("latin-1", "replace") if binary else text
