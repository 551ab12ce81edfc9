"""What a matplotlib figure shows, as data: the `chart` of a result.

A figure with one pair of axes is one chart; with several it is a superchart of them. What kind of chart it is
follows from what was drawn. The words are those of the E2B SDKs.
"""
import datetime
import re

import numpy
from matplotlib import dates
from matplotlib.collections import PathCollection
from matplotlib.patches import PathPatch, Rectangle, Wedge

UNIT = re.compile(r"\s\((.*?)\)|\[(.*?)\]")


def chart_of(figure):
    axes = figure.axes
    if not any(a.has_data() for a in axes):
        return {}
    if len(axes) == 1:
        return chart_of_axes(axes[0])
    return {"type": "superchart", "title": title_of(figure), "elements": [chart_of_axes(a) for a in axes]}


def title_of(figure):
    if hasattr(figure, "get_suptitle"):
        return figure.get_suptitle() or None
    above = getattr(figure, "_suptitle", None)  # before matplotlib 3.8 there is no other way
    return (above.get_text() if above else None) or None


def chart_of_axes(axes):
    kind = kind_of(axes)
    chart = {"type": kind, "title": axes.get_title() or None, "elements": []}
    fill = FILL.get(kind)
    if fill:
        fill(axes, chart)
    return chart


def kind_of(axes):
    drawn = [*axes.lines, *axes.collections, *axes.patches, *axes.images, *axes.tables, *axes.artists]
    lines = len(axes.lines)
    if lines == len(drawn):
        return "line"
    if lines + sum(type(a) is PathPatch for a in axes.patches) == len(drawn):
        return "box_and_whisker"
    rest = [a for a in drawn if not (a in list(axes.lines) and is_straight(a))]
    for kind, of in (("scatter", PathCollection), ("pie", Wedge), ("bar", Rectangle)):
        if all(isinstance(a, of) for a in rest):
            return kind
    return "unknown"


def is_straight(line):
    """From one point to another, along an axis: help for the eye rather than data."""
    x, y = line.get_xdata(), line.get_ydata()
    return len(x) == 2 and len(y) == 2 and bool(x[0] == x[1] or y[0] == y[1])


def is_help(line, axes):
    """The same, of axhline() and axvline(), which span the axes whatever the data."""
    return is_straight(line) and line.get_transform() != axes.transData


# --- labels, units, ticks ---------------------------------------------------------------------------------------------


def add_labels(axes, chart, swap=False):
    """`swap`: what stands on the x axis of the words is on the y axis of the picture."""
    labels = [axes.get_xlabel() or None, axes.get_ylabel() or None]
    if swap:
        labels.reverse()
    for name, label in zip("xy", labels):
        chart[f"{name}_label"] = label
        unit = label and UNIT.search(label)
        chart[f"{name}_unit"] = (unit.group(1) or unit.group(2)) if unit else None


def is_dated(axis):
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    return isinstance(converter, dates.DateConverter) or type(converter).__module__ == "matplotlib.dates"


def add_ticks(axes, chart):
    for name, axis, scale in (("x", axes.xaxis, axes.get_xscale()), ("y", axes.yaxis, axes.get_yscale())):
        ticks, labels = axis.get_ticklocs(), [t.get_text() for t in axis.get_ticklabels()]
        chart[f"{name}_ticks"] = [point(t, axis) for t in ticks]
        chart[f"{name}_tick_labels"] = labels
        chart[f"{name}_scale"] = scale_of(axis, scale, ticks, labels)


def scale_of(axis, scale, ticks, labels):
    if is_dated(axis):
        return "datetime"
    if scale != "linear":
        return scale
    counted = all(tick == i and label != str(i) for i, (tick, label) in enumerate(zip(ticks, labels)))
    return "categorical" if counted else "linear"


