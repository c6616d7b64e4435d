; A call from Python to a kernel, without the interpreter: the C side of a built-in function.
;
; CPython calls df_entry(self, args, count) for a METH_FASTCALL function. `self` is a tuple whose first item is a bytes
; object with a %descriptor: the expected tensors, the outputs to allocate, the kernel to call. All graphs share this
; code. A call that does not match (another type, dtype, shape or layout, a variable's buffer with another reference) is
; no error: its arguments are passed to the Python function `fallback`, which supports all calls. The checks of a call
; are in match.ll, which is compiled together with this file.
;
; The numbers that are offsets into CPython's and NumPy's structures (64-bit, with the GIL, not a debug build) are
; checked against this process by `probe` in fastcall.py before this code is used; tuple_items, which differs between
; versions, is a function that fastcall.py adds to this text:
;
;   object:  0 reference count   8 type
;   tuple:  tuple_items() first item               bytes:  32 first byte
;   ndarray: 16 data   24 ndim (i32)   32 dims   56 dtype   64 flags (i32)
;
; Ownership: the caller and `self` keep `args` and everything that the descriptor points to alive. New arrays belong
; to this call until a tensor, or the error path, takes their reference.

%descriptor = type {
  ptr,                                  ;  0 kernel: void (ptr buffers, ptr params, ptr status)
  ptr,                                  ;  1 params: the kernel's parameter table
  ptr,                                  ;  2 tensor type
  i64,                                  ;  3 the offset of a tensor's array
  i64,                                  ;  4 the offset of a variable's tensor
  i64, ptr,                             ;  5 arguments: count, operands
  i64, ptr,                             ;  7 variables: count, operands
  i64, ptr,                             ;  9 constants: count, addresses
  i64, ptr,                             ; 11 outputs:   count, operands
  i64, ptr,                             ; 13 arena: bytes, and the cell of the idle one (null while a call uses it);
                                        ;    where there are sizes, the cells of two parameter tables come after it
  i64,                                  ; 15 heavy: release the GIL around the kernel
  i64,                                  ; 16 kind of the result: 0 None, 1 the tensor, 2 a tuple, 3 pack(tuple)
  ptr, ptr, ptr,                        ; 17 fallback(*args), 18 on_error(status, *args), 19 pack(tuple)
  i64,                                  ; 20 the number of arguments that are inputs of the kernel
  i64, i64,                             ; 21 the offsets of a variable's tensor while it is updated, 22 and of the writer
  ptr,                                  ; 23 sizes: void (ptr params, ptr status), which computes a table of numbers
                                        ;    from the sizes of the arguments; null where all sizes are static
  i64,                                  ; 24 params: count
  i64                                   ; 25 the place of the arena's bytes in the table, where there are sizes
}
%operand = type {
  ptr,                                  ;  0 the Variable; the expected object of an argument that is no input; the
                                        ;    allocator of a large output, instead of PyArray_Empty; else null
  ptr,                                  ;  1 dtype
  ptr,                                  ;  2 dims; -1 - place for one that is symbolic, with its place in params
  i32, i32,                             ;  3 ndim, 4 flags that the array must have
  i64                                   ;  5 an argument's place among the inputs; of a variable whether it is
                                        ;    exclusive: no other reference to its tensor or its array is allowed; of
                                        ;    an output with symbolic dims the bytes of an element, else 0
}

@PyArray_Type = external global i8
@_Py_NoneStruct = external global i8
declare ptr @PyArray_Empty(i32, ptr, ptr, i32)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyTuple_New(i64)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromUnsignedLong(i64)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_CallOneArg(ptr, ptr)
declare void @PyErr_Clear()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i64 @PyThread_get_thread_ident()
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Where there are sizes, most calls have those of the call before, and use its parameter table: the latest one, in the
; first cell after that of the arena. No call stores sizes in it. A call of other sizes fills another table, which becomes
; the latest one if the program serves its sizes. The word before a table counts its references: that of the cell, and
; one of each call that runs. A table without references is in the second cell, for the next other sizes. A call has the
; GIL whenever it accesses cells and counts, so it needs no atomic instruction.
;
; Buffers go to the kernel in the order inputs, variables, constants, outputs, arena.
define ptr @df_entry(ptr %self, ptr %args, i64 %count) nounwind {
entry:
  %items.offset = call i64 @tuple_items()
  %item = getelementptr i8, ptr %self, i64 %items.offset
  %bytes = load ptr, ptr %item
  %d = getelementptr i8, ptr %bytes, i64 32
  %arguments.at = getelementptr %descriptor, ptr %d, i64 0, i32 5
  %arguments = load i64, ptr %arguments.at
  %inputs.at = getelementptr %descriptor, ptr %d, i64 0, i32 20
  %inputs = load i64, ptr %inputs.at
  %variables.at = getelementptr %descriptor, ptr %d, i64 0, i32 7
  %variables = load i64, ptr %variables.at
  %constants.at = getelementptr %descriptor, ptr %d, i64 0, i32 9
  %constants = load i64, ptr %constants.at
  %outputs.at = getelementptr %descriptor, ptr %d, i64 0, i32 11
  %outputs = load i64, ptr %outputs.at
  %right.count = icmp eq i64 %count, %arguments
  br i1 %right.count, label %gather, label %fallback

gather:
  %variable.first = add i64 %inputs, %variables
  %output.first = add i64 %variable.first, %constants
  %arena.index = add i64 %output.first, %outputs
  %slots = add i64 %arena.index, 1
  %buffers = alloca ptr, i64 %slots
  %arrays = alloca ptr, i64 %slots      ; the ndarray behind each buffer of a variable or output
  %sizes.at = getelementptr %descriptor, ptr %d, i64 0, i32 23
  %sizes = load ptr, ptr %sizes.at
  %static = icmp eq ptr %sizes, null
  %shared.at = getelementptr %descriptor, ptr %d, i64 0, i32 1
  %shared = load ptr, ptr %shared.at
  br i1 %static, label %gather.inputs, label %take.latest

take.latest:
  %tables.at = getelementptr %descriptor, ptr %d, i64 0, i32 14
  %tables = load ptr, ptr %tables.at
  %latest.at = getelementptr ptr, ptr %tables, i64 1
  %latest = load ptr, ptr %latest.at
  %no.latest = icmp eq ptr %latest, null
  br i1 %no.latest, label %gather.sizes, label %gather.inputs

gather.inputs:
  %compared = phi ptr [ %shared, %gather ], [ %latest, %take.latest ]
  %inputs.fit = call i1 @gather_inputs(ptr %d, ptr %args, i64 %arguments, ptr %buffers, ptr %compared, i1 false)
  br i1 %inputs.fit, label %gather.variables, label %other.inputs

other.inputs:
  br i1 %static, label %fallback, label %gather.sizes

gather.sizes:
  %filled = call ptr @fill_table(ptr %d, ptr %args, i64 %arguments, ptr %buffers)
  %no.inputs.fit = icmp eq ptr %filled, null
  br i1 %no.inputs.fit, label %fallback, label %gather.variables

gather.variables:
  %params = phi ptr [ %compared, %gather.inputs ], [ %filled, %gather.sizes ]
  %has.sizes = phi i1 [ true, %gather.inputs ], [ false, %gather.sizes ]
  %variable.buffers = getelementptr ptr, ptr %buffers, i64 %inputs
  %variable.arrays = getelementptr ptr, ptr %arrays, i64 %inputs
  %variables.fit = call i1 @gather_variables(ptr %d, i64 %variables, ptr %variable.buffers, ptr %variable.arrays)
  br i1 %variables.fit, label %compute.sizes, label %other.variables

other.variables:
  br i1 %has.sizes, label %fallback, label %refuse

compute.sizes:
  br i1 %has.sizes, label %hold.params, label %call.sizes

call.sizes:
  %sizes.status.at = alloca i64
  store i64 0, ptr %sizes.status.at
  call void %sizes(ptr %params, ptr %sizes.status.at)
  %sizes.status = load i64, ptr %sizes.status.at
  %sizes.fit = icmp eq i64 %sizes.status, 0
  br i1 %sizes.fit, label %keep.sizes, label %refuse.sizes

keep.sizes:
  call void @keep_table(ptr %d, ptr %params)
  br label %hold.params

refuse.sizes:                                     ; OTHER_SIZES in program_image.py
  %other.sizes = icmp eq i64 %sizes.status, 9223372036854775807
  br i1 %other.sizes, label %refuse, label %fail.sizes

refuse:
  call void @release_table(ptr %d, ptr %params)
  br label %fallback

fail.sizes:
  %refused = call ptr @raise(ptr %d, i64 %sizes.status, ptr %params, ptr %args, i64 %count)
  call void @release_table(ptr %d, ptr %params)
  ret ptr %refused

fallback:
  %fallback.at = getelementptr %descriptor, ptr %d, i64 0, i32 17
  %function = load ptr, ptr %fallback.at
  %answer = tail call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %count, ptr null)
  ret ptr %answer

hold.params:
  br i1 %static, label %allocate, label %hold.table

hold.table:
  %references.at = getelementptr i64, ptr %params, i64 -1
  %references = load i64, ptr %references.at
  %one.more = add i64 %references, 1
  store i64 %one.more, ptr %references.at
  br label %allocate

allocate:
  %constant.buffers = getelementptr ptr, ptr %buffers, i64 %variable.first
  %constant.table.at = getelementptr %descriptor, ptr %d, i64 0, i32 10
  %constant.table = load ptr, ptr %constant.table.at
  %constant.bytes = mul i64 %constants, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %constant.buffers, ptr %constant.table, i64 %constant.bytes, i1 false)
  %output.buffers = getelementptr ptr, ptr %buffers, i64 %output.first
  %output.arrays = getelementptr ptr, ptr %arrays, i64 %output.first
  %allocated = call i1 @allocate_outputs(ptr %d, i64 %outputs, ptr %output.buffers, ptr %output.arrays, ptr %params)
  br i1 %allocated, label %choose.arena, label %short

