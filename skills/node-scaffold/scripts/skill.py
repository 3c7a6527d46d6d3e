"""Create the node's project from templates, and the allowlist of paths that later steps may change."""

from __future__ import annotations

from pathlib import Path
from string import Template

from fireswarm import (
    SkillRequest,
    SkillResult,
    count_noun,
    pipelines,
)

TEMPLATES = Path(__file__).parents[1] / "references" / "templates"


def run(request: SkillRequest) -> SkillResult:
    """Return a package that checks its input and calls an operation; the operations are still stubs."""
    carried = pipelines.Carried.of(request)
    content = carried.json("node_schema.json")
    inputs = content.pop("inputs")
    schema = pipelines.NodeSchema.model_validate(content)
    values = {
        "name": schema.name,
        "key": f"{schema.name.upper()}_KEY",
        "display_name": _plain(schema.display_name or schema.name),
        "base_url": _plain(schema.base_url),
    }
    package = f"nodes/{schema.name}"
    carried.write_json("allowlist.json", {"patterns": [f"{package}/**", f"tests/test_{schema.name}*.py"]})
    stubs = "\n".join(_stub(operation) for operation in schema.operations)
    for name in ("__init__", "node", "transport", "operations"):
        template = Template((TEMPLATES / f"{name.strip('_')}.py.tmpl").read_text(encoding="utf-8"))
        carried.write_project({f"{package}/{name}.py": template.substitute(values, stubs=stubs)})
    functions = {operation.key: operation.function for operation in schema.operations}
    carried.write_json(f"{pipelines.PROJECT}{package}/schema.json", {"functions": functions, "inputs": inputs})
    return SkillResult(
        summary=f"{package}: {count_noun(len(functions), 'operation')} to write", artifacts=carried.artifacts()
    )


def _stub(operation: pipelines.Operation) -> str:
    about = _plain(operation.description or operation.name or operation.key)
    return (
        f"\ndef {operation.function}(parameters: dict[str, Any], send: Send) -> Any:\n"
        f'    """{about}."""\n'
        f'    raise NotImplementedError("{operation.key}")\n'
    )


def _plain(text: str) -> str:
    """Escape *text* for use inside quotes: text from a source must not become code."""
    return " ".join(text.split()).replace("\\", "/").replace('"', "'")
