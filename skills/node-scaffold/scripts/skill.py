"""Create the node's project from templates, and the allowlist of paths that later steps may change."""

from __future__ import annotations

from pathlib import Path
from string import Template

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
    }
    package = f"nodes/{schema.name}"
    scope = [f"{package}/**", f"tests/test_{schema.name}*.py", f"tests/{schema.name}*.json"]
    carried.write_json("allowlist.json", {"patterns": scope})
    stubs = "\n".join(_function(schema, operation) for operation in schema.operations)
    used = operations.names_used(stubs)
    imports = f"from .shaping import {', '.join(used)}\n" if used else ""
    imports += f"from .transport import {'Send, credential' if 'credential' in operations.words_in(stubs) else 'Send'}"
    methods = "".join(typed.method_of(each, inputs[each.key], _about(each)) for each in schema.operations)
    values |= {"stubs": stubs, "imports": imports, "methods": methods}
    values["distribution"] = f"node-{schema.name.replace('_', '-').strip('-')}"
    for name in ("__init__.py", "client.py", "node.py", "transport.py", "operations.py", "pyproject.toml"):
        template = Template((TEMPLATES / f"{name.replace('__', '')}.tmpl").read_text(encoding="utf-8"))
        carried.write_project({f"{package}/{name}": template.substitute(values)})
    carried.write_project({f"{package}/README.md": typed.page_of(schema, inputs, _plain)})
    if used:
        own = Path(pipelines.shaping.__file__).read_text(encoding="utf-8")
        carried.write_project({f"{package}/shaping.py": own})
    functions = {operation.key: operation.function for operation in schema.operations}
    carried.write_json(f"{pipelines.PROJECT}{package}/schema.json", {"functions": functions, "inputs": inputs})
    written = len(schema.operations) - len(schema.to_write())
    by_template = f"{written:,} by template, " if written else ""
    told = f"{package}: {by_template}{count_noun(len(functions) - written, 'operation')} to write"
    return SkillResult(summary=told, artifacts=carried.artifacts())


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
