; The driver of compiled graphs: executes a step list of a parameter table.
;
;   df_run_steps(buffers, list, status)
;
; `buffers` are the addresses of a graph's buffers, `list` is the address of a list's head in its parameter table,
; `status` is the status word, to which failed checks are written. Words have 8 bytes; `link` is the distance in words
; to the next step, 0 in the last one:
;
;   table     0, link, pool, pfor, size code        its beginning is the head of a list too
;   head      index, link                           the index of the head in the table
;   kernel    0, link, function, n, chunk, ...      function(context, lo, hi, thread) for ranges of 0 to n
;   product   1, link, function, x, y, out, scratch, axes, ...   each of the four as a buffer and a byte offset; then
;                                                   for each axis of a batch its size and the strides of x, y and
;                                                   out in bytes; then the parameters of the function
;   move      2, link, from, to, bytes              both as a buffer and a byte offset
;   stop      3, link                               ends the list if a check has failed
;   note      4, link                               no operation: the next steps belong to another statement
;   tasks     5, link, function, ...                lists of steps for several threads: see tasks.ll
;
; A kernel's context is three addresses: the buffers, the parameters after its own words, the status. If its n is
; more than a chunk, it runs in the parallel-for.
;
; steps.py appends a function to this text:
;   define internal void @begin_step(ptr %step)          stores the running step in the checked mode

%context = type { ptr, ptr, ptr }

declare ptr @memcpy(ptr, ptr, i64)

define void @df_run_steps(ptr %buffers, ptr %list, ptr %status) nounwind {
entry:
  %context = alloca %context
  %params.at = getelementptr %context, ptr %context, i64 0, i32 1
  %status.at = getelementptr %context, ptr %context, i64 0, i32 2
  store ptr %buffers, ptr %context
  store ptr %status, ptr %status.at
  %place = load i64, ptr %list
  %back = sub i64 0, %place
  %table = getelementptr i64, ptr %list, i64 %back
  %pool.at = getelementptr i64, ptr %table, i64 2
  %pfor.at = getelementptr i64, ptr %table, i64 3
  br label %next

next:
  %here = phi ptr [ %list, %entry ], [ %step, %alone ], [ %step, %shared ], [ %step, %one ], [ %step, %several ], [ %step, %move ], [ %step, %stop ], [ %step, %tasks ], [ %step, %take ]
  %link.at = getelementptr i64, ptr %here, i64 1
  %link = load i64, ptr %link.at
  %step = getelementptr i64, ptr %here, i64 %link
  %last = icmp eq i64 %link, 0
  br i1 %last, label %end, label %take

take:
  call void @begin_step(ptr %step)
  %kind = load i64, ptr %step
  %function.at = getelementptr i64, ptr %step, i64 2
  switch i64 %kind, label %kernel [ i64 1, label %product
                                    i64 2, label %move
                                    i64 3, label %stop
                                    i64 4, label %next
                                    i64 5, label %tasks ]

kernel:
  %function = load ptr, ptr %function.at
  %n.at = getelementptr i64, ptr %step, i64 3
  %chunk.at = getelementptr i64, ptr %step, i64 4
  %params = getelementptr i64, ptr %step, i64 5
  %n = load i64, ptr %n.at
  %chunk = load i64, ptr %chunk.at
  store ptr %params, ptr %params.at
  %short = icmp sle i64 %n, %chunk
  br i1 %short, label %alone, label %shared

alone:
  call void %function(ptr %context, i64 0, i64 %n, i64 0)
  br label %next

shared:
  %pool = load ptr, ptr %pool.at
  %pfor = load ptr, ptr %pfor.at
  call void %pfor(ptr %pool, ptr %function, ptr %context, i64 %n, i64 %chunk)
  br label %next

product:
  %multiply = load ptr, ptr %function.at
  %x = call ptr @place(ptr %buffers, ptr %step, i64 3)
  %y = call ptr @place(ptr %buffers, ptr %step, i64 5)
  %out = call ptr @place(ptr %buffers, ptr %step, i64 7)
  %scratch = call ptr @place(ptr %buffers, ptr %step, i64 9)
  %axes.at = getelementptr i64, ptr %step, i64 11
  %axes = load i64, ptr %axes.at
  %axis = getelementptr i64, ptr %step, i64 12
  %axis.words = mul i64 %axes, 4
  %own = getelementptr i64, ptr %axis, i64 %axis.words
  %pool.of = load ptr, ptr %pool.at
  %pfor.of = load ptr, ptr %pfor.at
  %single = icmp eq i64 %axes, 0
  br i1 %single, label %one, label %several

one:
  call void %multiply(ptr %own, ptr %x, ptr %y, ptr %out, ptr %scratch, ptr %pool.of, ptr %pfor.of)
  br label %next

several:
  call void @batch(i64 %axes, ptr %axis, ptr %multiply, ptr %own, ptr %x, ptr %y, ptr %out, ptr %scratch, ptr %pool.of, ptr %pfor.of)
  br label %next

move:
  %from = call ptr @place(ptr %buffers, ptr %step, i64 2)
  %to = call ptr @place(ptr %buffers, ptr %step, i64 4)
  %bytes.at = getelementptr i64, ptr %step, i64 6
  %bytes = load i64, ptr %bytes.at
  call ptr @memcpy(ptr %to, ptr %from, i64 %bytes)
  br label %next

tasks:
  %run = load ptr, ptr %function.at
  call void %run(ptr %buffers, ptr %table, ptr %step, ptr %status)
  br label %next

stop:
  %failed = load i64, ptr %status
  %fine = icmp eq i64 %failed, 0
  br i1 %fine, label %next, label %end

end:
  ret void
}

