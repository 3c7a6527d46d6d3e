"""Find how a value is made, from what it was in several recordings. The result repeats all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from fireswarm.pipelines.node import shaping
from fireswarm.pipelines.node.scopes import ANSWERS, FAULTS, Scope, is_numbered, is_same, key_of, paths_in
from fireswarm.pipelines.node.shaping import MISSING
from fireswarm.pipelines.node.values import (
    EACH,
    PAGE,
    PAGES,
    Address,
    Choice,
    Chosen,
    Constant,
    Each,
    Either,
    FromPages,
    Listed,
    ObjectValue,
    Taken,
    Text,
    Value,
)

MIN_ALIKE_CHARS = 5
"""Shorter names, such as id, are within others by chance."""

MAX_CHOICES = 2
"""Parameters that may decide one after the other."""


def explain(scopes: Sequence[Scope], values: Sequence[Any], last: str = "", depth: int = 0) -> Value | None:
    """Return how the values are made, or None.

    One that is MISSING was not sent; *last* is the key at which it stands.
    """
    if all(value is MISSING for value in values):
        return None
    for found in _offers(scopes, values, last, depth):
        if found is not None and repeats(found, scopes, values):
            return found
    return None


def _offers(scopes: Sequence[Scope], values: Sequence[Any], last: str, depth: int) -> Iterator[Value | None]:
    yield from _single(scopes, values, last)
    yield _constant(scopes, values)
    there = [value for value in values if value is not MISSING]
    if all(isinstance(value, dict) for value in there):
        yield _fields(scopes, values, depth)
    if all(isinstance(value, dict) for value in there) or all(isinstance(value, list) for value in there):
        yield from _each(scopes, values, last, depth)
    if all(isinstance(value, list) for value in there):
        yield _find_pages(scopes, values)
        yield _find_list(scopes, values, depth)
    if depth < MAX_CHOICES:
        yield from _choices(scopes, values, lambda own, sent: explain(own, sent, last, depth + 1))


def repeats(
    value: Value, scopes: Sequence[Scope], wanted: Sequence[Any], normal: Callable[[Any], Any] = lambda made: made
) -> bool:
    """Return whether *value* makes all that is *wanted*; *normal* brings what it makes into the form of that."""
    pairs = zip(scopes, wanted, strict=True)
    try:
        return all(is_same(normal(value.of(scope.given)), each) for scope, each in pairs)
    except FAULTS:
        return False


def _single(scopes: Sequence[Scope], values: Sequence[Any], last: str) -> Iterator[Value]:
    """Yield what is made of one parameter, or is a text with parameters; the likeliest first."""
    pairs = [(scope, value) for scope, value in zip(scopes, values, strict=True) if value is not MISSING]
    seen: set[str] = set()
    for scope, value in pairs:
        for name, step in sorted(scope.made.get(key_of(value), ()), key=lambda item: _rank(*item, last)):
            made = Taken(name=name, steps=(step,) if step else ())
            if made.model_dump_json() in seen or not _is_telling(made, value, last, scopes):
                continue
            seen.add(made.model_dump_json())
            yield from _presences(made, scopes, values)
        if isinstance(value, str) and (text := _text(scope, value)) is not None and text.model_dump_json() not in seen:
            seen.add(text.model_dump_json())
            yield text
            yield text.model_copy(update={"presence": "filled"})


def _rank(name: str, step: str, last: str) -> tuple[bool, bool, bool, bool]:
    own = name.rpartition(".")[2]
    return bool(step), not name.startswith(EACH), own.lower() != last.lower(), not _is_alike(own, last)


def _is_telling(made: Taken, value: Any, last: str, scopes: Sequence[Scope]) -> bool:
    """Return False for what may be so by chance: a value that is common, or a list of one word that has no comma."""
    if value in (True, False, None, "", 0) or value in ([], {}):
        return _is_alike(made.name.rpartition(".")[2], last)
    if made.name.startswith(ANSWERS):
        return not {"split", "divide"}.intersection(made.steps)  # no text of a made-up answer has a comma
    if {"wrap", "items"}.intersection(made.steps):
        return any("," in str(shaping.take(scope.given, made.name)) for scope in scopes)
    return True


def _is_alike(name: str, other: str) -> bool:
    """Return whether one name is within the other, as in isSyncing and is_syncing, or share and shareWithAll."""
    one, two = (re.sub(r"[^a-z0-9]", "", each.lower()) for each in (name, other))
    return one == two or (min(len(one), len(two)) >= MIN_ALIKE_CHARS and (one in two or two in one))


def _presences(made: Taken, scopes: Sequence[Scope], values: Sequence[Any]) -> Iterator[Taken]:
    """Yield *made* with each rule for where it is sent; the strictest first."""
    yield made
    yield made.model_copy(update={"presence": "filled"})
    pairs = zip(scopes, values, strict=True)
    others = [value for scope, value in pairs if not _is_filled(shaping.take(scope.given, made.name))]
    others = [value for value in others if value is not MISSING]
    if others and all(is_same(value, others[0]) for value in others) and not _holds_made(scopes, others[:1]):
        yield made.model_copy(update={"presence": "constant", "constant": others[0]})


def _is_filled(value: Any) -> bool:
    return value is not MISSING and bool(value)


def _text(scope: Scope, value: str) -> Text | None:
    """Return *value* with the made-up texts in it as names, or None if it has none."""
    names: list[str] = []
    marked = value
    for text, path in scope.texts:
        while (place := marked.find(text)) >= 0:
            names.append(path)
            marked = f"{marked[:place]}\0{len(names) - 1}\0{marked[place + len(text) :]}"
    if not names or "{}" in value or any(is_numbered(name) and not name.startswith(ANSWERS) for name in names):
        return None
    pieces = marked.split("\0")
    return Text(pattern="{}".join(pieces[::2]), names=tuple(names[int(number)] for number in pieces[1::2]))


def _constant(scopes: Sequence[Scope], values: Sequence[Any]) -> Constant | None:
    first = values[0]
    if first is MISSING or not all(is_same(value, first) for value in values) or _holds_made(scopes, values[:1]):
        return None
    return Constant(constant=first)


def _holds_made(scopes: Sequence[Scope], values: Sequence[Any]) -> bool:
    texts = "\n".join(key_of(value) for value in values)
    plain = {str(value) for value in values if not isinstance(value, (dict, list))}
    for scope in scopes:
        for text, _ in scope.texts:
            if json.dumps(text)[1:-1] in texts or text in plain:
                return True
        if any(text in plain for text in scope.named):
            return True
    return False


def _fields(scopes: Sequence[Scope], values: Sequence[Any], depth: int) -> ObjectValue | None:
    """Return an object whose fields are explained one by one."""
    fields: dict[str, Value] = {}
    for key in dict.fromkeys(key for value in values if value is not MISSING for key in value):
        if _holds_made(scopes, [key]):
            return None
        inner = [value.get(key, MISSING) if value is not MISSING else MISSING for value in values]
        found = explain(scopes, inner, key, depth)
        if found is None:
            return None
        fields[key] = found
    is_optional = any(value is MISSING for value in values)
    return ObjectValue(fields=fields, is_optional=is_optional)


class _Source(NamedTuple):
    """A list from which a list or an object may be made, and its entries in each case."""

    taken: Taken
    lists: list[Any]


def _each(scopes: Sequence[Scope], values: Sequence[Any], last: str, depth: int) -> Iterator[Value | None]:
    """Yield lists and objects that have an entry for each entry of a list. In some case it has to have two."""
    for source in _sources(scopes, values):
        within, keys, entries = list[Scope](), list[Any](), list[Any]()
        for scope, found, value in zip(scopes, source.lists, values, strict=True):
            if value is MISSING:
                continue
            within.extend(scope.inner(entry) for entry in found)
            keys.extend(value if isinstance(value, dict) else ())
            entries.extend(value.values() if isinstance(value, dict) else value)
        entry = explain(within, entries, last, depth)
        key = explain(within, keys, "", depth) if keys and entry is not None else None
        if entry is not None and _uses_entry(entry) and (not keys or key is not None):
            yield Each(source=source.taken, key=key, entry=entry)


def _uses_entry(value: Value) -> bool:
    return f'"{EACH}' in value.model_dump_json()


def _sources(scopes: Sequence[Scope], values: Sequence[Any]) -> Iterator[_Source]:
    """Yield the lists that have as many entries as the value, in all cases."""
    pairs = [(scope, value) for scope, value in zip(scopes, values, strict=True) if value is not MISSING]
    longest, most = max(pairs, key=lambda pair: len(pair[1]))
    if len(most) < 2:
        return
    steps = [((), path) for path, value in longest.paths if isinstance(value, list) and len(value) == len(most)]
    words = [path for path, value in longest.paths if isinstance(value, str) and ", " in value]
    for by, path in [*steps, *(((step,), path) for path in words for step in ("split", "divide"))]:
        taken = Taken(name=path, steps=by)
        empty = {"presence": "constant", "constant": list[Any]()}
        for each in (taken, taken.model_copy(update={"presence": "filled"}), taken.model_copy(update=empty)):
            found = [each.of(scope.given) for scope in scopes]
            if all(_fits(one, value) for one, value in zip(found, values, strict=True)):
                yield _Source(each, found)
                break


def _fits(source: Any, value: Any) -> bool:
    if source is MISSING or value is MISSING:
        return source is value
    return isinstance(source, list) and len(source) == len(value)


def _find_pages(scopes: Sequence[Scope], values: Sequence[Any]) -> FromPages | None:
    """Return the items of all pages, if there are such."""
    for request, pages in (scopes[0].given.get(PAGES) or {}).items():
        inner = [path for page in pages for path, value in paths_in({ANSWERS: {"0": page}}) if isinstance(value, list)]
        for path in dict.fromkeys(["", *(path.removeprefix(f"{ANSWERS}.0").removeprefix(".") for path in inner)]):
            found = FromPages(request=request, name=path)
            if repeats(found, scopes, values):
                return found
    return None


def _find_list(scopes: Sequence[Scope], values: Sequence[Any], depth: int) -> Listed | None:
    """Return a list of so many entries, each explained."""
    lengths = {len(value) for value in values if value is not MISSING} - {0}
    if len(lengths) != 1:
        return None
    is_optional = any(value == [] for value in values)
    entries: list[Value] = []
    for number in range(lengths.pop()):
        inner = [value[number] if value is not MISSING and value else MISSING for value in values]
        found = explain(scopes, inner, "", depth)
        if found is None or not _is_wrap(found, scopes):
            return None
        entries.append(found)
    return Listed(entries=tuple(entries), is_optional=is_optional)


def _is_wrap(value: Value, scopes: Sequence[Scope]) -> bool:
    """Return False for a text alone in a list that may be the only word of a text with commas."""
    return not isinstance(value, Taken) or _is_telling(Taken(name=value.name, steps=("wrap",)), "-", "", scopes)


type _Explain = Callable[[Sequence[Scope], Sequence[Any]], Value | None]


def explain_address(scopes: Sequence[Scope], values: Sequence[str], base: str, depth: int = 0) -> Value | None:
    """Return how the addresses are made, or None. Those below *base* are without it."""
    for found in _addresses(scopes, values, base, depth):
        if found is not None and repeats(found, scopes, values, lambda address: without_base(str(address), base)):
            return found
    return None


def without_base(address: str, base: str) -> str:
    """Return an address without the base URL, if it begins with it."""
    return address.removeprefix(base) if address.startswith(f"{base}/") else address


def _addresses(scopes: Sequence[Scope], values: Sequence[str], base: str, depth: int) -> Iterator[Value | None]:
    marked = [_mark(scope, value) for scope, value in zip(scopes, values, strict=True)]
    # An answer names whole addresses.
    whole = [_mark(scope, f"{base}{value}") for scope, value in zip(scopes, values, strict=True) if value[:1] == "/"]
    marked += [(pattern, names) for pattern, names in whole if pattern.startswith((f"{{{PAGE}", f"{{{ANSWERS}"))]
    bare = tuple(dict.fromkeys(name for _, names in marked for name in names))
    for pattern, _ in marked:
        names = Address(pattern=pattern).uses()
        yield Address(pattern=pattern, plain=tuple(name for name in names if name in bare))
    if depth < MAX_CHOICES:
        yield from _choices(scopes, values, lambda own, sent: explain_address(own, sent, base, depth + 1))


def _mark(scope: Scope, address: str) -> tuple[str, list[str]]:
    """Return an address with names for made-up texts, and those that are not encoded as a whole."""
    plain: list[str] = []
    for text, name in scope.texts:
        whole, part = quote(text, safe=""), quote(text, safe=shaping.PLAIN)
        if part != whole and part in address:
            plain.append(name)
        for written in (text, whole, part):
            address = address.replace(written, f"{{{name}}}")
    return address, plain


def _group(scopes: Sequence[Scope], key: Callable[[Scope], str]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for number, scope in enumerate(scopes):
        groups.setdefault(key(scope), []).append(number)
    return groups


def _choices(scopes: Sequence[Scope], values: Sequence[Any], one: _Explain) -> Iterator[Value | None]:
    """Yield what a parameter decides: by whether it is filled, or by its value."""

    def explain_group(numbers: Sequence[int]) -> tuple[bool, Value | None]:
        sent = [values[number] for number in numbers]
        if all(value is MISSING for value in sent):
            return True, None
        made = one([scopes[number] for number in numbers], sent)
        return made is not None, made

    for name in _deciding(scopes, values):
        groups = _group(scopes, lambda scope, name=name: str(_is_filled(shaping.take(scope.given, name))))
        if len(groups) == 2:
            (is_known, with_it), (is_known_too, without) = explain_group(groups["True"]), explain_group(groups["False"])
            if is_known and is_known_too:
                yield Either(name=name, filled=with_it, empty=without)
    for name in dict.fromkeys(scope.title.partition("=")[0] for scope in scopes if "=" in scope.title):
        yield _find_choice(name, scopes, explain_group)


def _find_choice(
    name: str, scopes: Sequence[Scope], explain_group: Callable[[Sequence[int]], tuple[bool, Value | None]]
) -> Chosen | None:
    """Return what the values of a parameter choose, each of which was recorded apart from other changes."""

    def key(scope: Scope) -> str:
        found = shaping.take(scope.given, name)
        return "" if found is MISSING else key_of(found)

    rows: list[Choice] = []
    groups = _group(scopes, key)
    for found, numbers in groups.items():
        is_known, made = explain_group(numbers)
        if len(groups) < 2 or not is_known:
            return None
        rows.append(Choice(value=json.loads(found) if found else None, is_missing=not found, made=made))
    return Chosen(name=name, table=tuple(rows))


def _deciding(scopes: Sequence[Scope], values: Sequence[Any]) -> list[str]:
    """Return the parameters that stand in some of the values: there may be others where they are empty."""
    found: dict[str, None] = {}
    for scope, value in zip(scopes, values, strict=True):
        shown = "" if value is MISSING else key_of(value)
        for text, name in scope.texts:
            if not is_numbered(name) and not name.startswith("$") and json.dumps(text)[1:-1] in shown:
                found[name] = None
    return list(found)
