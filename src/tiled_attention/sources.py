"""Which source files a module's results depend on, found by reading imports, running nothing."""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = "tiled_attention"
SRC = Path(__file__).resolve().parents[1]
ROOT = SRC.parent
DATA = (".css", ".j2", ".yaml")  # files beside modules that count; an editor's leftovers do not


class SourceError(Exception):
    """A dotted path names nothing that is there."""


def closure(modules: Iterable[str]) -> dict[str, str]:
    """Return {path under src/: SHA-256} of every package file that importing `modules` reads.

    A package's __init__.py belongs to its modules. Imports under `if __name__ == "__main__":`
    and `if TYPE_CHECKING:` do not run on import, and so do not count: a step's plumbing (Hydra,
    the store) is there, and can change without making results old. Templates, tables and style
    sheets beside a package's modules (`DATA`) count for that package.

    Raises:
        SourceError: a module of the package is not there.
    """
    found: set[Path] = set()
    waiting = list(modules)
    while waiting:
        for path in _files(waiting.pop()):
            if path not in found:
                found.add(path)
                if path.suffix == ".py":
                    waiting += imports(path)
    return {str(path.relative_to(SRC)): _digest(path) for path in sorted(found)}


def constructor_options(target: str) -> dict[str, str]:
    """Return {option: annotation} of the dataclass that `target` names, from its source.

    Options of base classes come first, as in the constructor.

    Raises:
        SourceError: no such module or class, or one outside the package (its source could not
            be part of a result's version).
    """
    module, _, name = target.rpartition(".")
    if module.split(".")[0] != PACKAGE:
        raise SourceError(f"must lie in {PACKAGE}, so that its source is part of the version")
    path = _module_file(module)
    if path is None:
        raise SourceError(f"no module {module}")
    for node in _parse(path).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            options: dict[str, str] = {}
            for base in node.bases:
                options |= constructor_options(_qualified(ast.unparse(base), path, module))
            return options | {
                item.target.id: ast.unparse(item.annotation)
                for item in node.body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            }
    raise SourceError(f"no class {name} in {module}")


def _qualified(name: str, path: Path, module: str) -> str:
    """Return the dotted path of a class that is named in a module."""
    for node in _parse(path).body:
        if isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return f"{node.module}.{alias.name}"
    return f"{module}.{name}"


def imports(path: Path) -> list[str]:
    """Return the package's modules that importing the file imports, directly."""
    module = path.relative_to(SRC).with_suffix("").parts
    package = module[:-1]
    found: list[str] = []
    for node in _run_on_import(_parse(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package[: len(package) - node.level + 1]
                base = ".".join([*parent, *([base] if base else [])])
            # `from package import name` imports a module where there is one of that name.
            names = [f"{base}.{alias.name}" for alias in node.names]
            found += [base, *(name for name in names if _module_file(name))]
    return [name for name in found if name.split(".")[0] == PACKAGE]


def _run_on_import(tree: ast.Module) -> Iterator[ast.AST]:
    """Walk the tree, leaving out the bodies that importing never runs."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test) in (
            "__name__ == '__main__'",
            "TYPE_CHECKING",
        ):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def _files(module: str) -> Iterator[Path]:
    """Yield the module's file, its parents' __init__.py and the data files of its package."""
    path = _module_file(module)
    if path is None:
        raise SourceError(f"no module {module}")
    yield path
    for parent in path.parents:
        if parent == SRC:
            break
        if (parent / "__init__.py").exists():
            yield parent / "__init__.py"
    if path.parent != SRC / PACKAGE:
        yield from (
            other
            for other in path.parent.iterdir()
            if other.is_file() and other.suffix in DATA and not other.name.startswith(".")
        )


def _module_file(module: str) -> Path | None:
    if not all(part.isidentifier() for part in module.split(".")):
        return None
    base = SRC.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def _parse(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        place = f"{path.relative_to(ROOT)}, line {error.lineno}"
        raise SourceError(f"{place}: {error.msg}") from None


@cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
