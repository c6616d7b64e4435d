; Checks whether the tensors of a call match the compiled graph, and collects their data pointers.
; Compiled together with entry.ll, which explains the structures.

; Whether `array` has exactly the dtype, shape and flags of `operand`. A symbolic dim has to be equal to the parameter at
; its index in `params`; or, if `stores`, is stored there.
define internal i1 @fits(ptr %array, ptr %operand, ptr %params, i1 %stores) nounwind alwaysinline {
entry:
  %null = icmp eq ptr %array, null
  br i1 %null, label %no, label %type

type:
  %type.at = getelementptr i8, ptr %array, i64 8
  %type.is = load ptr, ptr %type.at
  %ndarray = icmp eq ptr %type.is, @PyArray_Type
  br i1 %ndarray, label %header, label %no

header:
  %dtype.at = getelementptr i8, ptr %array, i64 56
  %dtype = load ptr, ptr %dtype.at
  %dtype.asked.at = getelementptr %operand, ptr %operand, i64 0, i32 1
  %dtype.asked = load ptr, ptr %dtype.asked.at
  %same.dtype = icmp eq ptr %dtype, %dtype.asked
  %ndim.at = getelementptr i8, ptr %array, i64 24
  %ndim = load i32, ptr %ndim.at
  %ndim.asked.at = getelementptr %operand, ptr %operand, i64 0, i32 3
  %ndim.asked = load i32, ptr %ndim.asked.at
  %same.ndim = icmp eq i32 %ndim, %ndim.asked
  %flags.at = getelementptr i8, ptr %array, i64 64
  %flags = load i32, ptr %flags.at
  %flags.asked.at = getelementptr %operand, ptr %operand, i64 0, i32 4
  %flags.asked = load i32, ptr %flags.asked.at
  %flags.had = and i32 %flags, %flags.asked
  %same.flags = icmp eq i32 %flags.had, %flags.asked
  %both = and i1 %same.dtype, %same.ndim
  %all = and i1 %both, %same.flags
  br i1 %all, label %shape, label %no

shape:
  %dims.at = getelementptr i8, ptr %array, i64 32
  %dims = load ptr, ptr %dims.at
  %dims.asked.at = getelementptr %operand, ptr %operand, i64 0, i32 2
  %dims.asked = load ptr, ptr %dims.asked.at
  %rank = zext i32 %ndim to i64
  br label %axis

axis:
  %i = phi i64 [ 0, %shape ], [ %i.next, %extent ], [ %i.next, %compare.dim ], [ %i.next, %store.dim ]
  %more = icmp ult i64 %i, %rank
  br i1 %more, label %extent, label %yes

extent:
  %dim.at = getelementptr i64, ptr %dims, i64 %i
  %dim = load i64, ptr %dim.at
  %dim.asked.at = getelementptr i64, ptr %dims.asked, i64 %i
  %dim.asked = load i64, ptr %dim.asked.at
  %same.dim = icmp eq i64 %dim, %dim.asked
  %i.next = add i64 %i, 1
  br i1 %same.dim, label %axis, label %other.dim

other.dim:
  %symbolic = icmp slt i64 %dim.asked, 0
  br i1 %symbolic, label %parameter, label %no

parameter:
  %place = xor i64 %dim.asked, -1
  %param.at = getelementptr i64, ptr %params, i64 %place
  br i1 %stores, label %store.dim, label %compare.dim

compare.dim:
  %param = load i64, ptr %param.at
  %same.size = icmp eq i64 %dim, %param
  br i1 %same.size, label %axis, label %no

store.dim:
  store i64 %dim, ptr %param.at
  br label %axis

yes:
  ret i1 true

no:
  ret i1 false
}

; The array inside `tensor`, or null if `tensor` is no tensor.
define internal ptr @array_of(ptr %d, ptr %tensor) nounwind alwaysinline {
entry:
  %null = icmp eq ptr %tensor, null
  br i1 %null, label %no, label %type

type:
  %type.at = getelementptr i8, ptr %tensor, i64 8
  %type.is = load ptr, ptr %type.at
  %type.asked.at = getelementptr %descriptor, ptr %d, i64 0, i32 2
  %type.asked = load ptr, ptr %type.asked.at
  %same = icmp eq ptr %type.is, %type.asked
  br i1 %same, label %yes, label %no

yes:
  %slot.at = getelementptr %descriptor, ptr %d, i64 0, i32 3
  %slot = load i64, ptr %slot.at
  %array.at = getelementptr i8, ptr %tensor, i64 %slot
  %array = load ptr, ptr %array.at
  ret ptr %array

no:
  ret ptr null
}

