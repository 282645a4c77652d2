"""Our declarations of XLA's C interface, in C++ and in Python, agree with the header that JAX brings."""

from __future__ import annotations

import ctypes
from importlib.resources import files
from pathlib import Path
from typing import Any

import jax
import pytest

from warp.entries import compile_native
from warp_interop_jax import frame


def header() -> Path:
    return Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"


# XLA has renamed it since JAX 0.10.
EXTENSION = "Extension_Base" if "XLA_FFI_Extension_Base" in header().read_text("utf-8") else "InternalExtension"
# Structures here, in C++ and in Python, and of XLA; members here and of XLA.
STRUCTURES: dict[tuple[str, str, str], dict[str, str]] = {
    ("Extension", "_Extension", EXTENSION): {"size": "struct_size", "type": "type", "next": "next"},
    ("Version", "_Version", "Api_Version"): {"major": "major_version", "minor": "minor_version"},
    ("Metadata", "_Metadata", "Metadata"): {"version": "api_version", "traits": "traits"},
    ("MetadataExtension", "_MetadataExtension", "Metadata_Extension"): {
        "base": "extension_base",
        "metadata": "metadata",
    },
    ("Buffer", "_Buffer", "Buffer"): {"dtype": "dtype", "data": "data", "rank": "rank", "dims": "dims"},
    ("Buffers", "_Buffers", "Args"): {"count": "size", "types": "types", "items": "args"},
    ("Buffers", "_Buffers", "Rets"): {"count": "size", "types": "types", "items": "rets"},
    ("Span", "_Span", "ByteSpan"): {"text": "ptr", "length": "len"},
    ("Scalar", "_Scalar", "Scalar"): {"dtype": "dtype", "value": "value"},
    ("Attributes", "_Attributes", "Attrs"): {"count": "size", "types": "types", "names": "names", "values": "attrs"},
    ("ErrorArguments", "_ErrorArguments", "Error_Create_Args"): {"message": "message", "code": "errc"},
    ("StreamArguments", "_StreamArguments", "Stream_Get_Args"): {"context": "ctx", "stream": "stream"},
    ("Frame", "Frame", "CallFrame"): {
        "interface": "api",
        "context": "ctx",
        "stage": "stage",
        "inputs": "args",
        "results": "rets",
        "attributes": "attrs",
    },
}
FUNCTIONS = {"create_error": "Error_Create", "find_stream": "Stream_Get"}
CONSTANTS = {
    "METADATA": "Extension_Metadata",
    "EXECUTE": "ExecutionStage_EXECUTE",
    "SCALAR": "AttrType_SCALAR",
    "INT64": "DataType_S64",
    "GRAPH_COMPATIBLE": "HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE",
    "INVALID_ARGUMENT": "Error_Code_INVALID_ARGUMENT",
    "NOT_FOUND": "Error_Code_NOT_FOUND",
    "EXHAUSTED": "Error_Code_RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION": "Error_Code_FAILED_PRECONDITION",
    "INTERNAL": "Error_Code_INTERNAL",
}


def members() -> list[tuple[str, str, Any, str, str]]:
    """Return C++ structure and member here, the member in Python, and structure and member of XLA."""
    found = []
    for (here, python, theirs), names in STRUCTURES.items():
        for ours, name in names.items():
            found.append((here, ours, getattr(getattr(frame, python), ours), f"XLA_FFI_{theirs}", name))
    return found


def offsets(has_ordinal: bool) -> list[int]:
    """Compile the header beside our text, which must agree, and return the offsets of XLA's members."""
    rows = [(here, ours, theirs, name) for here, ours, _, theirs, name in members()]
    rows += [("Interface", ours, "XLA_FFI_Api", f"XLA_FFI_{name}") for ours, name in FUNCTIONS.items()]
    if has_ordinal:
        rows.append(("Interface", "find_ordinal", "XLA_FFI_Api", "XLA_FFI_DeviceOrdinal_Get"))
        rows.append(("OrdinalArguments", "ordinal", "XLA_FFI_DeviceOrdinal_Get_Args", "device_ordinal"))
    checks = [
        f"static_assert(AT({here}, {ours}) == AT({theirs}, {name}), {ours!r});" for here, ours, theirs, name in rows
    ]
    checks += [f"static_assert({ours} == (int)XLA_FFI_{theirs}, {ours!r});" for ours, theirs in CONSTANTS.items()]
    text = "\n".join(checks).replace("'", '"')
    values = ", ".join(f"AT({theirs}, {name})" for _, _, _, theirs, name in members())
    ours = (files("warp_interop_jax") / "native" / "ffi.h").read_text(encoding="utf-8")
    source = f'{ours}\n#define AT __builtin_offsetof\n#include "{header()}"\n{text}\n'
    library = compile_native(f"{source}WP_EXPORT const long offsets[] = {{{values}}};\n")
    count = len(members())
    return list((ctypes.c_long * count).from_address(library.address("offsets")))


def test_layouts_and_constants() -> None:
    has_ordinal = "XLA_FFI_DeviceOrdinal_Get" in header().read_text(encoding="utf-8")
    found = offsets(has_ordinal)
    assert [field.offset for _, _, field, _, _ in members()] == found
    assert frame.EXECUTE == 3 and frame.METADATA == 1


def test_a_disagreement_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONSTANTS, "EXECUTE", "ExecutionStage_PREPARE")
    with pytest.raises(Exception, match="EXECUTE"):
        offsets(has_ordinal=False)
