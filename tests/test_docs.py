"""docs/ says what is so: every block of code runs and prints what is shown, every page is in the site."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, RunPython
from docs_page import FENCE, Block, blocks_of

DOCS = ROOT / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
SITE = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")

# Blocks that no test runs, each of which says so in its first line, and why.
NOT_RUN = {
    "plotting.md": ["it goes on until it is stopped"],
    "policies.md": ["drawing CartPole needs pygame"],
}


def blocks(page: str) -> list[Block]:
    return blocks_of((DOCS / page).read_text(encoding="utf-8"))


def pattern(shown: str) -> str:
    """A regular expression for an output that is shown, in which `...` stands for anything."""
    return ".*?".join(re.escape(part) for part in shown.split("..."))


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs_and_prints_what_is_shown(
    page: str, run_python: RunPython, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    env = {"NO_COLOR": "1", "COLUMNS": "100", "MPLBACKEND": "agg"}
    done = run_python(str(ROOT / "tests" / "docs_page.py"), str(DOCS / page), env=env, timeout=280)
    printed = json.loads(done.stdout.splitlines()[-1])
    known = blocks(page)
    assert len(printed) == len(known)
    for before, output, block in zip(known, printed, known[1:], strict=False):
        if block.language == "text" and output is not None:
            assert re.fullmatch(pattern(block.text), output, re.DOTALL), (
                f"line {before.line} prints\n{output}\nbut line {block.line} shows\n{block.text}"
            )


@pytest.mark.parametrize("page", PAGES)
def test_a_block_that_no_test_runs_says_why_and_is_listed(page: str) -> None:
    left_out = [block.why_not_run for block in blocks(page) if block.why_not_run]
    assert left_out == NOT_RUN.get(page, [])
    for block in blocks(page):
        if block.language == "python":
            compile(block.text, page, "exec")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_blocks_of_known_kinds_only(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert {block.language for block in blocks(page)} <= {"bash", "python", "text"}
    fences = re.findall("^```", text, re.MULTILINE)
    assert 2 * len(blocks(page)) == len(fences), "a block that is not seen here"
    outside = FENCE.sub("", text)
    indented = re.findall(r"(?<=\n\n)    [^\s|].*", outside)  # a table may stand in a list
    assert not indented, f"code without a fence, which nothing would run: {indented}"


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_installs_or_makes_is_there(page: str) -> None:
    extras = set(importlib.metadata.metadata("spinstat").get_all("Provides-Extra") or [])
    for block in blocks(page):
        for line in block.text.splitlines() if block.is_plan else ():
            if line.startswith("make "):
                plan = ["make", "-n", *line.partition("#")[0].split()[1:]]
                subprocess.run(plan, cwd=ROOT, capture_output=True, check=True)
            for named in re.findall(r"\[([\w,]+)\]", line):
                assert set(named.split(",")) <= extras, line


def test_the_site_has_every_page() -> None:
    named = re.findall(r"[\w-]+\.md", SITE[SITE.index("\nnav:") :])
    assert sorted(named) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_link_leads_to_a_file(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", text):
        assert (DOCS / link).exists(), link


def test_an_output_that_differs_is_noticed() -> None:
    assert re.fullmatch(pattern("a 1 ... s\n"), "a 1 0.25 s\n", re.DOTALL)
    assert not re.fullmatch(pattern("a 1 ... s\n"), "a 2 0.25 s\n", re.DOTALL)


def test_a_block_that_fails_fails_the_page(run_python: RunPython, tmp_path: Path) -> None:
    program = str(ROOT / "tests" / "docs_page.py")
    failing = ["```python\n1 / 0\n```\n", "```bash\npython -c 'raise SystemExit(3)'\n```\n"]
    for number, code in enumerate(failing):
        page = tmp_path / f"page{number}.md"
        page.write_text(f"```text\nnothing\n```\n\n{code}", encoding="utf-8")
        assert run_python(program, str(page), check=False).returncode != 0
