"""Imports: light, in one direction, without side effects. Read from the source, so that lazy imports count too."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("rewards", "engines", "simulators", "envs", "trainers", "analysis")
WORDS = {path.stem for path in (ROOT / "duologue").glob("*.py")} - {"__init__", "__main__"}
"""Modules that stand in ``duologue`` itself, such as ``types``: what every part shares."""
LAYERS = dict.fromkeys(WORDS, 0) | {"rewards": 1, "engines": 1, "simulators": 2, "envs": 3}
LAYERS |= {"trainers": 4, "analysis": 5, "cli": 6, "__main__": 7}
PACKAGES = ["duologue", "duologue.cli", "duologue.envs.tasks", *(f"duologue.{part}" for part in PARTS)]
HEAVY = ("torch", "transformers", "trl", "peft", "sympy", "datasets", "matplotlib", "pandas")
SOURCES = sorted(
    path for folder in ("duologue", *PARTS) for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts
)
LOCAL_RNGS = {"default_rng", "Generator", "SeedSequence", "PCG64", "Random", "SystemRandom"}
CATCH_ALLS = {
    ("duologue/cli/flags.py", "command", "flags"),  # its signature is set to the fields of a dataclass
    ("trainers/grpo.py", "__init__", "trl_arguments"),  # TRL's trainer checks them
    ("trainers/grpo.py", "episode_reward", "_"),  # TRL passes every dataset column by keyword
    ("trainers/progress.py", "on_log", "_"),  # a callback's signature is transformers' own
}
DESCRIBES_ITSELF = {"duologue.__version__", "duologue.cli.app"}


def layer_of(path: Path) -> str:
    """Return the part that a source file belongs to."""
    relative = path.relative_to(ROOT)
    if relative.parts[0] != "duologue":
        return relative.parts[0]
    return relative.parts[1].removesuffix(".py")


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and dotted name of each import in a file, in functions too."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively. Write the full name."
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` for a chain of plain names, else ""."""
    if isinstance(node, ast.Name):
        return node.id
    before = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{node.attr}" if isinstance(node, ast.Attribute) and before else ""


def test_every_source_has_a_layer() -> None:
    assert {"types", "errors"} <= WORDS
    assert {layer_of(path) for path in SOURCES} - {"__init__"} == set(LAYERS)


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_is_light(package: str) -> None:
    code = f"import sys, {package}; print(*sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-I", "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    assert out.stderr == ""
    loaded = set(out.stdout.split())
    assert package in loaded
    assert not loaded & set(HEAVY)
    assert not loaded & set(PARTS), "a part was imported without duologue. in front of it"


def test_a_part_imports_only_what_stands_before_it() -> None:
    upward = []
    for path in SOURCES:
        own = layer_of(path)
        for line, name in imports_of(path):
            part = name.split(".")[1] if name.startswith("duologue.") else ""
            words = own in WORDS and part in WORDS
            if own != "__init__" and part in LAYERS and part != own and not words and LAYERS[part] >= LAYERS[own]:
                upward.append(f"{name_of(path)}:{line}: {own} imports {part}, which does not stand before it")
    assert not upward


def test_acts_stand_below_user_rates_and_those_below_fidelity() -> None:
    folder = ROOT / "analysis"
    acts = {name for path in (folder / "acts").glob("*.py") for _, name in imports_of(path)}
    assert not {name for name in acts if name.startswith("duologue.analysis.") and ".acts" not in name}
    assert not [name for _, name in imports_of(folder / "user_rates.py") if ".fidelity" in name]


def test_parts_are_imported_under_the_name_of_the_package() -> None:
    bare = [
        f"{name_of(path)}:{line} imports {name}"
        for path in SOURCES
        for line, name in imports_of(path)
        if name.partition(".")[0] in PARTS
    ]
    assert not bare


def test_the_root_imports_only_the_shared_words() -> None:
    names = [name for _, name in imports_of(ROOT / "duologue" / "__init__.py")]
    assert {name.rpartition(".")[0] for name in names} <= {"duologue.types", "duologue.errors"}


def test_the_shared_words_need_the_standard_library_alone() -> None:
    names = [name for word in WORDS for _, name in imports_of(ROOT / "duologue" / f"{word}.py")]
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names | {"duologue"}


def test_randomness_is_local() -> None:
    shared = []
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            name = dotted(node.func) if isinstance(node, ast.Call) else ""
            module, _, function = name.rpartition(".")
            draws = module in ("random", "np.random", "numpy.random") and function not in LOCAL_RNGS
            seeds = function == "set_seed" or (module.startswith("torch") and "seed" in function)
            if draws or seeds:
                shared.append(f"{name_of(path)}:{getattr(node, 'lineno', 0)} calls {name}")
    assert not shared


def test_no_public_function_swallows_misspelt_arguments() -> None:
    found = {
        (name_of(path), node.name, node.args.kwarg.arg)
        for path in SOURCES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef) and node.args.kwarg and (node.name[0] != "_" or node.name == "__init__")
    }
    assert not found - CATCH_ALLS, "name the arguments"
    assert not CATCH_ALLS - found, "these are gone; take them off the list"


def test_the_root_is_short() -> None:
    import duologue

    assert len(duologue.__all__) <= 25


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_unique_and_documented(package: str) -> None:
    module = import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    named = [name for name in module.__all__ if f"{package}.{name}" not in DESCRIBES_ITSELF]
    assert not [name for name in named if not docstring(package, name)], "write docstrings"


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_load(package: str) -> None:
    module = import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name


def docstring(package: str, name: str) -> str | None:
    """Return the docstring that stands where a public name is defined."""
    init = ROOT / package.replace(".", "/") / "__init__.py"
    home = next((found for _, found in imports_of(init) if found.rpartition(".")[2] == name), None)
    file = init if home is None else (ROOT / home.rpartition(".")[0].replace(".", "/")).with_suffix(".py")
    body = parsed(file).body
    for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return ast.get_docstring(ast.Module([after], []))
    return None