short:                                            ; of memory: the fallback tries again, or raises
  call void @PyErr_Clear()
  br label %give.up

give.up:
  br i1 %static, label %fallback, label %refuse

choose.arena:
  %arena.at = getelementptr ptr, ptr %buffers, i64 %arena.index
  %static.bytes.at = getelementptr %descriptor, ptr %d, i64 0, i32 13
  br i1 %static, label %measure.arena, label %sized.arena

sized.arena:
  %bytes.place.at = getelementptr %descriptor, ptr %d, i64 0, i32 25
  %bytes.place = load i64, ptr %bytes.place.at
  %sized.bytes.at = getelementptr i64, ptr %params, i64 %bytes.place
  br label %measure.arena

measure.arena:
  %arena.bytes.at = phi ptr [ %static.bytes.at, %choose.arena ], [ %sized.bytes.at, %sized.arena ]
  %arena.bytes = load i64, ptr %arena.bytes.at
  %large = icmp ugt i64 %arena.bytes, 16384
  br i1 %large, label %take.arena, label %stack.arena

stack.arena:
  %stack = alloca i8, i64 %arena.bytes, align 64
  store ptr %stack, ptr %arena.at
  br label %run

take.arena:
  %cell.at = getelementptr %descriptor, ptr %d, i64 0, i32 14
  %idle.at = load ptr, ptr %cell.at
  %idle = load ptr, ptr %idle.at
  store ptr null, ptr %idle.at
  %busy = icmp eq ptr %idle, null       ; a concurrent or outer call uses it
  br i1 %busy, label %temporary.arena, label %fit.arena

