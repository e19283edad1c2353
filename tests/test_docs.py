"""The documentation is true: links lead somewhere, code runs, and no file speaks of the machine it was written on."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)
BLOCK = re.compile(r"(?:<!-- (?P<mark>[\w ]+) -->\n)?(?P<indent> *)```python\n(?P<code>.*?)\n *```", re.DOTALL)
MARKS = {"slow", "not run", None}
HOSTS = {
    "arxiv.org",
    "download.pytorch.org",
    "github.com",
    "huggingface.co",
    "keepachangelog.com",
    "semver.org",
    "www.apache.org",
}
"""Where links may lead; what is made up for an example is ``localhost``, an IP address or ``*.example``."""
MADE_UP = re.compile(r"localhost|[\d.]+|\[.*|(.*\.)?(example|invalid|test)(\.com|\.org)?|host|server")
MACHINE = re.compile(r"(?<![\w./:])/(work|root|home|Users|private|mnt|scratch)/[\w.]")
TEMPORARY = re.compile(r"(?<![\w.])/tmp/[\w.]")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(page: Path) -> str:
    """Return a page without its code blocks."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors that headings make, by GitHub's rule."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = target.partition("#")
        if re.match(r"\w+:", target):
            continue
        goal = (page.parent / path).resolve() if path else page
        if not goal.exists() or (anchor and goal.suffix == ".md" and anchor not in anchors(goal)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_named_exist(page: Path) -> None:
    parts = "duologue|envs|simulators|rewards|engines|trainers|analysis|examples|tests|benchmarks|docs"
    named = re.findall(rf"`((?:{parts})/[\w/.-]+)`", prose(page))
    assert not [name for name in named if not (ROOT / name).exists()]


def blocks(page: Path, slow: bool) -> str:
    """Return a page's python blocks as one program, as a reader would type them; lines are those of the page."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * (text.count("\n") + 1)
    for block in BLOCK.finditer(text):
        mark = block["mark"]
        assert mark in MARKS, f"{page.name}: a block is marked {mark!r}. Write one of {MARKS}."
        compile(dedented(block), page.name, "exec")
        if mark != "not run" and (slow or mark != "slow"):
            first = text.count("\n", 0, block.start("code"))
            code = dedented(block).split("\n")
            lines[first : first + len(code)] = code
    return "\n".join(lines)


def dedented(block: re.Match[str]) -> str:
    return "\n".join(line.removeprefix(block["indent"]) for line in block["code"].split("\n"))


def has_slow_blocks(page: Path) -> bool:
    return any(block["mark"] == "slow" for block in BLOCK.finditer(page.read_text(encoding="utf-8")))


def execute(page: Path, slow: bool, folder: Path) -> None:
    code = blocks(page, slow)
    runner = f"exec(compile({code!r}, {str(page)!r}, 'exec'), {{'__name__': 'example'}})"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", runner],
        cwd=folder,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,  # so that no child outlives pytest's own time-out
    )
    assert done.returncode == 0, f"{name_of(page)} has code that does not run:\n{done.stderr[-3000:]}"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, slow=False).strip()], ids=name_of)
def test_code_runs(page: Path, tmp_path: Path) -> None:
    execute(page, slow=False, folder=tmp_path)


@pytest.mark.slow
def test_slow_code_runs(tmp_path: Path) -> None:
    for page in filter(has_slow_blocks, PAGES):
        (tmp_path / page.name).mkdir()
        execute(page, slow=True, folder=tmp_path / page.name)


def test_every_python_block_is_seen() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert len(list(BLOCK.finditer(text))) == text.count("```python"), f"{page.name}: a block is not closed"


def texts() -> Iterator[tuple[Path, str]]:
    """Yield the text files of the repository."""
    if not (ROOT / ".git").exists():
        pytest.skip("the files of the repository are those that git lists")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
        path = ROOT / name
        if name and path.is_file() and not path.is_symlink() and path.suffix not in (".png", ".safetensors"):
            yield path, path.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["see /{}/main", "(/{}/x", '"/{}/.cache"'])
def test_the_rule_sees_such_folders(text: str) -> None:
    folders = ["home", "root", "Users"]
    assert all(MACHINE.search(text.format(folder)) for folder in folders)
    assert not any(MACHINE.search(f"https://a.example/{folder}/x and docs/{folder}/x") for folder in folders)


def test_no_file_names_a_folder_of_some_machine() -> None:
    found = []
    for path, text in texts():
        for pattern in (MACHINE, *([] if name_of(path).startswith("tests/") else [TEMPORARY])):
            found += [f"{name_of(path)}: {match[0]}" for match in pattern.finditer(text)]
    assert not found


def test_addresses_are_those_we_mean() -> None:
    found = []
    for path, text in texts():
        hosts = {host.lower() for host in re.findall(r"https?://(?:[^/@\s\"']*@)?([\w.\-]+|\[[\da-f:]+\])", text)}
        found += [f"{name_of(path)}: {host}" for host in hosts - HOSTS if not MADE_UP.fullmatch(host)]
    assert not found
