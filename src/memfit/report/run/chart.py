"""The chart of a run as a plotly figure of plain dicts and lists.

It holds no colours: each part names its role (`meta` of a trace, `name` of a shape or an
annotation), and the page paints roles in the colours of the scheme in use.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from statistics import median
from typing import Any

from memfit.diagnose.diagnosis import Diagnosis, Run
from memfit.diagnose.growth.phases import Phase
from memfit.diagnose.growth.series import Point
from memfit.diagnose.killed import format_rate
from memfit.record.recording import Recording
from memfit.report.run.chart_curves import Curve, find_curves, thin_curve
from memfit.report.run.chart_scale import Scale, make_scale, memory_axis, time_axis
from memfit.units import format_duration, format_size

_MOST_EPOCH_LINES = 60
# More bands of one kind than this: those too narrow to be seen are left out.
_MOST_BANDS = 60
_NARROWEST_SHARE = 1 / 200
# A limit further up than this would squash the curves.
_NEAR_SHARE = 0.4
# Lines through fewer points than this show the points too.
_FEW_POINTS = 60
# Height of the panel of devices, with its title above it.
_DEVICE_SHARE = 0.3
# The widest first, so that what happens within lies on top.
_BAND_KINDS = ("fit", "train_on_batch", "validation", "evaluate", "predict")

Plain = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart and what its caption needs to know.

    Attributes:
        figure: The figure, `data` and `layout`, as plotly.js takes them.
        peak_bytes: The highest RSS drawn.
        bands: Kinds of phases that are shaded.
        epochs_per_line: An epoch line stands for so many epochs; `None` without epochs.
        is_limit_hidden: Whether the limit is too far up to be drawn at first.
        has_devices: Whether there is a second panel.
    """

    figure: Plain
    peak_bytes: int
    bands: tuple[str, ...] = ()
    epochs_per_line: int | None = None
    is_limit_hidden: bool = False
    has_devices: bool = False


def build_chart(run: Run) -> Chart | None:
    """Returns the chart of a run, or `None` if no memory was measured."""
    recording, diagnosis = run.recording, run.diagnosis
    curves = [thin_curve(curve) for curve in find_curves(run)]
    host = [curve for curve in curves if not curve.is_device]
    device = [curve for curve in curves if curve.is_device]
    if not host or not diagnosis.points:
        return None
    scale = make_scale(recording, host)
    peak = max(diagnosis.points, key=lambda point: point.rss_bytes)
    bands = _choose_bands(diagnosis.phases, scale)
    epochs = [phase for phase in diagnosis.phases if phase.name == "epoch"]
    epochs_per_line = _choose_step(len(epochs))
    data = [_trace(curve, scale) for curve in host]
    data += [_trace(curve, make_scale(recording, device)) for curve in device]
    data += [*_growth_line(diagnosis, scale), *_limit_line(diagnosis, scale)]
    layout = _layout(recording, scale, device)
    layout["shapes"] = [_band(phase, scale) for phase in bands]
    layout["shapes"] += [_epoch_line(phase, scale) for phase in epochs[::epochs_per_line]]
    layout["annotations"] += [_peak_label(peak, scale), *_limit_labels(diagnosis, scale, peak)]
    return Chart(
        figure={"data": data, "layout": layout},
        peak_bytes=peak.rss_bytes,
        bands=tuple(dict.fromkeys(phase.name for phase in bands)),
        epochs_per_line=epochs_per_line if epochs else None,
        is_limit_hidden=diagnosis.limit is not None and not _is_limit_near(diagnosis, scale),
        has_devices=bool(device),
    )


def _layout(recording: Recording, scale: Scale, device: Sequence[Curve]) -> Plain:
    layout: Plain = {
        "uirevision": "keep",  # a repaint keeps the zoom
        "hovermode": "x unified",
        "margin": {"l": 8, "r": 12, "t": 36, "b": 8},  # the buttons stand above
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        "xaxis": time_axis(scale),
        "yaxis": memory_axis(scale),
        "annotations": [],
    }
    if device:
        layout["yaxis"]["domain"] = [_DEVICE_SHARE + 0.1, 1]
        layout["yaxis2"] = memory_axis(make_scale(recording, device))
        layout["yaxis2"]["domain"] = [0, _DEVICE_SHARE]
        layout["xaxis"]["anchor"] = "y2"
        layout["hoversubplots"] = "axis"
        layout["annotations"].append(_device_title())
    return layout


def _trace(curve: Curve, scale: Scale) -> Plain:
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(curve.t_s) < _FEW_POINTS else "lines",
        "name": _escape(curve.name),
        "meta": curve.role,
        "x": [scale.x(t_s) for t_s in curve.t_s],
        "y": [scale.y(size_bytes) for size_bytes in curve.size_bytes],
        "yaxis": "y2" if curve.is_device else "y",
        "hovertemplate": "%{y}",
        "line": {"width": 2.25 if curve.role == "rss" else 1.5},
        "marker": {"size": 4},
    }


