"""Charts as SVG: bars, stacked columns and curves, with axes that say what they count.

Colours are CSS variables of the page, so that they follow its light or dark scheme. Every mark has
a `<title>`, which browsers show under the pointer and screen readers read out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise

import msgspec

WIDTH, HEIGHT = 720, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 12, 48
_TICKS = 6
_ROW = 26
_LABELS = 230
"""Width of the names of horizontal bars."""
_FIGURES = 130
"""Width of the figures at their ends."""
_LEAST = 2.0
"""Size of a part that is there at all: one false trip among thousands of others must be seen."""


class Series(msgspec.Struct, frozen=True):
    """Points of one curve, in the order in which they are joined, and what each of them says."""

    name: str
    points: Sequence[tuple[float, float]]
    titles: Sequence[str]
    marked: int = -1
    """Which point is large, counted as in a list."""
    hollow: bool = False
    """It is dashed, its points are empty, and it lies over the others: both are seen."""


class Bar(msgspec.Struct, frozen=True):
    """A bar of two parts: the bad ones, and all others."""

    name: str
    bad: float
    other: float
    title: str


class Axis(msgspec.Struct, frozen=True):
    """An axis from 0: what it counts, in which unit, and how far it reaches."""

    label: str
    most: float
    whole: bool = False
    """Only whole numbers make sense."""


def curves(series: Sequence[Series], x: Axis, y: Axis, title: str) -> str:
    """Return curves of points, of which one is marked; between points nothing is gained.

    That is why a curve goes to the next point across, and only there up.
    """
    across, up = _scales(x, y)
    parts = [_frame(x, y, across, up)]
    for index, one in sorted(enumerate(series), key=lambda numbered: numbered[1].hollow):
        colour = f"var(--series-{index % 6})"
        dashes = ' stroke-dasharray="7 5"' if one.hollow else ""
        fill = f'fill="none" stroke="{colour}" stroke-width="1.5"'
        look, size = (fill, 4.5) if one.hollow else (f'fill="{colour}"', 2.5)
        path = " ".join(f"{across(px):.1f},{up(py):.1f}" for px, py in _stairs(one.points))
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'
        )
        for place, ((px, py), said) in enumerate(zip(one.points, one.titles, strict=True)):
            radius = size + 3.5 if place == one.marked % len(one.points) else size
            parts.append(
                f'<circle cx="{across(px):.1f}" cy="{up(py):.1f}" r="{radius:g}" {look}>'
                f"<title>{escape(said)}</title></circle>"
            )
    return _svg("".join(parts), title, HEIGHT)


def columns(bars: Sequence[Bar], width: int, x: Axis, y: Axis, title: str) -> str:
    """Return a histogram; the n-th column counts what lies in the n-th `width` of the axis."""
    across, up = _scales(x, y)
    parts = [_frame(x, y, across, up)]
    for place, bar in enumerate(bars):
        left, right = across(place * width) + 1, across((place + 1) * width) - 1
        base, total = up(0), bar.bad + bar.other
        for name, height in (("bad", bar.bad), ("other", bar.other)):
            if height:
                tall = max(up(0) - up(height), _LEAST)
                base -= tall
                parts.append(
                    f'<rect x="{left:.1f}" y="{base:.1f}" width="{max(right - left, 1):.1f}" '
                    f'height="{tall:.1f}" fill="var(--{name})">'
                    f"<title>{escape(bar.title)}</title></rect>"
                )
        if total:
            parts.append(_text((left + right) / 2, base - 3, f"{total:,.0f}", anchor="middle"))
    return _svg("".join(parts), title, HEIGHT)


def rows(bars: Sequence[Bar], x: Axis, title: str) -> str:
    """Return horizontal bars with their names at the left and their figures at the end."""
    inner = WIDTH - _LABELS - _FIGURES
    parts: list[str] = []
    for place, bar in enumerate(bars):
        top = _TOP + place * _ROW
        widths = [max(n / x.most * inner, _LEAST) if n else 0.0 for n in (bar.bad, bar.other)]
        parts.append(_text(_LABELS - 8, top + 15, bar.name, anchor="end"))
        parts.append(
            f"<g><title>{escape(bar.title)}</title>"
            f'<rect x="{_LABELS}" y="{top + 3}" width="{widths[0]:.1f}" height="{_ROW - 8}" '
            f'fill="var(--bad)"/><rect x="{_LABELS + widths[0]:.1f}" y="{top + 3}" '
            f'width="{widths[1]:.1f}" height="{_ROW - 8}" fill="var(--other)"/></g>'
        )
        end = _LABELS + sum(widths) + 6
        figures = f"{bar.bad + bar.other:,.0f}" + (f" ({bar.bad:,.0f} false)" if bar.bad else "")
        parts.append(_text(end, top + 15, figures))
    height = _TOP + len(bars) * _ROW + 30
    parts.append(_text(_LABELS + inner / 2, height - 8, x.label, anchor="middle"))
    return _svg("".join(parts), title, height)


def _stairs(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of a curve that goes across first, then up."""
    corners = list(points[:1])
    for (_, before), point in pairwise(points):
        corners += [(point[0], before), point]
    return corners


def ticks_to(most: float, *, whole: bool = False) -> list[float]:
    """Return round numbers, at even distances, from 0 to `most` or just above it."""
    if most <= 0:
        return [0.0, 1.0]
    rough = max(most / (_TICKS - 1), 1.0 if whole else 0.0)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough * (1 - 1e-9))
    return [step * n for n in range(math.ceil(most / step - 1e-9) + 1)]


def _scales(x: Axis, y: Axis) -> tuple[Callable[[float], float], Callable[[float], float]]:
    far, high = ticks_to(x.most, whole=x.whole)[-1], ticks_to(y.most, whole=y.whole)[-1]
    inner, tall = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
    return lambda v: _LEFT + v / far * inner, lambda v: HEIGHT - _BOTTOM - v / high * tall


def _frame(x: Axis, y: Axis, across: Callable[[float], float], up: Callable[[float], float]) -> str:
    """Return both axes with their ticks, grid and labels."""
    parts: list[str] = []
    base, left, right = up(0), across(0), WIDTH - _RIGHT
    for tick in ticks_to(y.most, whole=y.whole):
        at = up(tick)
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_text(left - 8, at + 4, f"{tick:,g}", anchor="end"))
    for tick in ticks_to(x.most, whole=x.whole):
        at = across(tick)
        parts.append(
            f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{base}" y2="{base + 5}"/>'
        )
        parts.append(_text(at, base + 18, f"{tick:,g}", anchor="middle"))
    parts.append(f'<line class="axis" x1="{left}" x2="{right}" y1="{base}" y2="{base}"/>')
    parts.append(_text((left + right) / 2, HEIGHT - 8, x.label, anchor="middle"))
    middle = (_TOP + base) / 2
    parts.append(
        f'<text x="14" y="{middle:.1f}" text-anchor="middle" '
        f'transform="rotate(-90 14 {middle:.1f})">{escape(y.label)}</text>'
    )
    return "".join(parts)


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(inner: str, title: str, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}">{inner}</svg>'
    )
