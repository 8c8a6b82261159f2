"""`prune`: what is no longer current, and what killed runs left."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from tiled_attention.results.folders import current_versions, platform_folder
from tiled_attention.store import StoreError, exists, shown

HALF_WRITTEN_SECONDS = 3600


def prune(platform: str, delete: bool, overrides: list[str]) -> None:
    """List the platform's results that are not current, and delete them if told so.

    Raises:
        StoreError: no such platform, or a folder cannot be deleted.
    """
    folders = list(unneeded(platform_folder(platform), current_versions(overrides)))
    sizes = [sum(file.stat().st_size for file in folder.iterdir()) for folder in folders]
    for folder, size in zip(folders, sizes, strict=True):
        print(f"{shown(folder)}  {size / 1e3:,.1f} kB")
        if delete:
            _delete(folder)
    done = "freed" if delete else "would be freed; --yes deletes"
    print(f"{len(folders)} folders, {sum(sizes) / 1e3:,.1f} kB {done}")


def unneeded(platform: Path, current: set[tuple[str, str]]) -> Iterator[Path]:
    """Yield the folders of results that are not current, and of results never finished.

    What is unfinished may be in the making, until it is HALF_WRITTEN_SECONDS old.
    """
    for folder in sorted(path for path in platform.glob("*/*") if path.is_dir()):
        if (folder.parent.name, folder.name) in current:
            continue
        finished = not folder.name.startswith(".") and exists(folder)
        if finished or time.time() - folder.stat().st_mtime > HALF_WRITTEN_SECONDS:
            yield folder


def _delete(folder: Path) -> None:
    """Delete a folder; one that is interrupted leaves no half result behind."""
    going = folder if folder.name.startswith(".") else folder.with_name(f".{folder.name}.pruned")
    try:
        folder.rename(going)
        shutil.rmtree(going)
    except OSError as error:
        raise StoreError(f"cannot delete {shown(folder)} ({error.strerror})") from None
