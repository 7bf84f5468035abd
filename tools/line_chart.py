"""Curves of memory as SVG: panels side by side, on one scale."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#0f766e", "#c2410c", "#6d28d9")
_INK, _QUIET, _RULE, _PAPER = "#1f2937", "#6b7280", "#e5e7eb", "#ffffff"
_WIDTH, _HEIGHT = 860, 280
_STEPS_MB = (25, 50, 75, 100, 125, 150, 200, 250, 300, 400, 500, 600, 750, 1000)
_LEFT, _TOP, _BOTTOM, _GAP = 74, 58, 34, 22


@dataclass(frozen=True, slots=True)
class Line:
    """A curve.

    Attributes:
        name: What it shows; lines of one name share a colour and an entry of the legend.
        t_s: When each value was read.
        size_bytes: The values.
    """

    name: str
    t_s: Sequence[float]
    size_bytes: Sequence[int]


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart of its own in a picture.

    Attributes:
        title: What is above it.
        lines: Its curves.
        bands: Intervals of time to shade, from and to.
    """

    title: str
    lines: Sequence[Line]
    bands: Sequence[tuple[float, float]] = ()


def draw_panels(panels: Sequence[Panel], description: str) -> str:
    """Returns a picture of `panels`; memory has one scale in all of them, time one in each."""
    top_mb = _round_up(max(max(line.size_bytes) for one in panels for line in one.lines) / 1e6)
    names = list(dict.fromkeys(line.name for one in panels for line in one.lines))
    colours = dict(zip(names, COLOURS, strict=False))
    width = (_WIDTH - _LEFT - 12 - _GAP * (len(panels) - 1)) / len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(description)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="{_PAPER}" rx="6"/>',
        *_legend(colours),
    ]
    for number, panel in enumerate(panels):
        left = _LEFT + number * (width + _GAP)
        parts += _panel(panel, _Frame(left, width, top_mb, panel), colours, with_axis=number == 0)
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Frame:
    """Where a panel is, and how seconds and bytes become coordinates."""

    def __init__(self, left: float, width: float, top_mb: float, panel: Panel) -> None:
        self.left, self.width, self.top_mb = left, width, top_mb
        self.begin_s = min(line.t_s[0] for line in panel.lines)
        self.end_s = max(line.t_s[-1] for line in panel.lines)

    def x(self, t_s: float) -> float:
        return round(self.left + (t_s - self.begin_s) / (self.end_s - self.begin_s) * self.width, 1)

    def y(self, size_mb: float) -> float:
        height = _HEIGHT - _TOP - _BOTTOM
        return round(_HEIGHT - _BOTTOM - size_mb / self.top_mb * height, 1)


def _panel(
    panel: Panel, frame: _Frame, colours: dict[str, str], *, with_axis: bool
) -> Iterator[str]:
    yield _text(panel.title, frame.left, _TOP - 8, _INK, "start", weight=600)
    for begin_s, end_s in panel.bands:
        x, wide = frame.x(begin_s), frame.x(end_s) - frame.x(begin_s)
        high = _HEIGHT - _TOP - _BOTTOM
        yield f'<rect x="{x}" y="{_TOP}" width="{wide:.1f}" height="{high}" fill="#0f766e14"/>'
    for quarter in range(5):
        size_mb = frame.top_mb * quarter / 4
        y = frame.y(size_mb)
        yield (
            f'<line x1="{frame.left:.1f}" x2="{frame.left + frame.width:.1f}" y1="{y}" y2="{y}" '
            f'stroke="{_RULE}"/>'
        )
        if with_axis:
            yield _text(f"{size_mb:,.0f} MB", frame.left - 8, y + 4, _QUIET, "end")
    for line in panel.lines:
        points = " ".join(
            f"{frame.x(t_s)},{frame.y(size / 1e6)}"
            for t_s, size in zip(line.t_s, line.size_bytes, strict=True)
        )
        yield (
            f'<polyline points="{points}" fill="none" stroke="{colours[line.name]}" '
            f'stroke-width="2" stroke-linejoin="round"/>'
        )
    below = _HEIGHT - _BOTTOM + 18
    yield _text("0 s", frame.left, below, _QUIET, "start")
    length_s = frame.end_s - frame.begin_s
    yield _text(f"{length_s:.0f} s", frame.left + frame.width, below, _QUIET, "end")


def _legend(colours: dict[str, str]) -> Iterator[str]:
    left = float(_LEFT)
    for name, colour in colours.items():
        yield f'<rect x="{left:.0f}" y="17" width="14" height="4" rx="2" fill="{colour}"/>'
        yield _text(name, left + 20, 23, _INK, "start")
        left += 44 + 6.6 * len(name)


def _text(text: str, x: float, y: float, colour: str, anchor: str, weight: int = 400) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )


def _round_up(size_mb: float) -> float:
    """Returns a slightly larger size whose quarter is a round number."""
    return 4.0 * next(step for step in _STEPS_MB if 4 * step >= size_mb)
