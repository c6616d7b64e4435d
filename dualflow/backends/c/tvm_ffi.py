"""The function that TVM-FFI calls: it takes DLPack tensors, checks them, and calls the exported function.

TVM-FFI's C ABI finds a function of a library by the symbol ``__tvm_ffi_NAME``. A call passes tagged values; a
result other than 0 means that an error has been set (https://tvm.apache.org/ffi). The source declares the
few structures of the ABI itself, and refers to the library of TVM-FFI weakly: it needs no header, and loads
without that library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dualflow.backends.c.parameters import CParameter
from dualflow.backends.c.program_source import CProgram
from dualflow.backends.c.sizes import Sizes
from dualflow.backends.c.source_lines import MARK, c_string, c_type
from dualflow.core.dtypes import DType

_CODES: Final = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
"""DLPack's type codes, by the kind of a dtype."""

_HEAD: Final = """\
#include "{name}.h"

#include <stdlib.h>

/* DLPack's tensor, and TVM-FFI's tagged value. */
typedef struct {{
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
}} df_tensor;

typedef struct {{
    int32_t type_index;
    uint32_t padding;
    union {{
        int64_t integer;
        void *pointer;
    }} value;
}} df_any;

enum {{ DF_CPU = 1, DF_TENSOR_POINTER = 7, DF_TENSOR_OBJECT = 70, DF_OBJECT_HEADER = 24 }};

extern void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) __attribute__((weak));
int __tvm_ffi_{name}(void *self, const df_any *arguments, int32_t count, df_any *result);

static int df_fail(const char *kind, const char *message)
{{
    if (TVMFFIErrorSetRaisedFromCStr) TVMFFIErrorSetRaisedFromCStr(kind, message);
    return -1;
}}

/* The tensor of an argument; NULL if it is none of these dimensions on the CPU. */
static const df_tensor *df_tensor_of(const df_any *argument, int32_t ndim, uint8_t code, uint8_t bits)
{{
    const char *at = argument->value.pointer;
    if (argument->type_index == DF_TENSOR_OBJECT) at += DF_OBJECT_HEADER;
    else if (argument->type_index != DF_TENSOR_POINTER) return NULL;
    const df_tensor *x = (const df_tensor *)(const void *)at;
    const bool fits = x->device_type == DF_CPU && x->code == code && x->bits == bits && x->lanes == 1;
    return fits && x->ndim == ndim ? x : NULL;
}}

/* Whether a tensor has this shape, and is contiguous. */
static bool df_has_shape(const df_tensor *x, const int64_t *shape)
{{
    int64_t stride = 1;
    bool is_contiguous = true;
    for (int32_t i = x->ndim - 1; i >= 0; i--) {{
        if (x->shape[i] != shape[i]) return false;
        if (x->strides != NULL && shape[i] != 1 && x->strides[i] != stride) is_contiguous = false;
        stride *= shape[i];
    }}
    return is_contiguous || stride == 0;
}}
"""


def tvm_ffi_source(program: CProgram, parameters: Sequence[CParameter]) -> str:
    """The file with the function ``__tvm_ffi_NAME``, which takes all tensors in the order of ``parameters``.

    Outputs are arguments, too. The call allocates the workspace.
    """
    sizes = Sizes(program.sizes.names)
    body = "\n".join(_body(program, parameters, sizes))
    return "\n".join(
        [
            f"/* {program.name} for TVM-FFI, {MARK}. */",
            _HEAD.format(name=program.name),
            *sizes.functions.values(),
            body,
        ]
    )


def _body(program: CProgram, parameters: Sequence[CParameter], sizes: Sizes) -> Iterator[str]:
    name = program.name
    tensors = [p for p in parameters if p.spec is not None]
    takes = f"{name} takes {len(tensors)} tensors: {', '.join(p.name for p in tensors)}"
    yield f"int __tvm_ffi_{name}(void *self, const df_any *arguments, int32_t count, df_any *result)\n{{"
    yield "    (void)self;"
    yield f'    if (count != {len(tensors)}) return df_fail("TypeError", {c_string(takes)});'
    for i, p in enumerate(tensors):
        assert p.spec is not None
        code, bits = _dlpack_type(p.spec.dtype)
        text = f"{name}: {p.name} must be a contiguous tensor {p.spec.dtype.name}{p.shape} on the CPU"
        yield f"    const char *const expected{i} = {c_string(text)};"
        yield (
            f"    const df_tensor *const tensor{i} = "
            f"df_tensor_of(&arguments[{i}], {len(p.spec.shape)}, {code}, {bits});"
        )
        yield f'    if (tensor{i} == NULL) return df_fail("TypeError", expected{i});'
    for variable, size in sizes.names.items():
        number, axis = program.plan.argument_sizes[variable][0]
        yield f"    const int64_t {size} = tensor{number}->shape[{axis}];"
    checks = []
    for i, p in enumerate(tensors):
        assert p.spec is not None
        shape = ", ".join([sizes.text(size) for size in p.spec.shape if size is not None]) or "1"
        checks.append(
            f"    if (!df_has_shape(tensor{i}, (const int64_t[]){{{shape}}})) "
            f'return df_fail("ValueError", expected{i});'
        )
    yield from sizes.definition_lines("\n".join(checks))
    yield from checks
    passed = {p.name: _pointer(p, i) for i, p in enumerate(tensors)}
    arguments = ", ".join([*[passed.get(p.name, p.name) for p in parameters], "workspace"])
    yield f"    void *workspace = malloc({name}_workspace({', '.join(sizes.names.values())}) + 1);"
    yield f'    if (workspace == NULL) return df_fail("MemoryError", "{name}: no memory for the workspace");'
    yield f"    const int status = {name}({arguments});"
    yield "    free(workspace);"
    yield f'    if (status != 0) return df_fail("RuntimeError", {name}_message(status));'
    yield "    *result = (df_any){0, 0, {0}};\n    return 0;\n}\n"


def _dlpack_type(dtype: DType) -> tuple[int, int]:
    """The type code and the bits of an element."""
    return _CODES["b" if dtype.is_bool else dtype.kind], 8 * dtype.size


def _pointer(parameter: CParameter, i: int) -> str:
    assert parameter.spec is not None
    const = "const " if parameter.role == "argument" else ""
    return f"({const}{c_type(parameter.spec.dtype)} *)((char *)tensor{i}->data + tensor{i}->byte_offset)"