fit.arena:                                        ; the bytes of an arena that calls have made lie before it
  br i1 %static, label %own.arena, label %compare.arena

compare.arena:
  %has.at = getelementptr i64, ptr %idle, i64 -1
  %has = load i64, ptr %has.at
  %holds = icmp uge i64 %has, %arena.bytes
  br i1 %holds, label %own.arena, label %outgrown

outgrown:
  call void @free.arena(ptr %idle)
  br label %temporary.arena

own.arena:
  store ptr %idle, ptr %arena.at
  br label %run

temporary.arena:                                  ; for larger sizes to come; pages that are not written to are free
  %spare = lshr i64 %arena.bytes, 2
  %kept.spare = select i1 %static, i64 0, i64 %spare
  %capacity = add i64 %arena.bytes, %kept.spare
  %padded = add i64 %capacity, 128
  %raw = call ptr @PyMem_RawMalloc(i64 %padded)
  %none = icmp eq ptr %raw, null
  br i1 %none, label %no.memory, label %align.arena

no.memory:
  call void @drop(ptr %output.arrays, i64 0, i64 %outputs)
  br label %give.up

align.arena:
  %address = ptrtoint ptr %raw to i64
  %beyond = add i64 %address, 127
  %aligned = and i64 %beyond, -64
  %start = inttoptr i64 %aligned to ptr
  %start.bytes = getelementptr i64, ptr %start, i64 -1
  store i64 %capacity, ptr %start.bytes
  %start.raw = getelementptr i64, ptr %start, i64 -2
  store ptr %raw, ptr %start.raw
  store ptr %start, ptr %arena.at
  br label %run