def point(value, axis):
    """One coordinate: a number, a date as ISO 8601 has it, or the name of a category."""
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, numpy.datetime64):
        return str(value.astype("datetime64[s]"))
    if isinstance(value, str):
        return str(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return dates.num2date(number).isoformat() if is_dated(axis) else number


def rounded(value, digits=12):
    return float(f"{float(value):.{digits}g}")


# --- the kinds ----------------------------------------------------------------------------------------------------------


def points(axes, xs, ys):
    return [[point(x, axes.xaxis), point(y, axes.yaxis)] for x, y in zip(xs, ys)]


def fill_lines(axes, chart):
    add_labels(axes, chart)
    add_ticks(axes, chart)
    for line in axes.lines:
        if is_help(line, axes):
            continue
        label = str(line.get_label())
        if label.startswith("_child"):
            label = f"Line {label.removeprefix('_child')}"
        chart["elements"].append({"label": label, "points": points(axes, line.get_xdata(), line.get_ydata())})


def fill_scatter(axes, chart):
    add_labels(axes, chart)
    add_ticks(axes, chart)
    for collection in axes.collections:
        offsets = numpy.ma.filled(collection.get_offsets(), numpy.nan)
        chart["elements"].append({"label": str(collection.get_label()),
                                  "points": points(axes, offsets[:, 0], offsets[:, 1])})


def fill_bars(axes, chart):
    groups = [c for c in axes.containers if hasattr(c, "patches")]
    sideways = bool(groups) and all(getattr(g, "orientation", "vertical") == "horizontal" for g in groups)
    add_labels(axes, chart, swap=sideways)
    axis = axes.yaxis if sideways else axes.xaxis
    for group in groups:
        name = str(group.get_label())
        if name.startswith("_container"):
            name = f"Group {name.removeprefix('_container')}"
        for label, bar in zip(bar_labels(axis, group.patches, sideways), group.patches):
            value = bar.get_width() if sideways else bar.get_height()
            chart["elements"].append({"label": label, "group": name, "value": float(value)})


def bar_labels(axis, bars, sideways):
    """The names at the axis, in order, if there are as many as bars. Else: the place of each bar."""
    names = [t.get_text() for t in axis.get_ticklabels()]
    if len(names) == len(bars):
        return names
    middles = [b.get_y() + b.get_height() / 2 if sideways else b.get_x() + b.get_width() / 2 for b in bars]
    return [f"{rounded(m, 9):g}" if not is_dated(axis) else point(m, axis) for m in middles]


def fill_pie(axes, chart):
    for wedge in axes.patches:
        chart["elements"].append({
            "label": str(wedge.get_label()),
            "angle": rounded(abs(wedge.theta2 - wedge.theta1), 6),  # matplotlib has them in 32 bits
            "radius": float(wedge.r),
        })


def near(a, b, size):
    return abs(a - b) <= 1e-9 * max(abs(size), abs(a), abs(b), 1e-300)


class Box:
    """One box: along the axis of names from `near` to `far`, along that of values from q1 to q3."""

    def __init__(self, patch, flat):
        corners = patch.get_path().vertices
        across, along = (1, 0) if flat else (0, 1)
        self.left, self.right = corners[:, across].min(), corners[:, across].max()
        self.q1, self.q3 = corners[:, along].min(), corners[:, along].max()
        self.low, self.high, self.median, self.outliers = self.q1, self.q3, None, []

    def middle(self):
        return (self.left + self.right) / 2

    def take(self, line, flat):
        """A line that belongs to the box: a whisker, the median or the outliers. True: it is one."""
        across, along = line.get_xdata(), line.get_ydata()
        if flat:
            across, along = along, across
        if not len(across) or any(not self.left <= a <= self.right for a in across):
            return False
        width = self.right - self.left
        if str(line.get_linestyle()) in ("None", "none", "", " "):
            if all(near(a, self.middle(), width) for a in across):
                self.outliers += [rounded(v) for v in along]
        elif len(across) == 2 and near(across[0], across[1], width):
            self.low, self.high = min(self.low, *along), max(self.high, *along)
            return any(v in (self.q1, self.q3) for v in along)
        elif len(across) == 2 and along[0] == along[1] and near(abs(across[1] - across[0]), width, width):
            self.median = along[0]
        return False

    def data(self, label):
        values = {"min": self.low, "first_quartile": self.q1, "median": self.median, "third_quartile": self.q3,
                  "max": self.high}
        return {"label": label, **{k: None if v is None else rounded(v) for k, v in values.items()},
                "outliers": self.outliers}


def boxes_of(axes, flat):
    """All boxes, taken to lie on their sides or to stand; and how many whiskers fit."""
    boxes = [Box(p, flat) for p in axes.patches]
    whiskers = sum(box.take(line, flat) for box in boxes for line in axes.lines)
    return boxes, whiskers


def fill_boxes(axes, chart):
    standing, lying = boxes_of(axes, False), boxes_of(axes, True)
    flat = lying[1] > standing[1]
    add_labels(axes, chart, swap=flat)
    names = [t.get_text() for t in (axes.yaxis if flat else axes.xaxis).get_ticklabels()]
    boxes = (lying if flat else standing)[0]
    names += [str(i + 1) for i in range(len(names), len(boxes))]
    chart["elements"] = [box.data(name) for name, box in zip(names, boxes)]


FILL = {"line": fill_lines, "scatter": fill_scatter, "bar": fill_bars, "pie": fill_pie, "box_and_whisker": fill_boxes}
