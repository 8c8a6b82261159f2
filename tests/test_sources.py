"""The closure of a module holds everything that importing it runs, and no more."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tiled_attention import sources
from tiled_attention.pipeline import RENDERED, STEPS

LOADED = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
files = [getattr(it, "__file__", None) for name, it in sys.modules.items()
         if name.split(".")[0] == "tiled_attention"]
print(json.dumps(files))
"""


@pytest.mark.parametrize("module", [step.module for step in (*STEPS.values(), *RENDERED.values())])
def test_nothing_that_is_imported_is_missed(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, module],
        env=os.environ | {"PYTHONPATH": str(sources.SRC)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {str(Path(file).relative_to(sources.SRC)) for file in json.loads(done.stdout)}
    assert loaded <= set(sources.closure([module]))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in which only `used.py` matters to `step.py`; importing it would raise."""
    root = tmp_path / "src" / "tiled_attention"
    files = {
        "__init__.py": "",
        "step.py": (
            "from typing import TYPE_CHECKING\n"
            "from tiled_attention.deep import used\n"
            "if TYPE_CHECKING:\n    from tiled_attention import only_typed\n"
            "def late():\n    from tiled_attention.lazy import thing\n"
            "raise RuntimeError('never run')\n"
            "if __name__ == '__main__':\n    from tiled_attention import plumbing\n"
        ),
        "deep/__init__.py": "from .relative import name\n",
        "deep/relative.py": "name = 1\n",
        "deep/used.py": "import os, tiled_attention.other\n",
        "deep/data.yaml": "a: 1\n",
        "other.py": "",
        "lazy.py": "thing = 1\n",
        "only_typed.py": "",
        "plumbing.py": "",
        "unrelated.py": "",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(sources, "SRC", tmp_path / "src")
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    return root


def test_closure_follows_what_runs(package: Path) -> None:
    found = {Path(name).relative_to("tiled_attention") for name in found_in(package)}
    assert {str(path) for path in found} == {
        "__init__.py",
        "step.py",
        "deep/__init__.py",
        "deep/relative.py",
        "deep/used.py",
        "deep/data.yaml",
        "other.py",
        "lazy.py",
    }


def found_in(package: Path) -> dict[str, str]:
    sources._parse.cache_clear()
    sources._digest.cache_clear()
    return sources.closure(["tiled_attention.step"])


def test_an_edit_shows_in_its_own_hash_only(package: Path) -> None:
    before = found_in(package)
    for name, edited in (("unrelated.py", set()), ("other.py", {"tiled_attention/other.py"})):
        (package / name).write_text('"""Edited."""\n')
        after = found_in(package)
        assert {file for file in before if before[file] != after[file]} == edited


def test_data_beside_a_module_counts_for_it(package: Path) -> None:
    before = found_in(package)
    (package / "deep" / "data.yaml").write_text("a: 2\n")
    (package / "beside.yaml").write_text("not read by any one module\n")
    after = found_in(package)
    assert {file for file in after if before.get(file) != after[file]} == {
        "tiled_attention/deep/data.yaml"
    }


@pytest.mark.parametrize(
    "name", [".used.py.swp", "used.py~", "#used.py#", ".data.yaml", "data.yaml.orig", "notes.txt"]
)
def test_leftovers_of_editors_do_not_count(package: Path, name: str) -> None:
    before = found_in(package)
    (package / "deep" / name).write_bytes(b"\0")
    assert found_in(package) == before


@pytest.mark.parametrize(
    ("line", "imported"),
    [
        ("import tiled_attention.other as another", {"other.py"}),
        ("from tiled_attention import other, lazy as late", {"other.py", "lazy.py"}),
        ("from . import other", {"other.py"}),
        ("from .deep import used", {"deep/__init__.py", "deep/used.py"}),
        ("from .deep.used import anything", {"deep/__init__.py", "deep/used.py"}),
        ("import tiled_attention.deep", {"deep/__init__.py"}),
        ("try:\n    import tiled_attention.other\nexcept ImportError:\n    pass", {"other.py"}),
        ("class A:\n    def f(self):\n        from . import other", {"other.py"}),
        ("if TYPE_CHECKING:\n    from . import other\nelse:\n    from . import lazy", {"lazy.py"}),
        ("if not TYPE_CHECKING:\n    from . import other", {"other.py"}),
        ("import torch, os.path\nfrom json import loads", set()),
        ("'from tiled_attention import other'", set()),
    ],
)
def test_every_form_of_import_is_followed(package: Path, line: str, imported: set[str]) -> None:
    (package / "step.py").write_text(line + "\n")
    (package / "deep" / "__init__.py").write_text("")
    (package / "deep" / "used.py").write_text("")
    names = {name.removeprefix("tiled_attention/") for name in found_in(package)}
    assert names - {"deep/data.yaml"} == imported | {"__init__.py", "step.py"}


def test_templates_and_figures_of_the_article_count_for_the_report() -> None:
    found = sources.closure(["tiled_attention.steps.report"])
    assert {
        "tiled_attention/report/report.md.j2",
        "tiled_attention/report/style.css",
        "tiled_attention/article/article.yaml",
    } <= set(found)


def test_missing_module_and_bad_syntax_are_named(package: Path) -> None:
    with pytest.raises(sources.SourceError, match=r"no module tiled_attention\.nope"):
        sources.closure(["tiled_attention.nope"])
    (package / "other.py").write_text("def broken(:\n")
    with pytest.raises(sources.SourceError, match=r"src/tiled_attention/other.py, line 1: "):
        found_in(package)


def test_constructor_options_come_from_the_source() -> None:
    module = "tiled_attention.implementations"
    assert sources.constructor_options(f"{module}.tiled.Tiled") == {"block_size": "int"}
    assert sources.constructor_options(f"{module}.naive.Naive") == {}
    for target, reason in (
        (f"{module}.tiled.Nope", "no class Nope"),
        (f"{module}.nope.Naive", "no module"),
        ("os.system", "must lie in tiled_attention"),
        ("Tiled", "must lie in tiled_attention"),
        ("tiled_attention..implementations.naive.Naive", "no module"),
    ):
        with pytest.raises(sources.SourceError, match=reason):
            sources.constructor_options(target)


def test_inherited_options_count(package: Path) -> None:
    (package / "other.py").write_text("class Base:\n    block_size: int = 64\n")
    (package / "step.py").write_text(
        "from tiled_attention.other import Base as Common\n"
        "class Middle(Common):\n    stages: int = 2\n"
        "class Last(Middle):\n    warps: int = 4\n"
    )
    sources._parse.cache_clear()
    found = sources.constructor_options("tiled_attention.step.Last")
    assert found == {"block_size": "int", "stages": "int", "warps": "int"}
