"""Create the node's project from templates, and the allowlist of paths that later steps may change."""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Any

from fireswarm import (
    SkillRequest,
    SkillResult,
    count_noun,
    pipelines,
    truncate,
)

from . import documented, operations, typed

TEMPLATES = Path(__file__).parents[1] / "references" / "templates"

MAX_ABOUT_CHARS = 400
FILES = ("__init__.py", "client.py", "node.py", "transport.py", "operations.py", "pyproject.toml")


def run(request: SkillRequest) -> SkillResult:
    """Return a package that checks its input and calls an operation.

    Operations whose request is known are written; the others are still stubs.
    """
    carried = pipelines.Carried.of(request)
    inputs = carried.json("node_schema.json")["inputs"]
    schema = pipelines.load_schema(carried)
    values = {
        "name": schema.name,
        "key": f"{schema.name.upper()}_KEY",
        "server": f"{schema.name.upper()}_BASE_URL",
        "display_name": _plain(schema.display_name or schema.name),
        "base_url": _plain(schema.base_url),
        "origins": repr(operations.origins_of(schema)),
    }
    package = f"nodes/{schema.name}"
    scope = [f"{package}/**", f"tests/test_{schema.name}*.py", f"tests/{schema.name}*.json"]
    carried.write_json("allowlist.json", {"patterns": scope})
    stubs = "\n".join(_function(schema, operation) for operation in schema.operations)
    used = operations.names_used(stubs)
    imports = f"from .shaping import {', '.join(used)}\n" if used else ""
    further = operations.names_in(stubs).intersection(("Told", "credential"))
    imports += f"from .transport import {', '.join(['Send', *sorted(further)])}"
    methods = typed.methods_of(schema, inputs, _about)
    pages = {each.key: _paging(each) for each in schema.operations if each.paging is not None}
    values |= {"stubs": stubs, "imports": imports, "methods": methods} | _names(has_pages=bool(pages))
    values["distribution"] = f"node-{schema.name.replace('_', '-').strip('-')}"
    for name in (*FILES, "paging.py") if pages else FILES:
        template = Template((TEMPLATES / f"{name.replace('__', '')}.tmpl").read_text(encoding="utf-8"))
        carried.write_project({f"{package}/{name}": template.substitute(values)})
    carried.write_project({f"{package}/README.md": typed.page_of(schema, inputs, _plain)})
    if used or pages:
        own = Path(pipelines.shaping.__file__).read_text(encoding="utf-8")
        carried.write_project({f"{package}/shaping.py": own})
    functions = {operation.key: operation.function for operation in schema.operations}
    carried.write_json(
        f"{pipelines.PROJECT}{package}/schema.json", {"functions": functions, "inputs": inputs, "pages": pages}
    )
    written = len(schema.operations) - len(schema.to_write())
    by_template = f"{written:,} by template, " if written else ""
    told = f"{package}: {by_template}{count_noun(len(functions) - written, 'operation')} to write"
    return SkillResult(summary=told, artifacts=carried.artifacts())


def _paging(operation: pipelines.Operation) -> dict[str, Any]:
    """Return what a node has to know to ask for further pages: also the parts of a query that authenticate it."""
    told = operation.paging.model_dump(mode="json") if operation.paging is not None else {}
    return told | {"keep": [sent.removeprefix("query ") for sent in operation.security if sent.startswith("query ")]}


def _names(*, has_pages: bool) -> dict[str, str]:
    """Return what the package and its client import if the node has operations with further pages."""
    names = ["OPERATIONS", "ApiError", "Client", "InputError", "run"]
    if not has_pages:
        return {"names": _listed(names)} | dict.fromkeys(("iterator", "paging", "pages_import", "pages_method"), "")
    return {
        "names": _listed([*names[:-1], "PagingError", "pages", "run"]),
        "iterator": "from collections.abc import Iterator\n",
        "paging": "from .paging import PagingError, pages\n",
        "pages_import": "from .paging import pages\n",
        "pages_method": typed.PAGES,
    }


def _listed(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _function(schema: pipelines.NodeSchema, operation: pipelines.Operation) -> str:
    about = _about(operation)
    if operation.template is not None:
        return operations.code_of(operation, about)
    if not schema.missing_of(operation):
        return documented.code_of(schema, operation, about)
    return (
        f"\ndef {operation.function}(parameters: dict[str, Any], send: Send) -> Any:\n"
        f'    """{about}."""\n'
        f'    raise NotImplementedError("{operation.key}")\n'
    )


def _about(operation: pipelines.Operation) -> str:
    return _plain(operation.description or operation.name or operation.key)


def _plain(text: str) -> str:
    """Escape *text* for use inside quotes: text from a source must not become code."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return truncate(" ".join(shown.split()).replace("\\", "/").replace('"', "'"), MAX_ABOUT_CHARS)
