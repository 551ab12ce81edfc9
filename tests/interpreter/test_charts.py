"""Figures as data, beside what E2B's own extractor says of them where it is installed."""
import importlib.util
import pathlib

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

PATH = pathlib.Path(__file__).resolve().parents[2] / "guest/interpreter/kernels/python/charts.py"
spec = importlib.util.spec_from_file_location("charts", PATH)
charts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(charts)

PLAIN = {"title": None, "x_label": None, "y_label": None, "x_unit": None, "y_unit": None}
BOXES = {"A": [85, 90, 78, 92, 88], "B": [95, 89, 76, 91, 84, 87], "C": [75, 82, 88, 79, 86]}


def bars(values, group="Group 0", names="abc"):
    return [{"label": n, "group": group, "value": v} for n, v in zip(names, values)]


CASES = {
    # code: what of the chart has to be so
    "plt.plot([1, 2], [3, 5], label='one'); plt.xlabel('Time (s)'); plt.ylabel('Speed [m/s]'); plt.title('T')": {
        "type": "line", "title": "T", "x_label": "Time (s)", "x_unit": "s", "y_unit": "m/s", "x_scale": "linear",
        "elements": [{"label": "one", "points": [[1.0, 3.0], [2.0, 5.0]]}]},
    "plt.plot([1, 2, 3]); plt.axhline(2); plt.grid(True)": {
        "type": "line", "elements": [{"label": "Line 0", "points": [[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]}]},
    "plt.plot([1, 3], [2, 2])": {"type": "line", "elements": [{"label": "Line 0", "points": [[1.0, 2.0], [3.0, 2.0]]}]},
    "plt.plot([1, 10, 100]); plt.yscale('log')": {"type": "line", "y_scale": "log", "x_scale": "linear"},
    "plt.plot([1, 2, 3], ['A', 'B', 'C'])": {"type": "line", "y_scale": "categorical", "x_scale": "linear",
                                            "y_tick_labels": ["A", "B", "C"]},
    "import datetime as d; plt.plot([d.date(2023, 9, 1), d.date(2023, 9, 2)], [1, 2])": {
        "type": "line", "x_scale": "datetime",
        "elements": [{"label": "Line 0", "points": [["2023-09-01", 1.0], ["2023-09-02", 2.0]]}]},
    "plt.scatter([1, 2], [3, 4], label='dots'); plt.grid(True)": {
        "type": "scatter", "elements": [{"label": "dots", "points": [[1.0, 3.0], [2.0, 4.0]]}]},
    "plt.bar(list('abc'), [1, 2, 3])": {**PLAIN, "type": "bar", "elements": bars([1.0, 2.0, 3.0])},
    "plt.bar(list('abc'), [5, 5, 5]); plt.xlabel('x')": {"x_label": "x", "elements": bars([5.0, 5.0, 5.0])},
    "plt.barh(list('abc'), [1, 2, 3], label='g'); plt.ylabel('names'); plt.xlabel('values')": {
        "type": "bar", "x_label": "names", "y_label": "values", "elements": bars([1.0, 2.0, 3.0], "g")},
    "plt.bar([0, 1], [1, 2], 0.4, label='p'); plt.bar([0.4, 1.4], [3, 4], 0.4, label='q'); plt.xticks([0.2, 1.2], ['a', 'b'])": {
        "type": "bar", "elements": bars([1.0, 2.0], "p", "ab") + bars([3.0, 4.0], "q", "ab")},
    "plt.pie([90, 10], labels=['No', 'No, in blue'], autopct='%1.1f%%', startangle=90); plt.axis('equal')": {
        "type": "pie", "elements": [{"label": "No", "angle": 324.0, "radius": 1.0},
                                    {"label": "No, in blue", "angle": 36.0, "radius": 1.0}]},
    "plt.boxplot(list(BOXES.values()), patch_artist=True); plt.xticks([1, 2, 3], list(BOXES)); plt.ylabel('Score')": {
        "type": "box_and_whisker", "y_label": "Score", "elements": [
            {"label": "A", "min": 78, "first_quartile": 85, "median": 88, "third_quartile": 90, "max": 92, "outliers": []},
            {"label": "B", "min": 84, "first_quartile": 84.75, "median": 88, "third_quartile": 90.5, "max": 95,
             "outliers": [76]},
            {"label": "C", "min": 75, "first_quartile": 79, "median": 82, "third_quartile": 86, "max": 88,
             "outliers": []}]},
    "plt.boxplot([[1, 2, 3, 4, 100, -50]], patch_artist=True, vert=False); plt.yticks([1], ['x']); plt.ylabel('names')": {
        "type": "box_and_whisker", "x_label": "names", "elements": [
            {"label": "x", "min": 1, "first_quartile": 1.25, "median": 2.5, "third_quartile": 3.75, "max": 4,
             "outliers": [-50, 100]}]},
    "plt.gca().add_artist(plt.Circle((0, 0), 1)); plt.grid(True); plt.title('C'); plt.gca().imshow([[1]])": {
        "type": "unknown", "title": "C", "elements": []},
    "plt.subplots()": {},
    "f, a = plt.subplots(1, 2); f.suptitle('S'); a[0].plot([1, 2]); a[1].scatter([1], [2]); a[1].set_title('t')": {
        "type": "superchart", "title": "S"},
}


def figure_of(code):
    plt.close("all")
    exec(code, {"plt": plt, "BOXES": BOXES})
    return plt.gcf()


@pytest.mark.parametrize("code", CASES, ids=[c[:40] for c in CASES])
def test_a_figure_is_data(code):
    chart = charts.chart_of(figure_of(code))
    want = CASES[code]
    assert {key: chart.get(key) for key in want} == want
    if not want:
        assert chart == {}


def test_a_superchart_has_one_chart_per_axes():
    code, = [c for c in CASES if "suptitle" in c]
    assert [(c["type"], c["title"]) for c in charts.chart_of(figure_of(code))["elements"]] == [("line", None), ("scatter", "t")]


# Where ours is meant to differ: bars of one height, lines of two points, several outliers, labels of a superchart.
DIFFERS = ("[5, 5, 5]", "plt.plot([1, 3], [2, 2])", "vert=False", "axhline", "add_artist")


@pytest.mark.parametrize("code", [c for c in CASES if not any(d in c for d in DIFFERS)], ids=lambda c: c[:40])
def test_ours_beside_theirs(code):
    theirs = pytest.importorskip("e2b_charts", reason="the package e2b-charts is not installed")
    figure = figure_of(code)
    want = theirs.chart_figure_to_dict(figure)
    assert unpacked(charts.chart_of(figure)) == unpacked(want)


def unpacked(value):
    """Tuples as lists, enumerations as text, decimals as numbers."""
    if isinstance(value, dict):
        return {key: unpacked(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [unpacked(v) for v in value]
    return str(value.value) if hasattr(value, "value") else value
