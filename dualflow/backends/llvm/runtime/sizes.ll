; The sizes of a call: executes the size code of a program, which computes all parameters that depend on sizes.
;
;   df_compute_sizes(params, status)
;
; `params` is the parameter table, whose word 4 is the address of the code; `status` is the status word. Instructions have
; five words: op, target, x, y, k. Target, x and y are indices of parameters, except that the target of a check is the
; number that it writes to the status if it fails and no check has failed before. The ops are those of `SizeOp` in
; size_code.py. Quotients and remainders are rounded down, and 0 for a divisor of 0.

define void @df_compute_sizes(ptr %params, ptr %status) nounwind {
entry:
  %code.at = getelementptr i64, ptr %params, i64 4
  %code = load ptr, ptr %code.at
  br label %next


; Loops end in `multiply.add`, the most frequent op, in `put`, which stores a result, or in `check`, which notes a failure.
; LLVM does not optimise this code: it stores each value that another block reads to the stack.
next:
  %here = phi ptr [ %code, %entry ], [ %after, %multiply.add ], [ %step, %put ], [ %step, %check ], [ %step, %failed ]
  %op = load i64, ptr %here
  %is.multiply.add = icmp eq i64 %op, 1
  br i1 %is.multiply.add, label %multiply.add, label %other

multiply.add:
  %after = getelementptr i64, ptr %here, i64 5
  %factor.at = getelementptr i64, ptr %here, i64 2
  %factor.index = load i64, ptr %factor.at
  %factor.param = getelementptr i64, ptr %params, i64 %factor.index
  %factor = load i64, ptr %factor.param
  %k.at = getelementptr i64, ptr %here, i64 4
  %k = load i64, ptr %k.at
  %scaled = mul i64 %factor, %k
  %summand.at = getelementptr i64, ptr %here, i64 3
  %summand.index = load i64, ptr %summand.at
  %summand.param = getelementptr i64, ptr %params, i64 %summand.index
  %summand = load i64, ptr %summand.param
  %sum = add i64 %scaled, %summand
  %sum.at = getelementptr i64, ptr %here, i64 1
  %sum.index = load i64, ptr %sum.at
  %sum.param = getelementptr i64, ptr %params, i64 %sum.index
  store i64 %sum, ptr %sum.param
  br label %next

other:
  %step = getelementptr i64, ptr %here, i64 5
  %target.at = getelementptr i64, ptr %here, i64 1
  %target = load i64, ptr %target.at
  %x.at = getelementptr i64, ptr %here, i64 2
  %x.index = load i64, ptr %x.at
  %x.param = getelementptr i64, ptr %params, i64 %x.index
  %x = load i64, ptr %x.param
  %y.at = getelementptr i64, ptr %here, i64 3
  %y.index = load i64, ptr %y.at
  %y.param = getelementptr i64, ptr %params, i64 %y.index
  %y = load i64, ptr %y.param
  switch i64 %op, label %end [ i64 2, label %multiply
                               i64 3, label %quotient
                               i64 4, label %remainder
                               i64 5, label %largest
                               i64 6, label %smallest
                               i64 7, label %normalized.index
                               i64 8, label %inferred.size
                               i64 9, label %broadcast.size
                               i64 10, label %broadcast.stride
                               i64 11, label %equal
                               i64 12, label %less
                               i64 13, label %elements
                               i64 14, label %to.float32
                               i64 15, label %to.float64
                               i64 16, label %float32.add
                               i64 17, label %float32.subtract
                               i64 18, label %float32.multiply
                               i64 19, label %float32.divide
                               i64 20, label %float64.add
                               i64 21, label %float64.subtract
                               i64 22, label %float64.multiply
                               i64 23, label %float64.divide
                               i64 24, label %fail.if.equal
                               i64 25, label %fail.unless.equal
                               i64 26, label %fail.if.less
                               i64 27, label %fail.unless.less
                               i64 28, label %fail.if.more.elements ]

multiply:
  %product = mul i64 %x, %y
  br label %put

quotient:
  %quotient.x.counts = icmp sge i64 %x, 0
  %quotient.y.counts = icmp sgt i64 %y, 0
  %quotient.of.counts = and i1 %quotient.x.counts, %quotient.y.counts
  br i1 %quotient.of.counts, label %plain.quotient, label %floor.quotient

plain.quotient:
  %plain.quotient.result = udiv i64 %x, %y
  br label %put

floor.quotient:
  %quotient.result = call i64 @divide(i64 %x, i64 %y, i1 true)
  br label %put

remainder:
  %remainder.x.counts = icmp sge i64 %x, 0
  %remainder.y.counts = icmp sgt i64 %y, 0
  %remainder.of.counts = and i1 %remainder.x.counts, %remainder.y.counts
  br i1 %remainder.of.counts, label %plain.remainder, label %floor.remainder

plain.remainder:
  %plain.remainder.result = urem i64 %x, %y
  br label %put

floor.remainder:
  %remainder.result = call i64 @divide(i64 %x, i64 %y, i1 false)
  br label %put

largest:
  %x.is.larger = icmp sgt i64 %x, %y
  %larger = select i1 %x.is.larger, i64 %x, i64 %y
  br label %put

smallest:
  %x.is.smaller = icmp slt i64 %x, %y
  %smaller = select i1 %x.is.smaller, i64 %x, i64 %y
  br label %put

normalized.index:
  %from.end = icmp slt i64 %x, 0
  %position = add i64 %x, %y
  %index = select i1 %from.end, i64 %position, i64 %x
  br label %put

inferred.size:
  %is.inferred = icmp eq i64 %x, -1
  %inferred = select i1 %is.inferred, i64 %y, i64 %x
  br label %put

broadcast.size:
  %x.is.one = icmp eq i64 %x, 1
  %size = select i1 %x.is.one, i64 %y, i64 %x
  br label %put

broadcast.stride:
  %y.is.one = icmp eq i64 %y, 1
  %stride = select i1 %y.is.one, i64 0, i64 %x
  br label %put

equal:
  %are.equal = icmp eq i64 %x, %y
  %equal.result = zext i1 %are.equal to i64
  br label %put

less:
  %is.less = icmp slt i64 %x, %y
  %less.result = zext i1 %is.less to i64
  br label %put

elements:
  %elements.y = bitcast i64 %y to double
  %count = sitofp i64 %x to double
  %all = fmul double %elements.y, %count
  %elements.result = bitcast double %all to i64
  br label %put

to.float32:
  %single = sitofp i64 %x to float
  br label %put.float32

to.float64:
  %double = sitofp i64 %x to double
  br label %put.float64

float32.add:
  %float32.add.x.word = trunc i64 %x to i32
  %float32.add.x = bitcast i32 %float32.add.x.word to float
  %float32.add.y.word = trunc i64 %y to i32
  %float32.add.y = bitcast i32 %float32.add.y.word to float
  %float32.add.result = fadd float %float32.add.x, %float32.add.y
  br label %put.float32

float32.subtract:
  %float32.subtract.x.word = trunc i64 %x to i32
  %float32.subtract.x = bitcast i32 %float32.subtract.x.word to float
  %float32.subtract.y.word = trunc i64 %y to i32
  %float32.subtract.y = bitcast i32 %float32.subtract.y.word to float
  %float32.subtract.result = fsub float %float32.subtract.x, %float32.subtract.y
  br label %put.float32

float32.multiply:
  %float32.multiply.x.word = trunc i64 %x to i32
  %float32.multiply.x = bitcast i32 %float32.multiply.x.word to float
  %float32.multiply.y.word = trunc i64 %y to i32
  %float32.multiply.y = bitcast i32 %float32.multiply.y.word to float
  %float32.multiply.result = fmul float %float32.multiply.x, %float32.multiply.y
  br label %put.float32

float32.divide:
  %float32.divide.x.word = trunc i64 %x to i32
  %float32.divide.x = bitcast i32 %float32.divide.x.word to float
  %float32.divide.y.word = trunc i64 %y to i32
  %float32.divide.y = bitcast i32 %float32.divide.y.word to float
  %float32.divide.result = fdiv float %float32.divide.x, %float32.divide.y
  br label %put.float32

float64.add:
  %float64.add.x = bitcast i64 %x to double
  %float64.add.y = bitcast i64 %y to double
  %float64.add.result = fadd double %float64.add.x, %float64.add.y
  br label %put.float64

float64.subtract:
  %float64.subtract.x = bitcast i64 %x to double
  %float64.subtract.y = bitcast i64 %y to double
  %float64.subtract.result = fsub double %float64.subtract.x, %float64.subtract.y
  br label %put.float64

float64.multiply:
  %float64.multiply.x = bitcast i64 %x to double
  %float64.multiply.y = bitcast i64 %y to double
  %float64.multiply.result = fmul double %float64.multiply.x, %float64.multiply.y
  br label %put.float64

float64.divide:
  %float64.divide.x = bitcast i64 %x to double
  %float64.divide.y = bitcast i64 %y to double
  %float64.divide.result = fdiv double %float64.divide.x, %float64.divide.y
  br label %put.float64

put.float32:
  %float32.result = phi float [ %single, %to.float32 ], [ %float32.add.result, %float32.add ], [ %float32.subtract.result, %float32.subtract ], [ %float32.multiply.result, %float32.multiply ], [ %float32.divide.result, %float32.divide ]
  %float32.bits = bitcast float %float32.result to i32
  %float32.word = zext i32 %float32.bits to i64
  br label %put

put.float64:
  %float64.result = phi double [ %double, %to.float64 ], [ %float64.add.result, %float64.add ], [ %float64.subtract.result, %float64.subtract ], [ %float64.multiply.result, %float64.multiply ], [ %float64.divide.result, %float64.divide ]
  %float64.word = bitcast double %float64.result to i64
  br label %put

put:
  %result = phi i64 [ %product, %multiply ], [ %plain.quotient.result, %plain.quotient ], [ %quotient.result, %floor.quotient ], [ %plain.remainder.result, %plain.remainder ], [ %remainder.result, %floor.remainder ], [ %larger, %largest ], [ %smaller, %smallest ], [ %index, %normalized.index ], [ %inferred, %inferred.size ], [ %size, %broadcast.size ], [ %stride, %broadcast.stride ], [ %equal.result, %equal ], [ %less.result, %less ], [ %elements.result, %elements ], [ %float32.word, %put.float32 ], [ %float64.word, %put.float64 ]
  %target.param = getelementptr i64, ptr %params, i64 %target
  store i64 %result, ptr %target.param
  br label %next

fail.if.equal:
  %is.equal = icmp eq i64 %x, %y
  br label %check

fail.unless.equal:
  %is.different = icmp ne i64 %x, %y
  br label %check

fail.if.less:
  %is.too.small = icmp slt i64 %x, %y
  br label %check

fail.unless.less:
  %is.too.large = icmp sge i64 %x, %y
  br label %check

fail.if.more.elements:
  %fail.if.more.elements.x = bitcast i64 %x to double
  %fail.if.more.elements.y = bitcast i64 %y to double
  %are.more = fcmp ogt double %fail.if.more.elements.x, %fail.if.more.elements.y
  br label %check

check:
  %fails = phi i1 [ %is.equal, %fail.if.equal ], [ %is.different, %fail.unless.equal ], [ %is.too.small, %fail.if.less ], [ %is.too.large, %fail.unless.less ], [ %are.more, %fail.if.more.elements ]
  br i1 %fails, label %failed, label %next

failed:
  %before = load i64, ptr %status
  %is.first = icmp eq i64 %before, 0
  %number = select i1 %is.first, i64 %target, i64 %before
  store i64 %number, ptr %status
  br label %next

end:
  ret void
}

