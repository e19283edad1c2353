"""What is built and installed is what stands in the repository."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

import duologue

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]
FOLDERS: dict[str, str] = SETUPTOOLS["package-dir"]
PARTS = sorted(FOLDERS.values())
DATA = (".jinja", ".jsonl", ".yaml", "py.typed")


def run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def folders_with_packages() -> set[str]:
    """Return the names under which folders with an ``__init__.py`` should install."""
    tops = {"duologue": "duologue"} | {folder: name for name, folder in FOLDERS.items()}
    inits = [init for top in tops for init in (ROOT / top).rglob("__init__.py")]
    paths = [init.parent.relative_to(ROOT) for init in inits]
    return {".".join((tops[path.parts[0]], *path.parts[1:])) for path in paths}


def data_files() -> set[str]:
    """Return the data files of all packages, under their installed paths."""
    names = {folder: name.replace(".", "/") for name, folder in FOLDERS.items()} | {"duologue": "duologue"}
    found = [path.relative_to(ROOT) for top in names for path in (ROOT / top).rglob("*") if path.name.endswith(DATA)]
    return {"/".join((names[path.parts[0]], *path.parts[1:])) for path in found}


def test_every_package_is_listed() -> None:
    assert len(set(SETUPTOOLS["packages"])) == len(SETUPTOOLS["packages"])
    assert set(SETUPTOOLS["packages"]) == folders_with_packages()


def test_no_folder_at_the_root_is_a_package_by_accident() -> None:
    assert {init.parent.name for init in ROOT.glob("*/__init__.py")} == {"duologue", *PARTS}


def test_every_part_is_typed() -> None:
    assert {f"{part}/py.typed" for part in ("duologue", *(f"duologue/{part}" for part in PARTS))} <= data_files()


@pytest.mark.parametrize("part", PARTS)
def test_links_for_type_checkers(part: str) -> None:
    link = ROOT / "duologue" / part
    assert link.is_symlink(), f"git checked duologue/{part} out as a file; turn core.symlinks on"
    assert os.readlink(link) == f"../{part}"
    assert f"duologue.{part}" in FOLDERS


def test_every_part_has_its_rules() -> None:
    tools = PROJECT["tool"]
    assert sorted(tools["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]) == PARTS
    assert sorted(tools["ruff"]["extend-exclude"]) == [f"duologue/{part}" for part in PARTS]
    assert sorted(tools["coverage"]["run"]["source"]) == sorted(["duologue", *PARTS])


def test_version() -> None:
    assert SETUPTOOLS["dynamic"]["version"] == {"attr": "duologue.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev)\d+)?", duologue.__version__)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with sdist and wheel of a copy of the working tree, without what git ignores."""
    if not (ROOT / ".git").exists():
        pytest.skip("the files to build are those that git lists")
    copy = tmp_path_factory.mktemp("copy")
    for name in run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT).split("\0"):
        if name and os.path.lexists(ROOT / name):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "."], copy)
    return copy / "dist"


@pytest.mark.slow
def test_the_wheel_holds_the_packages_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name == f"duologue-{duologue.__version__}-py3-none-any.whl"
    names = ZipFile(wheel).namelist()
    files = {name for name in names if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in files} == {"duologue"}
    assert {name for name in files if not name.endswith(".py")} == data_files()
    modules = {str(Path(name).parent).replace("/", ".") for name in files if name.endswith(".py")}
    assert modules == set(SETUPTOOLS["packages"])
    assert {name for name in data_files() if name.endswith((".jinja", ".jsonl"))}


@pytest.mark.slow
def test_the_sdist_holds_what_a_person_needs(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "Makefile", "CONTRIBUTING.md"} <= names
    assert {"tests/test_packaging.py", "benchmarks/__main__.py", "docs/benchmarks.md", "envs/__init__.py"} <= names
    assert not {name for name in names if "__pycache__" in name or name.startswith("runs/")}


@pytest.mark.slow
def test_the_installed_wheel_works_alone(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    run([*pip, "--disable-pip-version-check", "--target", str(tmp_path / "site"), str(wheel)], tmp_path)
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path / "site")!r})
import gymnasium as gym
import duologue.analysis, duologue.cli, duologue.engines, duologue.envs.tasks, duologue.rewards, duologue.trainers
env = gym.make("MediumDocEditChat-v0")
observation, info = env.reset(seed=1)
assert observation and not {{"envs", "rewards", "simulators"}} & set(sys.modules)
print(*sorted(m.__file__ for n, m in sys.modules.items() if n.partition(".")[0] == "duologue"), sep="\\n")
"""
    files = run([sys.executable, "-I", "-W", "error", "-c", code], tmp_path).splitlines()
    assert len(files) > 20
    assert all(file.startswith(str(tmp_path / "site" / "duologue")) for file in files)
