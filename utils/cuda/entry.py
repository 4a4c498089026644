"""The C functions that every compiled text exports, appended to it as one line.

`workbook_run` takes the launcher's arguments as an array of 8-byte slots and returns CUDA's error
code. The others let a process that has nothing but this library copy buffers and name errors.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from utils.cuda.signature import Parameter

_HELPERS = """
template <class T> static T workbook_read(const unsigned long long& slot) {
    T value; __builtin_memcpy(&value, &slot, sizeof value); return value; }
extern "C" {
const char* workbook_error_name(int e) { return cudaGetErrorName((cudaError_t)e); }
const char* workbook_error_text(int e) { return cudaGetErrorString((cudaError_t)e); }
int workbook_device(int device) { return cudaSetDevice(device); }
int workbook_malloc(void** p, unsigned long n) { return cudaMalloc(p, n); }
int workbook_free(void* p) { return cudaFree(p); }
int workbook_upload(void* to, const void* from, unsigned long n) {
    return cudaMemcpy(to, from, n, cudaMemcpyHostToDevice); }
int workbook_download(void* to, const void* from, unsigned long n) {
    return cudaMemcpy(to, from, n, cudaMemcpyDeviceToHost); }
int workbook_sync() { return cudaDeviceSynchronize(); }
}
"""


def entry_text(name: str, parameters: Sequence[Parameter]) -> str:
    """One line of C++ that exports the launcher `name`; it goes after the CUDA text."""
    arguments = ", ".join(
        f"workbook_read<{p.ctype}>(workbook_slots[{i}])" for i, p in enumerate(parameters)
    )
    run = (
        'extern "C" int workbook_run(const unsigned long long* workbook_slots) { '
        f"cudaGetLastError(); ::{name}({arguments}); return cudaGetLastError(); }}"
    )
    return " ".join(_HELPERS.split()) + " " + run


def packed(parameters: Sequence[Parameter], values: Mapping[str, Any]) -> bytes:
    """The slots of a call, from tensors' places and numbers by name; a stream's is 0."""
    words = (values.get(p.name, 0) for p in parameters)
    return struct.pack(slot_format(parameters), *words)


def slot_format(parameters: Iterable[Parameter]) -> str:
    """The `struct` format of `workbook_slots`: each value at the start of its 8 bytes."""
    padding = {"i": "4x", "I": "4x", "f": "4x", "?": "7x"}
    return "=" + "".join(p.code + padding.get(p.code, "") for p in parameters)
