"""page.py - docs/compatibility.md from results.

  HOTCELL_COMPAT=all HOTCELL_COMPAT_RESULTS=R pytest tests/compat; tests/compat/page R

Checks that were not run (-k) keep what the page says of them.
"""

import json
import pathlib
import sys

import items

PAGE = items.HERE.parent.parent / "docs/compatibility.md"
COLUMNS = [(age, client) for client in items.CLIENTS for age in items.AGES]
HEAD = """# Compatibility with E2B's clients

Written by `tests/compat/page` from the results of [tests/compat](../tests/compat/README.md): the published packages,
unmodified, against a whole server. The items are the behaviour that the clients' own tests assert of a server, and
what users rely on besides. A check is named `FILE.FUNCTION`, in `tests/compat/checks_js` and `checks_py`.

`pass`, `FAIL`; `–`: this version of the client does not offer it; `?`: not run.

Clients may speak HTTP/1.1 or HTTP/2. What is sent to a port of a sandbox goes on as HTTP/1.1, so gRPC, which needs HTTP/2
and trailers from end to end, is refused with `grpc-status: 12` (UNIMPLEMENTED); grpc-web, Connect and WebSockets pass.
"""


def cell(check, age, client, known):
    if not check.is_offered(client, age):
        return "–"
    result = known.get((age, client, check.name))
    return {"pass": "pass", "fail": "FAIL", None: "?"}[result]


def line(cells):
    return f"| {' | '.join(cells)} |"


def rows(known):
    """CHECK -> cells, in the order of COLUMNS."""
    return {check.name: [cell(check, age, client, known) for age, client in COLUMNS]
            for item in items.load() for check in item.checks}


def column_titles():
    versions = items.versions()
    return [f"{items.TITLES[client]} {versions[age, client]}" for age, client in COLUMNS]


def summary(table):
    offered = [sum(row[n] != "–" for row in table.values()) for n in range(len(COLUMNS))]
    passed = [sum(row[n] == "pass" for row in table.values()) for n in range(len(COLUMNS))]
    return [line(["Client and version", "Checks that pass", "of"]), "|---|---|---|",
            *(line([title, str(p), str(o)]) for title, p, o in zip(column_titles(), passed, offered)), ""]


def text(known):
    table = rows(known)
    lines = [HEAD, *summary(table)]
    for item in items.load():
        lines += [f"## {item.number}. {item.title}", ""]
        if item.planned:
            lines += [f"Planned: {item.planned}.", ""]
            continue
        if item.note:
            lines += [item.note, ""]
        lines += [line(["Check", "What", *column_titles()]), "|---" * (len(COLUMNS) + 2) + "|"]
        lines += [line([f"`{c.name}`", c.title, *table[c.name]]) for c in item.checks] + [""]
    return "\n".join(lines).rstrip() + "\n"


def read(page):
    """CHECK -> cells, of a page as text."""
    found = {}
    for row in page.splitlines():
        cells = [c.strip() for c in row.strip("|").split("|")]
        if row.startswith("| `") and len(cells) == len(COLUMNS) + 2:
            found[cells[0].strip("`")] = cells[2:]
    return found


def known_of(results):
    return {(r["age"], r["client"], r["check"]): r["result"] for r in results}


def differences(results):
    """What the page says otherwise than items.toml, `versions` and these results."""
    page = PAGE.read_text() if PAGE.exists() else ""
    said, want = read(page), rows(known_of(results))
    missing = [title for title in column_titles() if title not in page]
    missing += [f"item {i.number}" for i in items.load() if f"## {i.number}. {i.title}\n" not in page]
    missing += sorted(set(want) ^ set(said))
    wrong = [f"{name} {COLUMNS[n]}: {said[name][n]}, was {value}" for name in set(want) & set(said)
             for n, value in enumerate(want[name]) if value not in ("?", said[name][n])]
    return missing + sorted(wrong)


def known_before():
    """What the page says already, of versions that are still those: it stays for checks that were not run."""
    page = PAGE.read_text() if PAGE.exists() else ""
    columns = [(n, key) for n, key in enumerate(COLUMNS) if column_titles()[n] in page]
    results = {"pass": "pass", "FAIL": "fail"}
    return {(*key, name): results[cells[n]] for name, cells in read(page).items() for n, key in columns
            if cells[n] in results}


def main(path):
    lines = pathlib.Path(path).read_text().splitlines()
    PAGE.write_text(text(known_before() | known_of(json.loads(x) for x in lines)))


if __name__ == "__main__":
    main(sys.argv[1])
