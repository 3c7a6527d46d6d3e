"""Check the column `ean` of a stock list; print line, number and code of each one that is not in order."""

import csv
import sys


def code_of(number, earlier):
    """Return the code of a number, or "" if it is in order."""
    if not (number.isascii() and number.isdigit()):
        return "E3"
    if len(number) not in (8, 13):
        return "E1"
    digits = [int(char) for char in number]
    weighted = sum(digit * (3 if place % 2 == 0 else 1) for place, digit in enumerate(reversed(digits[:-1])))
    if (10 - weighted % 10) % 10 != digits[-1]:
        return "E2"
    return "E4" if number in earlier else ""


def main(path):
    earlier = set()
    with open(path, encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), 2):
            number = row["ean"].strip()
            if code := code_of(number, earlier):
                print(line, number, code, sep="\t")
            earlier.add(number)


if __name__ == "__main__":
    main(sys.argv[1])
