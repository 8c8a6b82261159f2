"""The results store: a result is written whole or not at all, and read only if undamaged."""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiled_attention.sources import ROOT

if TYPE_CHECKING:
    import pandas as pd

PROVENANCE = "provenance.json"


class StoreError(Exception):
    """A result is missing, damaged or cannot be written."""


@dataclass(frozen=True)
class Stored:
    """One result on disk."""

    folder: Path

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Where the result came from.

        Raises:
            StoreError: the file is missing or damaged.
        """
        path = self.folder / PROVENANCE
        try:
            provenance = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StoreError(f"{shown(path)} cannot be read ({_reason(error)})") from None
        if not isinstance(provenance, dict) or not isinstance(provenance.get("files"), dict):
            raise StoreError(
                f"{shown(path)} is damaged: it names no files; "
                f"delete {shown(self.folder)} and run the same command again"
            )
        return provenance

    @property
    def step(self) -> str:
        """The step that made it."""
        return self.folder.parent.name

    @property
    def platform(self) -> str:
        """The platform it was made on."""
        return self.folder.parent.parent.name

    @property
    def version(self) -> str:
        """Its version."""
        return self.folder.name

    @property
    def identity(self) -> str:
        """Step, version and checksums of its tables: equal where the numbers are."""
        return json.dumps([self.step, self.version, self.provenance["files"]], sort_keys=True)

    def table(self, name: str = "result") -> "pd.DataFrame":
        """Return one of the result's tables.

        Raises:
            StoreError: the file is missing, or its bytes are not those that were written.
        """
        import pandas as pd  # here, so that planning needs no pandas

        path = self.folder / f"{name}.csv"
        expected = self.provenance["files"].get(path.name)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise StoreError(f"{shown(path)} cannot be read ({_reason(error)})") from None
        if expected != _digest(content):
            raise StoreError(
                f"{shown(path)} is damaged: its checksum is not the one in {PROVENANCE}; "
                f"delete {shown(self.folder)} and run the same command again"
            )
        if not content.strip():  # a table without columns
            return pd.DataFrame()
        text = self.provenance.get("text", {}).get(path.name, [])
        return pd.read_csv(
            path,
            dtype=dict.fromkeys(text, "str"),
            keep_default_na=False,
            na_values=[""],
            lineterminator="\n",  # so that a carriage return is text
        )

    def tables(self) -> "dict[str, pd.DataFrame]":
        """Return all tables, by name; raises as `table`."""
        return {Path(name).stem: self.table(Path(name).stem) for name in self.provenance["files"]}


def exists(folder: Path) -> bool:
    """Tell whether a whole result is there."""
    return (folder / PROVENANCE).is_file()


def write(
    folder: Path, tables: "Mapping[str, pd.DataFrame]", provenance: Mapping[str, Any]
) -> Stored:
    """Write a result under its version, all files at once.

    A result that another process finished first is kept, and returned.

    Raises:
        StoreError: nothing was written, and why.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    except OSError as error:
        raise StoreError(f"cannot write {shown(folder)} ({_reason(error)})") from None
    try:
        files, text = {}, {}
        for name, table in tables.items():
            content = table.to_csv(index=False, lineterminator="\n").encode()
            (half / f"{name}.csv").write_bytes(content)
            files[f"{name}.csv"] = _digest(content)
            text[f"{name}.csv"] = _text_columns(table)
        record = {**provenance, "files": files, "text": text}
        lines = json.dumps(record, indent=1, ensure_ascii=False)
        (half / PROVENANCE).write_text(lines + "\n", encoding="utf-8")
        half.chmod(0o755)
        if not exists(folder):
            shutil.rmtree(folder, ignore_errors=True)  # what is left of a result that is no more
        try:
            os.rename(half, folder)
        except OSError:
            if not exists(folder):
                raise
    except OSError as error:
        raise StoreError(f"cannot write {shown(folder)} ({_reason(error)})") from None
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return Stored(folder)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all.

    Raises:
        StoreError: it could not be written.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; raises as `write_text`."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half.write_bytes(content)
        os.replace(half, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            half.unlink()
        raise StoreError(f"cannot write {shown(path)} ({_reason(error)})") from None


def stored_results(root: Path, pattern: str = "*") -> Iterator[Stored]:
    """Yield every whole result of the platforms that match `pattern`, in a stable order."""
    for path in sorted(root.glob(f"{pattern}/*/*/{PROVENANCE}")):
        yield Stored(path.parent)


def shown(path: Path) -> str:
    """Return the path as seen from the repository's root."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def _text_columns(table: "pd.DataFrame") -> list[str]:
    """Return the columns that hold text, which CSV alone would not tell from numbers."""
    return [str(name) for name in table if table[name].map(lambda it: isinstance(it, str)).any()]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).splitlines()[0]