run:
  %lent = phi ptr [ null, %stack.arena ], [ %idle, %own.arena ], [ null, %align.arena ]
  %bought = phi ptr [ null, %stack.arena ], [ null, %own.arena ], [ %start, %align.arena ]
  %status = call i64 @launch(ptr %d, ptr %buffers, i64 %variables, ptr %variable.arrays, ptr %params)
  br i1 %large, label %put.back, label %finish

put.back:
  %free.it = icmp eq ptr %lent, null
  br i1 %free.it, label %keep.arena, label %give.back

give.back:
  br i1 %static, label %return.arena, label %exchange.arena

keep.arena:                                       ; that of a size that no call has had before, for the next one
  %few = icmp ule i64 %arena.bytes, 67108864
  %not.static = xor i1 %static, true
  %keeps = and i1 %few, %not.static
  br i1 %keeps, label %exchange.arena, label %free.arena

exchange.arena:                                   ; another thread may have put one there meanwhile
  %kept = phi ptr [ %lent, %give.back ], [ %bought, %keep.arena ]
  %kept.at = getelementptr %descriptor, ptr %d, i64 0, i32 14
  %kept.cell = load ptr, ptr %kept.at
  %other = load ptr, ptr %kept.cell
  store ptr %kept, ptr %kept.cell
  %alone = icmp eq ptr %other, null
  br i1 %alone, label %finish, label %drop.other

drop.other:
  call void @free.arena(ptr %other)
  br label %finish

return.arena:
  %return.cell.at = getelementptr %descriptor, ptr %d, i64 0, i32 14
  %return.cell = load ptr, ptr %return.cell.at
  store ptr %lent, ptr %return.cell
  br label %finish

free.arena:
  call void @free.arena(ptr %bought)
  br label %finish

finish:
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %end, label %report

report:
  call void @drop(ptr %output.arrays, i64 0, i64 %outputs)
  %raised = call ptr @raise(ptr %d, i64 %status, ptr %params, ptr %args, i64 %count)
  br i1 %static, label %failed, label %release.after.error

release.after.error:
  call void @release_table(ptr %d, ptr %params)
  br label %failed

failed:
  ret ptr %raised

end:
  br i1 %static, label %deliver, label %release

release:
  %held.at = getelementptr i64, ptr %params, i64 -1
  %held = load i64, ptr %held.at
  %left = sub i64 %held, 1
  store i64 %left, ptr %held.at
  %unreferenced = icmp eq i64 %left, 0
  br i1 %unreferenced, label %set.aside, label %deliver

set.aside:
  call void @set_aside(ptr %d, ptr %params)
  br label %deliver

deliver:
  %result = call ptr @deliver(ptr %d, i64 %outputs, ptr %output.arrays)
  ret ptr %result
}

; A table with the sizes of the arguments, and one reference; also collects the data pointers. Null if an argument does
; not match, or memory is exhausted.
define internal ptr @fill_table(ptr %d, ptr %args, i64 %arguments, ptr %buffers) nounwind noinline cold {
entry:
  %tables.at = getelementptr %descriptor, ptr %d, i64 0, i32 14
  %tables = load ptr, ptr %tables.at
  %spare.at = getelementptr ptr, ptr %tables, i64 2
  %spare = load ptr, ptr %spare.at
  store ptr null, ptr %spare.at
  %no.spare = icmp eq ptr %spare, null
  br i1 %no.spare, label %new, label %fill

new:
  %count.at = getelementptr %descriptor, ptr %d, i64 0, i32 24
  %count = load i64, ptr %count.at
  %bytes = mul i64 %count, 8
  %padded = add i64 %bytes, 16                    ; the table is aligned as the allocation is
  %raw = call ptr @PyMem_RawMalloc(i64 %padded)
  %none = icmp eq ptr %raw, null
  br i1 %none, label %no, label %copy

copy:
  %shared.at = getelementptr %descriptor, ptr %d, i64 0, i32 1
  %shared = load ptr, ptr %shared.at
  %new.table = getelementptr i8, ptr %raw, i64 16
  call void @llvm.memcpy.p0.p0.i64(ptr %new.table, ptr %shared, i64 %bytes, i1 false)
  br label %fill

fill:
  %table = phi ptr [ %spare, %entry ], [ %new.table, %copy ]
  %references.at = getelementptr i64, ptr %table, i64 -1
  store i64 1, ptr %references.at
  %fit = call i1 @gather_inputs(ptr %d, ptr %args, i64 %arguments, ptr %buffers, ptr %table, i1 true)
  br i1 %fit, label %yes, label %discard

yes:
  ret ptr %table

discard:
  call void @set_aside(ptr %d, ptr %table)
  br label %no

no:
  ret ptr null
}

