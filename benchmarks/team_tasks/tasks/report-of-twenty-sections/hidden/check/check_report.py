"""Compare the delivered report with what the notes hold."""

import json
import re
from pathlib import Path

EXPECTED = json.loads(Path("expected.json").read_text())


def main() -> None:
    text = Path("delivered/report.md").read_text()
    summary, *sections = re.split(r"(?m)^## (?=\d\d )", text)
    faults = []
    for name in sorted(EXPECTED, key=lambda name: -EXPECTED[name]["highest"])[:3]:
        if name not in summary:
            faults.append(f"the summary lacks {name}, one of the three highest")
    if [section.partition("\n")[0].strip() for section in sections] != [f"{fact['number']:02} {name}" for name, fact in EXPECTED.items()]:
        faults.append("the headings are not those of the twenty gauges in order")
    for section, (name, fact) in zip(sections, EXPECTED.items()):
        wanted = [rf"\b{fact['highest']}\b", fact["day"], rf"\b{fact['days']}\b", rf"gauge-{fact['number']:02}\.md:L?{fact['line']}\b"]
        means = "|".join(re.escape(f"{fact['mean'] + step / 10:.1f}") for step in (-1, 0, 1))
        faults += [f"{name}: no {pattern}" for pattern in [*wanted, means] if not re.search(pattern, section)]
        if len(section.split()) < 50:
            faults.append(f"{name}: only {len(section.split())} words")
    print("\n".join(faults) or f"{len(sections)} sections hold")


main()
