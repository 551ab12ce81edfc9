"""test_protocol.py - the Python client and protocol.h agree about every byte."""

import ctypes

import pytest

import protocol
from layout import layout as read_layout

STRUCTS = {"warden_sizes": protocol.Sizes, "warden_request": protocol.Request,
           "warden_facts": protocol.Facts, "warden_cell": protocol.Cell,
           "warden_reply": protocol.Reply}


@pytest.fixture(scope="module")
def layout():
    """What the compiler made of protocol.h."""
    return read_layout(protocol.LAYOUT)


@pytest.mark.parametrize("name", STRUCTS)
def test_sizes_and_offsets(layout, name):
    struct = STRUCTS[name]
    expected = {key.partition(".")[2]: value for key, value in layout.items()
                if key.startswith(f"{name}.")}
    fields = {field: getattr(struct, field).offset for field, _ in struct._fields_
              if field != "payload"}
    if struct is protocol.Reply:
        fields.update(facts=struct.payload.offset, cells=struct.payload.offset)
    assert ctypes.sizeof(struct) == layout[name]
    assert fields == expected


def test_constants(layout):
    verbs = {f"WARDEN_{verb.name}": verb.value for verb in protocol.Verb}
    states = {f"WARDEN_{state.name}": state.value for state in protocol.State}
    limits = {"WARDEN_VERSION_MIN": protocol.VERSION, "WARDEN_VERSION_MAX": protocol.VERSION, "WARDEN_ID_MAX": protocol.ID_MAX,
              "WARDEN_FDS_MAX": protocol.FDS_MAX, "WARDEN_LIST_MAX": protocol.LIST_MAX,
              "WARDEN_VERBS": len(protocol.Verb)}
    assert {**verbs, **states, **limits} == {key: value for key, value in layout.items()
                                             if key.startswith("WARDEN_")}


def test_error_codes(layout):
    codes = [value for key, value in layout.items() if key.startswith("err.")]
    assert tuple(codes) == protocol.CODES


def test_names(layout):
    assert tuple(layout["template_files"]) == protocol.TEMPLATE_FILES
    assert layout["qmp_path"] == "vms/%s/qmp.sock"