; Make a table the latest one; its reference goes to the cell.
define internal void @keep_table(ptr %d, ptr %table) nounwind noinline cold {
entry:
  %tables.at = getelementptr %descriptor, ptr %d, i64 0, i32 14
  %tables = load ptr, ptr %tables.at
  %latest.at = getelementptr ptr, ptr %tables, i64 1
  %before = load ptr, ptr %latest.at
  store ptr %table, ptr %latest.at
  %none = icmp eq ptr %before, null
  br i1 %none, label %end, label %release

release:
  call void @release_table(ptr %d, ptr %before)
  br label %end

end:
  ret void
}

; Release a reference to a table.
define internal void @release_table(ptr %d, ptr %table) nounwind noinline cold {
entry:
  %references.at = getelementptr i64, ptr %table, i64 -1
  %references = load i64, ptr %references.at
  %left = sub i64 %references, 1
  store i64 %left, ptr %references.at
  %unreferenced = icmp eq i64 %left, 0
  br i1 %unreferenced, label %last, label %end

last:
  call void @set_aside(ptr %d, ptr %table)
  br label %end

end:
  ret void
}

; Make a table without references the spare one, or free it if there is one.
define internal void @set_aside(ptr %d, ptr %table) nounwind noinline cold {
entry:
  %tables.at = getelementptr %descriptor, ptr %d, i64 0, i32 14
  %tables = load ptr, ptr %tables.at
  %spare.at = getelementptr ptr, ptr %tables, i64 2
  %spare = load ptr, ptr %spare.at
  %none = icmp eq ptr %spare, null
  br i1 %none, label %store, label %free

store:
  store ptr %table, ptr %spare.at
  ret void

free:
  %raw = getelementptr i8, ptr %table, i64 -16
  call void @PyMem_RawFree(ptr %raw)
  ret void
}

; Free an arena that a call has made; what it lies in stands before it.
define internal void @free.arena(ptr %arena) nounwind noinline {
  %raw.at = getelementptr i64, ptr %arena, i64 -2
  %raw = load ptr, ptr %raw.at
  call void @PyMem_RawFree(ptr %raw)
  ret void
}

; Allocate arrays for the outputs; false, with Python's error set and all of them freed, if memory is exhausted.
define internal i1 @allocate_outputs(ptr %d, i64 %outputs, ptr %buffers, ptr %arrays, ptr %params) nounwind alwaysinline {
entry:
  %own.dims = alloca i64, i64 64                  ; as many axes as NumPy's arrays have
  %operands.at = getelementptr %descriptor, ptr %d, i64 0, i32 12
  %operands = load ptr, ptr %operands.at
  br label %next

next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %take ]
  %more = icmp ult i64 %i, %outputs
  br i1 %more, label %make, label %yes

make:
  %operand = getelementptr %operand, ptr %operands, i64 %i
  %dtype.at = getelementptr %operand, ptr %operand, i64 0, i32 1
  %dtype = load ptr, ptr %dtype.at
  %dims.at = getelementptr %operand, ptr %operand, i64 0, i32 2
  %dims = load ptr, ptr %dims.at
  %ndim.at = getelementptr %operand, ptr %operand, i64 0, i32 3
  %ndim = load i32, ptr %ndim.at
  %kept = load ptr, ptr %operand
  %element.at = getelementptr %operand, ptr %operand, i64 0, i32 5
  %element = load i64, ptr %element.at
  %fixed.dims = icmp eq i64 %element, 0
  br i1 %fixed.dims, label %empty.array, label %axis

axis:
  %axis.i = phi i64 [ 0, %make ], [ %axis.next, %set.dim ]
  %bytes = phi i64 [ %element, %make ], [ %bytes.next, %set.dim ]
  %rank = zext i32 %ndim to i64
  %more.axes = icmp ult i64 %axis.i, %rank
  br i1 %more.axes, label %dim, label %sized.array

dim:
  %dim.at = getelementptr i64, ptr %dims, i64 %axis.i
  %dim.static = load i64, ptr %dim.at
  %symbolic = icmp slt i64 %dim.static, 0
  br i1 %symbolic, label %load.dim, label %set.dim

load.dim:
  %dim.place = xor i64 %dim.static, -1
  %dim.value.at = getelementptr i64, ptr %params, i64 %dim.place
  %dim.value = load i64, ptr %dim.value.at
  br label %set.dim

