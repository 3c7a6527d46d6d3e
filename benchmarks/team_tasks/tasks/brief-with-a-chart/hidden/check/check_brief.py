"""Compare the delivered brief with the right figures, and look at its chart."""

import json
import re
import struct
from pathlib import Path

EXPECTED = json.loads(Path("expected.json").read_text())
TOLD = {"the month in cents": r"cent", "rows that were exported twice": r"twice|duplicate|again|early|second", "the missing days": r"missing|gap|no export|without"}


def numbers_in(text: str) -> list[float]:
    """All numbers of a text, such as 412,345 or 412.3, with k, thousand or million."""
    found = []
    for number, unit in re.findall(r"(\d[\d,. ]*\d|\d)\s*(k|thousand|million|m\b)?", text, re.IGNORECASE):
        plain = re.sub(r"[, ](?=\d{3})", "", number)
        try:
            factor = {"": 1, "k": 1e3, "thousand": 1e3}.get(unit.lower(), 1e6)
            found.append(float(plain) * factor)
        except ValueError:
            continue
    return found


def chart_fault(folder: Path) -> str:
    for path in [*folder.glob("chart.png"), *folder.glob("chart.svg")]:
        data = path.read_bytes()
        if path.suffix == ".svg":
            return "" if data.count(b"<path") + data.count(b"<polyline") + data.count(b"<rect") >= 3 else "the chart is empty"
        if data[:8] != b"\x89PNG\r\n\x1a\n" or min(struct.unpack(">II", data[16:24])) < 300:
            return "the chart is no picture of a useful size"
        return ""
    return "there is no chart"


def main() -> None:
    folder = Path("delivered")
    text = (folder / "brief.md").read_text()
    found = numbers_in(text)
    faults = [f"no {quarter} of about {total:,.0f}" for quarter, total in EXPECTED.items() if not any(abs(number - total) < 0.004 * total for number in found)]
    faults += [f"{what} are not told" for what, pattern in TOLD.items() if not re.search(pattern, text, re.IGNORECASE)]
    words = sum(any(map(str.isalnum, word)) for word in text.split())
    faults += [f"{words} words"] if words > 340 else []
    faults += [fault] if (fault := chart_fault(folder)) else []
    faults += [] if re.search(r"!\[.*\]\(\S*chart\.(png|svg)\)", text) else ["the chart is not embedded"]
    print("\n".join(faults) or "the brief holds")


main()
