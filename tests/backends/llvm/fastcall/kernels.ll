; Kernels for the tests of the fast call, over f64 vectors of params[0] elements, at most 8.
;   plus_one   buffers x, out             out = x + 1
;   multiply   buffers x, k, out0, out1   out0 = x * k, out1 = x - k
;   descend    buffers x, v               v = v - x / 2
;   through_arena     buffers x, out, arena      out = x, by way of the arena's last bytes; params[1] is its size
;   fail       buffers x, out             out = x + 1, status = params[1]
;   nothing    any
;   sizes      no kernel: computes params[1] = 8 * params[0] * params[2], the arena's bytes, from params[0]; its status
;              is 5 for 6 elements, and that of other sizes for 5
;   wait       any                        stores 1 in the i64 at address params[0] and waits until it is 2

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @binary(ptr %x, ptr %y, ptr %out, i64 %n, double %scale, double %product) {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %x.at = getelementptr double, ptr %x, i64 %i
  %y.at = getelementptr double, ptr %y, i64 %i
  %out.at = getelementptr double, ptr %out, i64 %i
  %a = load double, ptr %x.at
  %b = load double, ptr %y.at
  %scaled = fmul double %b, %scale
  %sum = fadd double %a, %scaled
  %times = fmul double %a, %b
  %is.product = fcmp one double %product, 0.0
  %value = select i1 %is.product, double %times, double %sum
  store double %value, ptr %out.at
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %next, label %end
end:
  ret void
}

@one = private constant [8 x double] [double 1.0, double 1.0, double 1.0, double 1.0,
                                 double 1.0, double 1.0, double 1.0, double 1.0]

define void @plus_one(ptr %buffers, ptr %params, ptr %status) {
  %n = load i64, ptr %params
  %out.at = getelementptr ptr, ptr %buffers, i64 1
  %x = load ptr, ptr %buffers
  %out = load ptr, ptr %out.at
  call void @binary(ptr %x, ptr @one, ptr %out, i64 %n, double 1.0, double 0.0)
  ret void
}

define void @multiply(ptr %buffers, ptr %params, ptr %status) {
  %n = load i64, ptr %params
  %k.at = getelementptr ptr, ptr %buffers, i64 1
  %out0.at = getelementptr ptr, ptr %buffers, i64 2
  %out1.at = getelementptr ptr, ptr %buffers, i64 3
  %x = load ptr, ptr %buffers
  %k = load ptr, ptr %k.at
  %out0 = load ptr, ptr %out0.at
  %out1 = load ptr, ptr %out1.at
  call void @binary(ptr %x, ptr %k, ptr %out0, i64 %n, double 0.0, double 1.0)
  call void @binary(ptr %x, ptr %k, ptr %out1, i64 %n, double -1.0, double 0.0)
  ret void
}

define void @descend(ptr %buffers, ptr %params, ptr %status) {
  %n = load i64, ptr %params
  %v.at = getelementptr ptr, ptr %buffers, i64 1
  %x = load ptr, ptr %buffers
  %v = load ptr, ptr %v.at
  call void @binary(ptr %v, ptr %x, ptr %v, i64 %n, double -0.5, double 0.0)
  ret void
}

define void @through_arena(ptr %buffers, ptr %params, ptr %status) {
entry:
  %n = load i64, ptr %params
  %arena.bytes.at = getelementptr i64, ptr %params, i64 1
  %arena.bytes = load i64, ptr %arena.bytes.at
  %bytes = mul i64 %n, 8
  %out.at = getelementptr ptr, ptr %buffers, i64 1
  %arena.at = getelementptr ptr, ptr %buffers, i64 2
  %x = load ptr, ptr %buffers
  %out = load ptr, ptr %out.at
  %arena = load ptr, ptr %arena.at
  %address = ptrtoint ptr %arena to i64
  %astray = and i64 %address, 63
  store i64 %astray, ptr %status
  %last = sub i64 %arena.bytes, %bytes
  %end = getelementptr i8, ptr %arena, i64 %last
  call void @llvm.memcpy.p0.p0.i64(ptr %end, ptr %x, i64 %bytes, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr %end, i64 %bytes, i1 false)
  ret void
}

define void @sizes(ptr %params, ptr %status) {
  %n = load i64, ptr %params
  %factor.at = getelementptr i64, ptr %params, i64 2
  %factor = load i64, ptr %factor.at
  %elements = mul i64 %n, %factor
  %bytes = mul i64 %elements, 8
  %bytes.at = getelementptr i64, ptr %params, i64 1
  store i64 %bytes, ptr %bytes.at
  %six = icmp eq i64 %n, 6
  %five = icmp eq i64 %n, 5
  %other = select i1 %five, i64 9223372036854775807, i64 0
  %number = select i1 %six, i64 5, i64 %other
  store i64 %number, ptr %status
  ret void
}

define void @fail(ptr %buffers, ptr %params, ptr %status) {
  call void @plus_one(ptr %buffers, ptr %params, ptr %status)
  %code.at = getelementptr i64, ptr %params, i64 1
  %code = load i64, ptr %code.at
  store i64 %code, ptr %status
  ret void
}

define void @nothing(ptr %buffers, ptr %params, ptr %status) {
  ret void
}

define void @wait(ptr %buffers, ptr %params, ptr %status) {
entry:
  %at = load i64, ptr %params
  %flag = inttoptr i64 %at to ptr
  store atomic i64 1, ptr %flag seq_cst, align 8
  br label %look
look:
  %now = load atomic i64, ptr %flag seq_cst, align 8
  %not.yet = icmp ne i64 %now, 2
  br i1 %not.yet, label %look, label %end
end:
  ret void
}