set.dim:
  %size = phi i64 [ %dim.static, %dim ], [ %dim.value, %load.dim ]
  %own.dim.at = getelementptr i64, ptr %own.dims, i64 %axis.i
  store i64 %size, ptr %own.dim.at
  %bytes.next = mul i64 %bytes, %size
  %axis.next = add i64 %axis.i, 1
  br label %axis

sized.array:                                      ; 64 KiB: LARGE in block_allocator.py
  %is.small = icmp ult i64 %bytes, 65536
  %sized.kept = select i1 %is.small, ptr null, ptr %kept
  br label %empty.array

empty.array:
  %shape = phi ptr [ %dims, %make ], [ %own.dims, %sized.array ]
  %maker = phi ptr [ %kept, %make ], [ %sized.kept, %sized.array ]
  %plain = icmp eq ptr %maker, null
  %empty = select i1 %plain, ptr @PyArray_Empty, ptr %maker
  call void @Py_IncRef(ptr %dtype)                ; it takes a reference
  %array = call ptr %empty(i32 %ndim, ptr %shape, ptr %dtype, i32 0)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %no, label %take

take:
  %array.at = getelementptr ptr, ptr %arrays, i64 %i
  store ptr %array, ptr %array.at
  %data.at = getelementptr i8, ptr %array, i64 16
  %data = load ptr, ptr %data.at
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %i
  store ptr %data, ptr %buffer.at
  %i.next = add i64 %i, 1
  br label %next

yes:
  ret i1 true

no:
  call void @drop(ptr %arrays, i64 0, i64 %i)
  ret i1 false
}

; Run the kernel and return its status, 0 without an error. While the GIL is released another thread may assign to a
; variable that is read, so its array is referenced during the call; a variable that is updated has its tensor moved out
; of its slot, so that no other thread reads it.
define internal i64 @launch(ptr %d, ptr %buffers, i64 %variables, ptr %arrays, ptr %params) nounwind alwaysinline {
entry:
  %status = alloca i64
  store i64 0, ptr %status
  %kernel = load ptr, ptr %d
  %heavy.at = getelementptr %descriptor, ptr %d, i64 0, i32 15
  %heavy = load i64, ptr %heavy.at
  %light = icmp eq i64 %heavy, 0
  br i1 %light, label %quick, label %begin

quick:
  call void %kernel(ptr %buffers, ptr %params, ptr %status)
  br label %end

no.memory:                              ; Python's error is set, and nothing has run
  ret i64 -9223372036854775808

begin:
  %number = call i64 @PyThread_get_thread_ident()
  %writer = call ptr @PyLong_FromUnsignedLong(i64 %number)
  %no.writer = icmp eq ptr %writer, null
  br i1 %no.writer, label %no.memory, label %hold

hold:
  %i = phi i64 [ 0, %begin ], [ %i.next, %hold.one ]
  %more = icmp ult i64 %i, %variables
  br i1 %more, label %hold.one, label %release

hold.one:
  %array.at = getelementptr ptr, ptr %arrays, i64 %i
  %array = load ptr, ptr %array.at
  call void @Py_IncRef(ptr %array)
  call void @lend(ptr %d, i64 %i, ptr %writer)
  %i.next = add i64 %i, 1
  br label %hold

release:
  %thread = call ptr @PyEval_SaveThread()
  call void %kernel(ptr %buffers, ptr %params, ptr %status)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %next

next:
  %j = phi i64 [ 0, %release ], [ %j.next, %put.back ]
  %lent = icmp ult i64 %j, %variables
  br i1 %lent, label %put.back, label %let.go

put.back:
  call void @put_back(ptr %d, i64 %j)
  %j.next = add i64 %j, 1
  br label %next

let.go:
  call void @Py_DecRef(ptr %writer)
  call void @drop(ptr %arrays, i64 0, i64 %variables)
  br label %end

end:
  %code = load i64, ptr %status
  ret i64 %code
}

; Move the tensor of a variable that the kernel updates into its substitute slot; `writer` is the thread.
define internal void @lend(ptr %d, i64 %i, ptr %writer) nounwind {
entry:
  %operand = call ptr @variable(ptr %d, i64 %i)
  %exclusive.at = getelementptr %operand, ptr %operand, i64 0, i32 5
  %exclusive = load i64, ptr %exclusive.at
  %read.only = icmp eq i64 %exclusive, 0
  br i1 %read.only, label %end, label %move

move:
  %own.at = call ptr @slot(ptr %d, ptr %operand, i32 4)
  %substitute.at = call ptr @slot(ptr %d, ptr %operand, i32 21)
  %borrower.at = call ptr @slot(ptr %d, ptr %operand, i32 22)
  %tensor = load ptr, ptr %own.at
  store ptr null, ptr %own.at
  store ptr %tensor, ptr %substitute.at
  call void @Py_IncRef(ptr %writer)
  store ptr %writer, ptr %borrower.at
  br label %end

end:
  ret void
}

