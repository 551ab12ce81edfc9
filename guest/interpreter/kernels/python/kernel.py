"""The Python kernel: ipykernel, and what clients of a code interpreter expect of results.

    kernel.py -f CONNECTION_FILE

Beyond ipykernel: data frames, figures, lists and dicts are results with their data in them; images
are shown when they are saved; what is printed waits for whoever reads it, instead of piling up.
"""
import datetime
import enum
import math
import os
import sys
import uuid

# What is imported from here on is the system's, but for what is shared; charts.py is loaded by its path, when needed.
HERE = os.path.dirname(os.path.abspath(__file__))
if sys.path and sys.path[0] == HERE:
    sys.path.pop(0)
sys.path.insert(0, os.path.join(HERE, "../shared"))
from hotcell_kernel import PIECE, WAITING, WaitingApp  # noqa: E402
sys.path.pop(0)

from IPython.core.formatters import BaseFormatter, JSONFormatter  # noqa: E402
from ipykernel.iostream import OutStream  # noqa: E402
from ipykernel.ipkernel import IPythonKernel  # noqa: E402
from traitlets import ObjectName, Type, Unicode  # noqa: E402
from traitlets.config import Config  # noqa: E402


def large(number):
    try:
        return float(number)
    except OverflowError:
        return None


def plain(value):
    """Anything as JSON can say it. What it cannot say becomes text, or null."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else large(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):  # numpy's
        return plain(value.tolist())
    return str(value)


class DataFormatter(BaseFormatter):
    """A data frame, column by column. pandas is not imported for the question."""

    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = (dict, str)

    def __call__(self, obj):
        pandas = sys.modules.get("pandas")
        if pandas is None or not isinstance(obj, getattr(pandas, "DataFrame", ())):
            return super().__call__(obj)
        try:
            return {str(name): plain(obj.iloc[:, i].tolist()) for i, name in enumerate(obj.columns)}
        except Exception:
            return None


class ChartFormatter(BaseFormatter):
    """A figure, as the data that it shows."""

    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = (dict, str)

    def __call__(self, obj):
        figure = sys.modules.get("matplotlib.figure")
        if figure is None or not isinstance(obj, getattr(figure, "Figure", ())):
            return super().__call__(obj)
        try:
            return plain(charts().chart_of(obj))
        except Exception:
            return {}


class ListFormatter(JSONFormatter):
    """Lists and dicts are JSON, if all that is in them is."""

    def __call__(self, obj):
        if isinstance(obj, (list, dict)):
            try:
                return as_json(obj), {"expanded": True}
            except (TypeError, ValueError):
                pass
        return super().__call__(obj)


def as_json(value, depth=254):
    """What orjson makes of it, which E2B's kernel uses. TypeError or ValueError: it would not."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, enum.Enum):
        return as_json(value.value, depth)
    if isinstance(value, str):
        value.encode()
        return str(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise ValueError(value)
        return plain(int(value))
    if isinstance(value, float):
        return plain(float(value))
    if depth == 0:
        raise ValueError("deep")
    if isinstance(value, list) or kind is tuple:
        return [as_json(v, depth - 1) for v in value]
    if isinstance(value, dict):
        return {key_as_json(k): as_json(v, depth - 1) for k, v in value.items()}
    if hasattr(kind, "__dataclass_fields__"):
        names = [n for n in kind.__dataclass_fields__ if not n.startswith("_")]
        return {n: as_json(getattr(value, n), depth - 1) for n in names}
    if kind in (datetime.datetime, datetime.date, datetime.time):
        return value.isoformat()
    if kind is uuid.UUID:
        return str(value)
    if kind.__module__ == "numpy" and value.dtype.kind in "biufM":
        return as_json((value.astype("datetime64[us]") if value.dtype.kind == "M" else value).tolist(), depth - 1)
    raise TypeError(kind.__name__)


def key_as_json(key):
    key = as_json(key, 1)
    if isinstance(key, (list, dict)):
        raise TypeError("a key")
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return str(key)


def charts():
    """The module charts.py, without a folder of ours in the user's path."""
    module = sys.modules.get("_hotcell_charts")
    if module is None:
        import importlib.util

        path = os.path.join(HERE, "charts.py")
        spec = importlib.util.spec_from_file_location("_hotcell_charts", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules["_hotcell_charts"] = module
    return module


def show_images():
    """PIL has no screen here: what is shown or saved under a name is a result."""
    try:
        from PIL.Image import Image
    except ImportError:
        return
    from IPython.display import display

    save = Image.save

    def save_and_show(self, fp, format=None, **params):
        if isinstance(fp, str):
            display(self)
        return save(self, fp, format, **params)

    def show(self, title=None, **params):
        display(self)

    Image.save = save_and_show
    Image.show = show


def print_in_pieces():
    """Large texts become several messages, and who prints faster than anybody reads has to wait."""
    write = OutStream.write

    def write_pieces(self, string):
        if not isinstance(string, str):
            return write(self, string)  # which says what is wrong with it
        for at in range(0, len(string), PIECE):
            piece = string[at:at + PIECE]
            write(self, piece)
            self.hotcell_waiting = getattr(self, "hotcell_waiting", 0) + len(piece)
            if self.hotcell_waiting >= WAITING or len(string) > PIECE:
                self.hotcell_waiting = 0
                self.flush()
        return len(string)

    OutStream.write = write_pieces
    OutStream.flush_timeout = None  # as long as it takes; an interrupt ends the wait


def forget_names(tempfile):
    tempfile._name_sequence = None


def forget_clock(uuid):
    uuid._node = uuid._last_timestamp = None


def renew_key(process):
    process.current_process().authkey = os.urandom(32)


def renew_names(synchronize):
    synchronize.SemLock._rand = type(synchronize.SemLock._rand)()


# Modules with chance in them, and how it is drawn anew. `ssl` stands for OpenSSL, whose generators all copies of a
# process share: the keys of its connections come from them.
OWN = {
    "random": lambda random: random.seed(os.urandom(32)),
    "numpy.random": lambda random: random.seed(list(memoryview(os.urandom(32)).cast("I"))),
    "ssl": lambda ssl: ssl.RAND_add(os.urandom(32), 32.0),
    "tempfile": forget_names,
    "uuid": forget_clock,
    "multiprocessing.process": renew_key,
    "multiprocessing.synchronize": renew_names,
}


class Kernel(IPythonKernel):
    def hotcell_warm(self):
        """What a first result takes is loaded. Its message is heard by nobody, and no name is left of it."""
        names = dict(self.shell.user_ns)
        self.shell.run_cell("1 + 1", store_history=False)
        self.shell.displayhook.flush()
        for name in set(self.shell.user_ns) - set(names):
            del self.shell.user_ns[name]
        self.shell.user_ns.update(names)

    def hotcell_own(self):
        """Nobody's code has run yet. From now on chance is this kernel's own, whatever it is a copy of."""
        for name, renew in OWN.items():
            module = sys.modules.get(name)
            if module is not None:  # else it has no state that could be in a snapshot
                renew(module)


class App(WaitingApp):
    kernel_class = Type(Kernel)

    def init_shell(self):
        super().init_shell()
        display = self.shell.display_formatter
        for formatter in (DataFormatter, ChartFormatter, ListFormatter):
            made = formatter(parent=display)
            display.formatters[made.format_type] = made
        show_images()
        print_in_pieces()


def main():
    config = Config()
    config.InteractiveShell.colors = "NoColor"
    config.HistoryManager.enabled = False
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    App.launch_instance(config=config)


if __name__ == "__main__":
    main()
