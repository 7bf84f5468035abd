"""A run as one HTML page that works offline, on a phone and on paper."""

import base64
import hashlib
import shlex
from collections import Counter

from jinja2 import Environment, PackageLoader, StrictUndefined

from memfit.diagnose.diagnosis import Diagnosis, Run
from memfit.record.recording import Recording
from memfit.report.run.chart import Chart, build_chart
from memfit.report.run.json import to_plain
from memfit.report.run.phase_rows import arrange_phases
from memfit.report.run.sentences import (
    caught_by_lint,
    evidence_of,
    explain,
    headline,
    place_of,
    share_of_growth,
)
from memfit.units import format_change, format_duration, format_size

# The kernel's mark is called higher than what was sampled from this share on.
_UNSEEN_SHARE = 0.02
# Overhead below this share is shown as that.
_LEAST_SHARE = 0.0001


def render_html(run: Run) -> str:
    """Returns the result of a run as one HTML file.

    Everything in a recording is untrusted: a script can have any name. Text is escaped by the
    template, the figure by `tojson`, and the policy of the page runs its own scripts only.
    """
    recording, diagnosis = run.recording, run.diagnosis
    environment = _make_environment()
    chart = build_chart(run)
    scripts = _read_scripts(environment) if chart else []
    page = environment.get_template("page.html").render(
        recording=recording,
        diagnosis=diagnosis,
        headline=headline(run),
        sentences=explain(run),
        summary=_summarise(recording),
        problems=[finding for finding in diagnosis.findings if finding.is_problem],
        calm=[finding for finding in diagnosis.findings if not finding.is_problem],
        chart=chart,
        unseen_peak_bytes=_find_unseen_peak(diagnosis, chart),
        phases=arrange_phases(diagnosis.phases),
        machine=_describe_machine(run),
        versions=to_plain(run)["versions"],
        settings=recording.header.settings if recording.header else {},
        troubles=Counter((trouble.where, trouble.message) for trouble in recording.troubles),
        style=_read(environment, "page.css"),
        scripts=scripts,
        script_hashes=[_hash(script) for script in scripts],
    )
    # A file name that is not UTF-8 comes in as lone surrogates, which no file can hold.
    return page.encode("utf-8", "replace").decode()


def _make_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("memfit.report.run", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "size": _format_size,
        "change": _format_change,
        "duration": format_duration,
        "evidence": _format_evidence,
        "evidence_of": evidence_of,
        "count_of": _format_count,
        "words": _format_words,
        "place": place_of,
        "share": share_of_growth,
        "caught_by_lint": caught_by_lint,
    }
    return environment


def _read_scripts(environment: Environment) -> list[str]:
    from plotly.offline import get_plotlyjs

    return [get_plotlyjs(), _read(environment, "chart.js")]


def _read(environment: Environment, name: str) -> str:
    """Returns a file of the page as it is: style and script are no templates."""
    loader = environment.loader
    return loader.get_source(environment, name)[0] if loader else ""


def _hash(script: str) -> str:
    """Returns how a content security policy names `script`."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _summarise(recording: Recording) -> dict[str, str]:
    header, software = recording.header, recording.software
    facts = {}
    if header is not None and header.command:
        facts["Command"] = shlex.join(header.command)
    facts["Duration"] = format_duration(recording.duration_s)
    if software is not None and software.backend is not None:
        versions = {software.backend: "", **software.versions}
        names = [name for name in (software.backend, "keras") if name in versions]
        facts["Backend"] = ", ".join(f"{name} {versions[name]}".rstrip() for name in names)
    return facts


def _describe_machine(run: Run) -> dict[str, str]:
    recording = run.recording
    header, software, limit = recording.header, recording.software, run.diagnosis.limit
    facts = {
        "Run": recording.name,
        "Platform": header.platform if header else None,
        "malloc": software.malloc if software else None,
        "Limit": f"{format_size(limit.limit_bytes)} ({limit.source})" if limit else None,
        "memfit's own time": _describe_overhead(run),
    }
    return {name: value or "unknown" for name, value in facts.items()}


def _describe_overhead(run: Run) -> str | None:
    probe_s = to_plain(run)["overhead"]["probe_s"]
    if probe_s is None or run.recording.duration_s <= 0:
        return None
    share = probe_s / run.recording.duration_s
    percent = f"{share:.2%}" if share >= _LEAST_SHARE else f"under {_LEAST_SHARE:.2%}"
    return f"{format_duration(probe_s)} of {format_duration(run.recording.duration_s)} ({percent})"


def _find_unseen_peak(diagnosis: Diagnosis, chart: Chart | None) -> int | None:
    """The kernel's own mark, where the samples missed it by more than a little."""
    if chart is None or diagnosis.peak_bytes is None:
        return None
    is_higher = diagnosis.peak_bytes > chart.peak_bytes * (1 + _UNSEEN_SHARE)
    return diagnosis.peak_bytes if is_higher else None


def _format_size(size_bytes: float | None) -> str:
    return "unknown" if size_bytes is None else format_size(size_bytes)


def _format_change(size_bytes: float | None) -> str:
    return "unknown" if size_bytes is None else format_change(size_bytes)


def _format_evidence(value: float | str | None, key: str) -> str:
    """Returns a figure in the unit that its name ends in."""
    if value is None:
        return "unknown"
    if isinstance(value, str):
        return value
    if key.endswith("_bytes"):
        return format_size(value)
    return format_duration(value) if key.endswith("_s") else f"{value:,}"


def _format_count(count: int, one: str = "", many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many}".rstrip()


def _format_words(key: str) -> str:
    """Returns the name of a figure or phase as words: its value has the unit."""
    return key.removesuffix("_bytes").removesuffix("_s").replace("_", " ")