; Move the tensors back.
define internal void @put_back(ptr %d, i64 %i) nounwind {
entry:
  %operand = call ptr @variable(ptr %d, i64 %i)
  %exclusive.at = getelementptr %operand, ptr %operand, i64 0, i32 5
  %exclusive = load i64, ptr %exclusive.at
  %read.only = icmp eq i64 %exclusive, 0
  br i1 %read.only, label %end, label %move

move:
  %own.at = call ptr @slot(ptr %d, ptr %operand, i32 4)
  %substitute.at = call ptr @slot(ptr %d, ptr %operand, i32 21)
  %borrower.at = call ptr @slot(ptr %d, ptr %operand, i32 22)
  %tensor = load ptr, ptr %substitute.at
  %writer = load ptr, ptr %borrower.at
  store ptr null, ptr %substitute.at
  store ptr null, ptr %borrower.at
  store ptr %tensor, ptr %own.at
  call void @Py_DecRef(ptr %writer)
  br label %end

end:
  ret void
}

; The operand of a variable.
define internal ptr @variable(ptr %d, i64 %i) nounwind alwaysinline {
entry:
  %operands.at = getelementptr %descriptor, ptr %d, i64 0, i32 8
  %operands = load ptr, ptr %operands.at
  %operand = getelementptr %operand, ptr %operands, i64 %i
  ret ptr %operand
}

; A slot of a variable, whose offset is `field` of the descriptor.
define internal ptr @slot(ptr %d, ptr %operand, i32 %field) nounwind alwaysinline {
entry:
  %variable = load ptr, ptr %operand
  %offset.at = getelementptr ptr, ptr %d, i32 %field
  %offset = load i64, ptr %offset.at
  %slot = getelementptr i8, ptr %variable, i64 %offset
  ret ptr %slot
}

; Convert the output arrays to the result of the call.
define internal ptr @deliver(ptr %d, i64 %outputs, ptr %arrays) nounwind alwaysinline {
entry:
  %form.at = getelementptr %descriptor, ptr %d, i64 0, i32 16
  %form = load i64, ptr %form.at
  switch i64 %form, label %tuple [ i64 0, label %nothing
                                   i64 1, label %single ]

nothing:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct

single:
  %only = load ptr, ptr %arrays
  %tensor = call ptr @wrap(ptr %d, ptr %only)
  ret ptr %tensor

tuple:
  %new.tuple = call ptr @PyTuple_New(i64 %outputs)
  %no.tuple = icmp eq ptr %new.tuple, null
  br i1 %no.tuple, label %drop.all, label %next

drop.all:
  call void @drop(ptr %arrays, i64 0, i64 %outputs)
  ret ptr null

next:
  %i = phi i64 [ 0, %tuple ], [ %i.next, %put ]
  %items.offset = call i64 @tuple_items()
  %items = getelementptr i8, ptr %new.tuple, i64 %items.offset
  %more = icmp ult i64 %i, %outputs
  br i1 %more, label %take, label %complete

take:
  %i.next = add i64 %i, 1
  %array.at = getelementptr ptr, ptr %arrays, i64 %i
  %array = load ptr, ptr %array.at
  %element = call ptr @wrap(ptr %d, ptr %array)
  %failed.element = icmp eq ptr %element, null
  br i1 %failed.element, label %drop.tuple, label %put

put:
  %item.at = getelementptr ptr, ptr %items, i64 %i
  store ptr %element, ptr %item.at
  br label %next

drop.tuple:
  call void @drop(ptr %arrays, i64 %i.next, i64 %outputs)
  call void @Py_DecRef(ptr %new.tuple)
  ret ptr null

complete:
  %plain = icmp eq i64 %form, 2
  br i1 %plain, label %as.is, label %pack

as.is:
  ret ptr %new.tuple

pack:
  %pack.at = getelementptr %descriptor, ptr %d, i64 0, i32 19
  %function = load ptr, ptr %pack.at
  %packed = call ptr @PyObject_CallOneArg(ptr %function, ptr %new.tuple)
  call void @Py_DecRef(ptr %new.tuple)
  ret ptr %packed
}