; The address of two words of a step: a buffer and a byte offset.
define internal ptr @place(ptr %buffers, ptr %step, i64 %word) nounwind alwaysinline {
  %buffer.at = getelementptr i64, ptr %step, i64 %word
  %bytes.at = getelementptr i64, ptr %buffer.at, i64 1
  %buffer = load i64, ptr %buffer.at
  %bytes = load i64, ptr %bytes.at
  %start.at = getelementptr ptr, ptr %buffers, i64 %buffer
  %start = load ptr, ptr %start.at
  %address = getelementptr i8, ptr %start, i64 %bytes
  ret ptr %address
}

; Call the function for each matrix of a batch, whose outermost axis is `axis`.
define internal void @batch(i64 %axes, ptr %axis, ptr %function, ptr %own, ptr %x, ptr %y, ptr %out, ptr %scratch, ptr %pool, ptr %pfor) nounwind {
entry:
  %single = icmp eq i64 %axes, 0
  br i1 %single, label %one, label %several

one:
  call void %function(ptr %own, ptr %x, ptr %y, ptr %out, ptr %scratch, ptr %pool, ptr %pfor)
  ret void

several:
  %x.step.at = getelementptr i64, ptr %axis, i64 1
  %y.step.at = getelementptr i64, ptr %axis, i64 2
  %out.step.at = getelementptr i64, ptr %axis, i64 3
  %inner = getelementptr i64, ptr %axis, i64 4
  %inner.axes = sub i64 %axes, 1
  %size = load i64, ptr %axis
  %x.step = load i64, ptr %x.step.at
  %y.step = load i64, ptr %y.step.at
  %out.step = load i64, ptr %out.step.at
  br label %next

next:
  %iteration = phi i64 [ 0, %several ], [ %iteration.next, %body ]
  %x.now = phi ptr [ %x, %several ], [ %x.next, %body ]
  %y.now = phi ptr [ %y, %several ], [ %y.next, %body ]
  %out.now = phi ptr [ %out, %several ], [ %out.next, %body ]
  %more = icmp slt i64 %iteration, %size
  br i1 %more, label %body, label %end

body:
  call void @batch(i64 %inner.axes, ptr %inner, ptr %function, ptr %own, ptr %x.now, ptr %y.now, ptr %out.now, ptr %scratch, ptr %pool, ptr %pfor)
  %iteration.next = add i64 %iteration, 1
  %x.next = getelementptr i8, ptr %x.now, i64 %x.step
  %y.next = getelementptr i8, ptr %y.now, i64 %y.step
  %out.next = getelementptr i8, ptr %out.now, i64 %out.step
  br label %next

end:
  ret void
}