; Collect the data pointers of the arguments; false if one does not match. An argument that is a Python value must be
; the identical object: its type is immutable, so it has the same value. A symbolic dim is compared with `params`; or,
; if `stores`, stored there.
define internal i1 @gather_inputs(ptr %d, ptr %args, i64 %arguments, ptr %buffers, ptr %params, i1 %stores) nounwind alwaysinline {
entry:
  %operands.at = getelementptr %descriptor, ptr %d, i64 0, i32 6
  %operands = load ptr, ptr %operands.at
  br label %next

next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %fixed ], [ %i.next, %take ]
  %more = icmp ult i64 %i, %arguments
  br i1 %more, label %check, label %yes

check:
  %i.next = add i64 %i, 1
  %tensor.at = getelementptr ptr, ptr %args, i64 %i
  %tensor = load ptr, ptr %tensor.at
  %operand = getelementptr %operand, ptr %operands, i64 %i
  %asked = load ptr, ptr %operand
  %open = icmp eq ptr %asked, null
  br i1 %open, label %input, label %fixed

fixed:
  %same = icmp eq ptr %tensor, %asked
  br i1 %same, label %next, label %no

input:
  %array = call ptr @array_of(ptr %d, ptr %tensor)
  %fits = call i1 @fits(ptr %array, ptr %operand, ptr %params, i1 %stores)
  br i1 %fits, label %take, label %no

take:
  %data.at = getelementptr i8, ptr %array, i64 16
  %data = load ptr, ptr %data.at
  %place.at = getelementptr %operand, ptr %operand, i64 0, i32 5
  %place = load i64, ptr %place.at
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %place
  store ptr %data, ptr %buffer.at
  br label %next

yes:
  ret i1 true

no:
  ret i1 false
}

; The same for the current values of the variables. One that the kernel updates must have no other
; reference: only the variable refers to its tensor, and only the tensor to its array.
define internal i1 @gather_variables(ptr %d, i64 %variables, ptr %buffers, ptr %arrays) nounwind alwaysinline {
entry:
  %operands.at = getelementptr %descriptor, ptr %d, i64 0, i32 8
  %operands = load ptr, ptr %operands.at
  %slot.at = getelementptr %descriptor, ptr %d, i64 0, i32 4
  %slot = load i64, ptr %slot.at
  br label %next

next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %take ]
  %more = icmp ult i64 %i, %variables
  br i1 %more, label %check, label %yes

check:
  %operand = getelementptr %operand, ptr %operands, i64 %i
  %variable = load ptr, ptr %operand
  %tensor.at = getelementptr i8, ptr %variable, i64 %slot
  %tensor = load ptr, ptr %tensor.at
  %array = call ptr @array_of(ptr %d, ptr %tensor)
  %fits = call i1 @fits(ptr %array, ptr %operand, ptr null, i1 false)
  br i1 %fits, label %sharing, label %no

sharing:
  %exclusive.at = getelementptr %operand, ptr %operand, i64 0, i32 5
  %exclusive = load i64, ptr %exclusive.at
  %read.only = icmp eq i64 %exclusive, 0
  br i1 %read.only, label %take, label %alone

alone:                                            ; the count has 32 bits in every version of CPython
  %tensor.references = load i32, ptr %tensor
  %array.references = load i32, ptr %array
  %tensor.own = icmp eq i32 %tensor.references, 1
  %array.own = icmp eq i32 %array.references, 1
  %own = and i1 %tensor.own, %array.own
  br i1 %own, label %take, label %no

take:
  %data.at = getelementptr i8, ptr %array, i64 16
  %data = load ptr, ptr %data.at
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %i
  store ptr %data, ptr %buffer.at
  %array.at = getelementptr ptr, ptr %arrays, i64 %i
  store ptr %array, ptr %array.at
  %i.next = add i64 %i, 1
  br label %next

yes:
  ret i1 true

no:
  ret i1 false
}