; A tensor of `array`, whose reference it takes; null, with `array` released, if memory is exhausted.
define internal ptr @wrap(ptr %d, ptr %array) nounwind {
entry:
  %type.at = getelementptr %descriptor, ptr %d, i64 0, i32 2
  %type = load ptr, ptr %type.at
  %slot.at = getelementptr %descriptor, ptr %d, i64 0, i32 3
  %slot = load i64, ptr %slot.at
  %tensor = call ptr @PyType_GenericAlloc(ptr %type, i64 0)
  %failed = icmp eq ptr %tensor, null
  br i1 %failed, label %no, label %yes

yes:
  %array.at = getelementptr i8, ptr %tensor, i64 %slot
  store ptr %array, ptr %array.at
  ret ptr %tensor

no:
  call void @Py_DecRef(ptr %array)
  ret ptr null
}

; Call on_error(status, address of the parameter table, *args), which raises; if it returns, its value is the result. A
; negative status means that a signal handler has raised: Python's error is set. It is saved during the call, and
; restored unless that raises.
define internal ptr @raise(ptr %d, i64 %status, ptr %params, ptr %args, i64 %count) nounwind noinline cold {
entry:
  %not.run = icmp eq i64 %status, -9223372036854775808
  br i1 %not.run, label %none, label %begin

none:
  ret ptr null

begin:
  %type.at = alloca ptr
  %value.at = alloca ptr
  %trace.at = alloca ptr
  %all = add i64 %count, 2
  %given = alloca ptr, i64 %all
  %table.at = getelementptr ptr, ptr %given, i64 1
  %rest = getelementptr ptr, ptr %given, i64 2
  %bytes = mul i64 %count, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %args, i64 %bytes, i1 false)
  call void @PyErr_Fetch(ptr %type.at, ptr %value.at, ptr %trace.at)
  %number = call ptr @PyLong_FromLongLong(i64 %status)
  %table.address = ptrtoint ptr %params to i64
  %table = call ptr @PyLong_FromLongLong(i64 %table.address)
  store ptr %number, ptr %given
  store ptr %table, ptr %table.at
  %no.number = icmp eq ptr %number, null
  %no.table = icmp eq ptr %table, null
  %failed = or i1 %no.number, %no.table
  br i1 %failed, label %no, label %ask

ask:
  %function.at = getelementptr %descriptor, ptr %d, i64 0, i32 18
  %function = load ptr, ptr %function.at
  %answer = call ptr @PyObject_Vectorcall(ptr %function, ptr %given, i64 %all, ptr null)
  call void @Py_DecRef(ptr %number)
  call void @Py_DecRef(ptr %table)
  %raised = icmp eq ptr %answer, null
  %interrupted = icmp slt i64 %status, 0
  %again = xor i1 %raised, true
  %as.before = and i1 %interrupted, %again
  br i1 %as.before, label %restore, label %yes

restore:
  call void @Py_DecRef(ptr %answer)
  %type = load ptr, ptr %type.at
  %value = load ptr, ptr %value.at
  %trace = load ptr, ptr %trace.at
  call void @PyErr_Restore(ptr %type, ptr %value, ptr %trace)
  ret ptr null

yes:
  call void @drop.error(ptr %type.at, ptr %value.at, ptr %trace.at)
  ret ptr %answer

no:
  call void @Py_DecRef(ptr %number)
  call void @Py_DecRef(ptr %table)
  call void @drop.error(ptr %type.at, ptr %value.at, ptr %trace.at)
  ret ptr null
}

; Release a saved error; each of the three may be null, which Py_DecRef accepts.
define internal void @drop.error(ptr %type.at, ptr %value.at, ptr %trace.at) nounwind noinline cold {
entry:
  %type = load ptr, ptr %type.at
  %value = load ptr, ptr %value.at
  %trace = load ptr, ptr %trace.at
  call void @Py_DecRef(ptr %type)
  call void @Py_DecRef(ptr %value)
  call void @Py_DecRef(ptr %trace)
  ret void
}

; Release the references arrays[from .. to).
define internal void @drop(ptr %arrays, i64 %from, i64 %to) nounwind {
entry:
  br label %next

next:
  %i = phi i64 [ %from, %entry ], [ %i.next, %one ]
  %more = icmp ult i64 %i, %to
  br i1 %more, label %one, label %end

one:
  %array.at = getelementptr ptr, ptr %arrays, i64 %i
  %array = load ptr, ptr %array.at
  call void @Py_DecRef(ptr %array)
  %i.next = add i64 %i, 1
  br label %next

end:
  ret void
}