; The quotient or the remainder, rounded down.
define internal i64 @divide(i64 %x, i64 %y, i1 %is.quotient) nounwind {
  %is.zero = icmp eq i64 %y, 0
  %is.minus.one = icmp eq i64 %y, -1                  ; the processor traps at the quotient of the smallest integer
  %is.special = or i1 %is.zero, %is.minus.one
  %by = select i1 %is.special, i64 1, i64 %y
  %towards.zero = sdiv i64 %x, %by
  %subtracted = mul i64 %towards.zero, %by
  %left = sub i64 %x, %subtracted
  %is.inexact = icmp ne i64 %left, 0
  %signs = xor i64 %left, %by
  %have.other.signs = icmp slt i64 %signs, 0
  %is.above = and i1 %is.inexact, %have.other.signs
  %one.less = sub i64 %towards.zero, 1
  %rounded = select i1 %is.above, i64 %one.less, i64 %towards.zero
  %shifted = add i64 %left, %by
  %modulo = select i1 %is.above, i64 %shifted, i64 %left
  %negative = sub i64 0, %x
  %quotient.of.special = select i1 %is.zero, i64 0, i64 %negative
  %quotient = select i1 %is.special, i64 %quotient.of.special, i64 %rounded
  %remainder = select i1 %is.special, i64 0, i64 %modulo
  %result = select i1 %is.quotient, i64 %quotient, i64 %remainder
  ret i64 %result
}