def _growth_line(diagnosis: Diagnosis, scale: Scale) -> list[Plain]:
    """The slope, laid through the memory held of the part of the run that it was found in."""
    growth = diagnosis.growth
    if growth is None:
        return []
    levels_bytes = [
        point.held_bytes - growth.bytes_per_s * (point.t_s - growth.begin_t_s)
        for point in diagnosis.points
        if growth.begin_t_s <= point.t_s <= growth.end_t_s
    ]
    if not levels_bytes:
        return []
    first_bytes = median(levels_bytes)
    last_bytes = first_bytes + growth.bytes_per_s * (growth.end_t_s - growth.begin_t_s)
    line = {
        **_dashed("growth"),
        "name": f"growth +{format_rate(growth)}",
        "x": [scale.x(growth.begin_t_s), scale.x(growth.end_t_s)],
        "y": [scale.y(first_bytes), scale.y(last_bytes)],
    }
    return [line]


def _limit_line(diagnosis: Diagnosis, scale: Scale) -> list[Plain]:
    if diagnosis.limit is None:
        return []
    line = {
        **_dashed("limit"),
        "x": [scale.x(scale.begin_t_s), scale.x(scale.end_t_s)],
        "y": [scale.y(diagnosis.limit.limit_bytes)] * 2,
        "showlegend": False,
        "visible": _is_limit_near(diagnosis, scale),
    }
    return [line]


def _limit_labels(diagnosis: Diagnosis, scale: Scale, peak: Point) -> list[Plain]:
    """The label on the line, away from that of the peak; and one for a line too far up."""
    limit = diagnosis.limit
    if limit is None:
        return []
    is_near = _is_limit_near(diagnosis, scale)
    text = f"limit {format_size(limit.limit_bytes)}"
    shared: Plain = {"name": "limit", "showarrow": False, "xref": "paper", "yanchor": "bottom"}
    left: Plain = {"x": 0, "xanchor": "left"}
    side: Plain = left if scale.share(peak.t_s) > 0.5 else {"x": 1, "xanchor": "right"}
    at_line = {**shared, **side, "text": text, "y": scale.y(limit.limit_bytes)}
    above = {**shared, **left, "text": f"↑ {text}", "yref": "paper", "y": 1}
    return [{**at_line, "visible": is_near}, {**above, "visible": not is_near}]


def _is_limit_near(diagnosis: Diagnosis, scale: Scale) -> bool:
    limit = diagnosis.limit
    return limit is not None and scale.top_bytes >= _NEAR_SHARE * limit.limit_bytes


def _dashed(role: str) -> Plain:
    line = {"width": 2.5, "dash": "dash"}
    return {"type": "scatter", "mode": "lines", "meta": role, "hoverinfo": "skip", "line": line}


def _choose_bands(phases: Sequence[Phase], scale: Scale) -> list[Phase]:
    narrowest_s = (scale.end_t_s - scale.begin_t_s) * _NARROWEST_SHARE
    chosen = []
    for kind in _BAND_KINDS:
        bands = [phase for phase in phases if phase.name == kind]
        if len(bands) > _MOST_BANDS:
            bands = [phase for phase in bands if phase.duration_s >= narrowest_s]
        chosen += bands
    return chosen


def _band(phase: Phase, scale: Scale) -> Plain:
    ends = {"x0": scale.x(phase.begin_t_s), "x1": scale.x(phase.end_t_s)}
    return {**_upright("rect"), **ends, "name": f"band-{phase.name}", "line": {"width": 0}}


def _choose_step(num_epochs: int) -> int:
    """1, 2, 5, 10, 20, 50 and so on: the first that leaves few enough lines."""
    steps = (int(digit * 10.0**power) for power in count() for digit in (1, 2, 5))
    return next(step for step in steps if num_epochs <= step * _MOST_EPOCH_LINES)


def _epoch_line(phase: Phase, scale: Scale) -> Plain:
    at = scale.x(phase.begin_t_s)
    return {**_upright("line"), "x0": at, "x1": at, "name": "epoch-line", "line": {"width": 1}}


def _upright(shape: str) -> Plain:
    return {"type": shape, "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}


def _peak_label(peak: Point, scale: Scale) -> Plain:
    when = format_duration(peak.t_s - scale.begin_t_s)
    return {
        "name": "peak",
        "text": f"peak {format_size(peak.rss_bytes)} at {when}",
        "x": scale.x(peak.t_s),
        "y": scale.y(peak.rss_bytes),
        "ax": 0,
        "ay": -26,
        "xanchor": _choose_anchor(scale.share(peak.t_s)),
        "arrowhead": 6,
        "arrowwidth": 1.2,
    }


def _device_title() -> Plain:
    place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": _DEVICE_SHARE}
    return {**place, "yanchor": "bottom", "name": "muted", "text": "devices", "showarrow": False}


def _choose_anchor(share: float) -> str:
    """A label hangs towards the middle of the chart."""
    if share < 0.35:
        return "left"
    return "right" if share > 0.65 else "center"


def _escape(text: str) -> str:
    """Plotly reads a small HTML in its texts; names from a recording must stay text."""
    return html.escape(text, quote=False)
