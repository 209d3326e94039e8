"""Runs the code blocks of a page of documentation as a reader does who pastes one after the other.

    python docs_page.py PAGE    in a fresh folder; prints JSON: what each block printed on stdout, or null

Python blocks share one namespace. One that begins with a comment that is a file name, `# train.py`, is saved
under that name instead. Bash blocks are run by bash, in the same folder. A block that begins with
`# Not run: why` is left out.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its language, its text, the line of the page that the text begins on."""

    language: str
    text: str
    line: int

    @property
    def why_not_run(self) -> str | None:
        match = re.match(r"# Not run: (.+)\n", self.text)
        return match[1] if match else None

    @property
    def saved_as(self) -> str | None:
        match = re.match(r"# ([\w/]+\.py)\n", self.text)
        return match[1] if match and self.language == "python" else None

    @property
    def is_plan(self) -> bool:
        """Whether it installs or builds things, which the tests of a page do not."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        return self.language == "bash" and all(line.startswith(("pip ", "make ", "git ")) for line in lines)


def blocks_of(page: str) -> list[Block]:
    return [
        Block(match[1], match[2], page.count("\n", 0, match.start()) + 2) for match in FENCE.finditer(page)
    ]


def run(block: Block, name: str, namespace: dict[str, Any]) -> str | None:
    if block.language not in ("python", "bash") or block.why_not_run or block.is_plan:
        return None
    if block.saved_as:
        Path(block.saved_as).write_text(block.text, encoding="utf-8")
        return None
    if block.language == "bash":
        command = ["bash", "-euo", "pipefail", "-c", block.text]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"{name}, line {block.line}: exit {done.returncode}\n{block.text}{done.stdout}")
        return done.stdout
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), namespace)
    return printed.getvalue()


def main() -> None:
    path = Path(sys.argv[1])
    sys.path.insert(0, "")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = [run(block, path.name, namespace) for block in blocks_of(path.read_text(encoding="utf-8"))]
    print(json.dumps(printed))


if __name__ == "__main__":
    main()
