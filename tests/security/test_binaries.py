"""test_binaries.py - how the programs of the build are hardened, and what warden is made of."""

import os
import pathlib
import re
import subprocess

import pytest

from warden import build_dir, is_sanitized

TOP = pathlib.Path(__file__).resolve().parents[2]
WARDEN = "src/warden/hotcell-warden"
ELF, EXECUTABLES = b"\x7fELF", (2, 3)  # ET_EXEC, ET_DYN

# All that warden may load. Whatever parses outside data (TLS, JSON, HTTP, SQL, rules) is absent.
WARDEN_LIBRARIES = {"linux-vdso.so.1", "ld-linux-x86-64.so.2", "libc.so.6", "libseccomp.so.2"}
PARSERS = ("libssl", "libcrypto", "libgnutls", "libjansson", "libjson", "libyaml", "libnghttp2",
           "libllhttp", "libcurl", "libsqlite3", "libpq", "libuv", "libnftables", "libxml2",
           "libexpat", "libprotobuf", "libz.", "libzstd", "libzmq")
PARSER_SYMBOLS = re.compile(r"^(SSL_|EVP_|json_|nghttp2_|curl_|sqlite3_|PQ|uv_|nft_|ZSTD_|http1_|"
                            r"qmp_|connect_)")


def is_library(path):
    """Or a module that another program loads, such as Node."""
    return ".so" in path.suffixes or path.suffix == ".node"


def is_program(path):
    """An ELF program: not a library, not an object."""
    if path.suffix in (".o", ".a") or is_library(path) or path.is_symlink() or not os.access(path, os.X_OK):
        return False
    with open(path, "rb") as f:
        head = f.read(18)
    return head[:4] == ELF and int.from_bytes(head[16:18], "little") in EXECUTABLES


BUILD_TOOLS = ("src/cli/commands_json",)  # prints a table while the rest is built: nothing in it to check


def programs():
    """Every program of the build, by its path below it; none when there is no build."""
    if "HOTCELL_BUILD" not in os.environ:
        return []
    found = (p for p in build_dir().rglob("*") if p.is_file() and is_program(p))
    return sorted(str(p.relative_to(build_dir())) for p in found
                  if "meson-private" not in p.parts)


def libraries():
    """Every library of the build: what stands in for QEMU's own, and what Node loads."""
    if "HOTCELL_BUILD" not in os.environ:
        return []
    found = (p for p in build_dir().rglob("*") if p.is_file() and is_library(p) and not p.is_symlink())
    return sorted(str(p.relative_to(build_dir())) for p in found if p.suffix != ".symbols")


def readelf(program, *what):
    return subprocess.run(["readelf", "-W", *what, build_dir() / program], check=True,
                          capture_output=True, text=True).stdout


@pytest.fixture(autouse=True)
def shipped():
    if is_sanitized():
        pytest.skip("a build with sanitizers is not what is shipped")


def test_there_are_programs():
    assert WARDEN in programs()


@pytest.mark.parametrize("program", programs())
def test_program_is_position_independent(program):
    assert "DYN (" in readelf(program, "-h") and "PIE" in readelf(program, "-d")


@pytest.mark.parametrize("program", programs() + libraries())
def test_program_is_hardened(program):
    headers, dynamic = readelf(program, "-l"), readelf(program, "-d")
    assert "GNU_RELRO" in headers, "no relro"
    assert re.search(r"BIND_NOW|FLAGS_1.*NOW", dynamic), "symbols are bound late"
    assert re.search(r"GNU_STACK.*RW ", headers), "the stack is executable"
    assert not re.search(r"^\s+LOAD .*RWE", headers, re.M), "a segment is writable and executable"
    assert "TEXTREL" not in dynamic, "text is relocated"
    assert not re.search(r"R(UN)?PATH.*\[(?!\$ORIGIN)", dynamic), "it looks for libraries by path"


def is_dynamic(program):
    return "NEEDED" in readelf(program, "-d")


@pytest.mark.parametrize("program", [p for p in programs() if p.startswith("src/") and p not in BUILD_TOOLS])
def test_program_checks_itself(program):
    if not is_dynamic(program):
        pytest.skip("static: its libc hides what the compiler put in")
    imports = readelf(program, "--dyn-syms")
    assert "__stack_chk_fail" in imports, "no stack canaries"
    assert re.search(r"__\w+_chk@", imports), "no fortified calls"


def test_warden_loads_no_parser():
    out = subprocess.run(["ldd", build_dir() / WARDEN], check=True, capture_output=True,
                         text=True).stdout
    loaded = {pathlib.Path(line.split()[0]).name for line in out.splitlines()}
    assert not [name for name in loaded if name.startswith(PARSERS)]
    assert loaded <= WARDEN_LIBRARIES


def test_warden_contains_no_parser():
    """Nor one that was linked in statically: the symbol table would name it."""
    table = readelf(WARDEN, "-s")
    names = {fields[7].split("@")[0] for fields in map(str.split, table.splitlines())
             if len(fields) > 7}
    if "verbs_handle" not in names:
        pytest.skip("the program is stripped")
    assert not [name for name in names if PARSER_SYMBOLS.match(name)]


def test_warden_is_what_was_counted():
    """tools/check-size limits the privileged program, and says what of it parses, without a build."""
    counted = subprocess.run([TOP / "tools/check-size", "--kept"], check=True, capture_output=True, text=True).stdout
    units = subprocess.run(["readelf", "--debug-dump=info", "--dwarf-depth=1", build_dir() / WARDEN], check=True,
                           capture_output=True, text=True).stdout
    linked = set(re.findall(r"DW_AT_name .*(src/\w+/\S+\.c)$", units, re.M))
    if not linked:
        pytest.skip("the program has no debug information")
    assert linked == {name for name in counted.splitlines() if name.endswith(".c")}
