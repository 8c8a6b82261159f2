"""The stamp beside a report: which version of the figures or the report is rendered."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from tiled_attention.plan import Plan
from tiled_attention.store import write_text


def write_stamp(plan: Plan, step: str, files: Iterable[Path]) -> None:
    """Write the stamp of a rendered step, in place of those of earlier versions.

    It holds no time, so that rendering the same thing again gives the same bytes.
    """
    stamp = plan.stamp(step)
    for older in stamp.parent.glob(f"{step}-*.json"):
        if older != stamp:
            older.unlink()
    record = {
        "step": step,
        "version": plan.rendered[step].version,
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
    }
    write_text(stamp, json.dumps(record, indent=1) + "\n")
