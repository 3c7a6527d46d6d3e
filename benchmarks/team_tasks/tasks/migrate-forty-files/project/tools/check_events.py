"""Say what is still to be done in an area: python3 tools/check_events.py billing"""

import ast
import csv
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def faults_of(path: str, wanted: set[tuple[str, str, str, str]]) -> list[str]:
    """Compare the events of a module with the catalogue: function, level, event, fields."""
    tree = ast.parse((ROOT / path).read_text())
    found, faults = set(), []
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            match call.func:
                case ast.Attribute(value=ast.Name(id="events"), attr=level):
                    fields = " ".join(sorted(str(keyword.arg) for keyword in call.keywords))
                    found.add((function.name, level, ast.unparse(call.args[0]).strip("'"), fields))
                case ast.Name(id="log"):
                    faults.append(f"{path}:{call.lineno}: still logs free text")
    faults += [f"{path}: {' '.join(each)} is not in the catalogue" for each in sorted(found - wanted)]
    return faults + [f"{path}: {' '.join(each)} is missing" for each in sorted(wanted - found)]


def main() -> None:
    area = sys.argv[1] if len(sys.argv) > 1 else ""
    wanted: dict[str, set[tuple[str, str, str, str]]] = {}
    for row in csv.DictReader((ROOT / "docs" / "events.csv").open()):
        fields = " ".join(sorted(row["fields"].split()))
        wanted.setdefault(row["module"], set()).add((row["function"], row["level"], row["event"], fields))
    chosen = {path: events for path, events in wanted.items() if path.startswith(f"shop/{area}")}
    faults = [fault for path, events in chosen.items() for fault in faults_of(path, events)]
    print("\n".join(faults) or f"{len(chosen)} modules are as the catalogue says")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
