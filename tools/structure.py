"""Measure the structure of src/maxmargin: files, code lines, imports, comments.

Usage: python tools/structure.py. The exit code is 1 if a file has more than 450 lines.

All imports are counted, also inside functions, except those under `if TYPE_CHECKING`. Code lines are all lines except
blank lines, comments and docstrings.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "src" / "maxmargin"
NUMERICAL = (
    "algorithms",
    "certificates",
    "fit",
    "engine",
)  # folders with numerical code, whose comments are counted


@dataclass(frozen=True)
class Module:
    """Source file of the package.

    Attributes
    ----------
    name : str
        Dotted name without the package; empty for the package itself.
    path : Path
    lines, code, comments : int
    imports : frozenset of str
        Modules of the package that it imports.
    """

    name: str
    path: Path
    lines: int
    code: int
    comments: int
    imports: frozenset[str]


def modules(root: Path = ROOT) -> dict[str, Module]:
    """Read all modules of the package, by name."""
    paths = {_name(path, root): path for path in sorted(root.rglob("*.py"))}
    return {name: _module(name, path, frozenset(paths)) for name, path in paths.items()}


def _name(path: Path, root: Path) -> str:
    parts = list(path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _module(name: str, path: Path, known: frozenset[str]) -> Module:
    lines = path.read_text(encoding="utf-8").splitlines()
    tree = ast.parse("\n".join(lines))
    documented = set(_docstring_lines(tree))
    comments = code = 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if number in documented or not text:
            continue
        if text.startswith("#"):
            comments += 1
        else:
            code += 1
            comments += "  # " in line
    package = path.name == "__init__.py"
    found = {target for target in _imports(name, tree, package, known) if target and target != name}
    return Module(name, path, len(lines), code, comments, frozenset(found))


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.body and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            yield from range(first.lineno, (first.end_lineno or first.lineno) + 1)


def _imports(name: str, tree: ast.Module, package: bool, known: frozenset[str]) -> Iterator[str]:
    """Yield the modules of the package that a module imports."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    home = name.split(".") if name else []
    home = home if package else home[:-1]
    for node in ast.walk(tree):
        if id(node) in skipped or not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.Import):
            prefix = "maxmargin."
            yield from (alias.name[len(prefix) :] for alias in node.names if alias.name.startswith(prefix))
            continue
        module = node.module.split(".") if node.module else []
        if node.level:
            base = [*home[: len(home) - node.level + 1], *module]
        elif module[:1] == ["maxmargin"]:
            base = module[1:]
        else:
            continue
        for alias in node.names:
            inner, outer = ".".join([*base, alias.name]), ".".join(base)
            yield inner if inner in known else outer


def import_depth(found: dict[str, Module]) -> tuple[int, list[list[str]]]:
    """Return the number of modules in the longest chain of imports, and the import cycles."""
    depths: dict[str, int] = {}
    circles: list[list[str]] = []

    def depth(name: str, path: list[str]) -> int:
        if name in path:
            circles.append([*path[path.index(name) :], name])
            return 0
        if name not in depths:
            below = [depth(other, [*path, name]) for other in found[name].imports if other in found]
            depths[name] = 1 + max(below, default=0)
        return depths[name]

    return max(depth(name, []) for name in found if name), circles


def fullest_folder(found: dict[str, Module]) -> tuple[int, str]:
    """Return the largest number of files in one folder, and the folder."""
    counts: dict[str, int] = defaultdict(int)
    for module in found.values():
        counts[str(module.path.parent.relative_to(ROOT.parent))] += 1
    return max((count, folder) for folder, count in counts.items())


def measure(root: Path = ROOT) -> dict[str, int]:
    """Return the numbers that tests/project/test_structure.py checks."""
    found = modules(root)
    depth, circles = import_depth(found)
    return {
        "files in the package root": len(list(root.glob("*.py"))),
        "files in the fullest folder": fullest_folder(found)[0],
        "lines of the longest file": max(module.lines for module in found.values()),
        "files above 450 lines": sum(module.lines > 450 for module in found.values()),
        "code lines": sum(module.code for module in found.values()),
        "modules in the longest chain of imports": depth,
        "import circles": len(circles),
    }


def comment_share(found: dict[str, Module]) -> float:
    """Return the ratio of comments to code lines in the numerical folders."""
    numerical = [module for module in found.values() if module.name.split(".")[0] in NUMERICAL]
    return sum(module.comments for module in numerical) / sum(module.code for module in numerical)


if __name__ == "__main__":
    everything = modules()
    for what, number in measure().items():
        print(f"{number:>7}  {what}")
    print(f"{comment_share(everything):>7.3f}  comments per line of code in {', '.join(NUMERICAL)}")
    too_long = [module for module in everything.values() if module.lines > 450]
    for module in too_long:
        print(f"{module.lines:>7}  {module.path.relative_to(ROOT)}")
    raise SystemExit(bool(too_long))
