"""Report: the article's tables beside this run's, the claims judged, the exercises answered."""

from tiled_attention.evidence import Evidence
from tiled_attention.plan import Plan
from tiled_attention.report.render import html, markdown
from tiled_attention.stamps import write_stamp
from tiled_attention.store import write_text


def render(plan: Plan) -> None:
    """Write report.md and report.html, and then the stamp that names their version.

    Raises:
        StoreError: a result is missing or damaged, or a file cannot be written.
    """
    text = markdown(Evidence(plan))
    pages = {"report.md": text, "report.html": html(text, plan.report_folder())}
    files = plan.report_files()
    for path in files:
        write_text(path, pages[path.name])
    write_stamp(plan, "report", files)


if __name__ == "__main__":
    from tiled_attention.program import hydra_program

    hydra_program(render, __doc__)
