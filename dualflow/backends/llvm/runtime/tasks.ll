; The tasks of a region: lists of steps, which threads run concurrently, each after its predecessors.
;
;   df_run_tasks(buffers, table, step, status)
;
; `table` is the parameter table, `step` the step of the region in it. Its words:
;
;   5, link, function, threads, entries, workspace, arena, scratch, bytes, tasks, ready, ...
;
; `threads` take tasks. Each has a copy of the table of buffers, of which `entries` exist; entry `workspace` of the copy
; is its scratch memory, `bytes` long, of that which begins at byte `scratch` of buffer `arena`. After these words come
; four for each of the `tasks`, in an order that is right for one thread:
;
;   list                the distance in words from the step to the head of the task's step list
;   predecessors        the number of tasks that must be finished before it starts
;   successors          the word of the step with the first of its successors
;   successor count     their number
;
; then the lists of successors, and at word `ready` the number of tasks without predecessors, and these tasks.
;
; Ready tasks are in a queue, which has an entry for each task of the region and is filled once, from the front.
; 0 is an entry that is not filled. A thread takes the task at `head` when it is there, by a compare-and-swap that
; moves `head` on; it never waits for an entry that it has claimed already, so a preempted thread delays only what
; depends on its own task. The thread that ends the last predecessor of a task appends the task.
;
; Correctness. The end of a task is an acquire and release of the counter of each successor; the last such end comes
; after all others, and its thread then stores the entry of the queue with a release. The thread that takes the entry
; loads it with an acquire, so it sees the memory that all predecessors wrote. A thread leaves when all tasks are taken;
; the parallel-for returns when all threads have left, so after the last task.
;
; The chunks of the parallel-for are threads: where one thread runs all chunks, the first one runs all tasks.
;
; The loader of this file appends relax(), the processor's hint for spin loops.

%region = type {
  ptr, ptr, ptr, ptr, ptr, i64, [80 x i8],      ; 0-5    buffers, step, status, unfinished, queue, the number of tasks
  i64, [120 x i8],                              ; 7      head: tasks taken
  i64, [120 x i8]                               ; 9      tail: tasks appended
}

declare i32 @sched_yield()
declare ptr @memcpy(ptr, ptr, i64)
declare void @df_run_steps(ptr, ptr, ptr)

define void @df_run_tasks(ptr %buffers, ptr %table, ptr %step, ptr %status) nounwind noinline {
entry:
  %count.at = getelementptr i64, ptr %step, i64 9
  %count = load i64, ptr %count.at
  %region = alloca %region, align 128
  %unfinished = alloca i64, i64 %count, align 128
  %queue = alloca i64, i64 %count, align 128
  store ptr %buffers, ptr %region
  %step.at = getelementptr %region, ptr %region, i64 0, i32 1
  store ptr %step, ptr %step.at
  %status.at = getelementptr %region, ptr %region, i64 0, i32 2
  store ptr %status, ptr %status.at
  %unfinished.at = getelementptr %region, ptr %region, i64 0, i32 3
  store ptr %unfinished, ptr %unfinished.at
  %queue.at = getelementptr %region, ptr %region, i64 0, i32 4
  store ptr %queue, ptr %queue.at
  %tasks.at = getelementptr %region, ptr %region, i64 0, i32 5
  store i64 %count, ptr %tasks.at
  %head.at = getelementptr %region, ptr %region, i64 0, i32 7
  store i64 0, ptr %head.at
  br label %count.predecessors

count.predecessors:
  %task = phi i64 [ 0, %entry ], [ %task.next, %count.predecessors ]
  %word = mul i64 %task, 4
  %predecessors.word = add i64 %word, 12
  %predecessors.at = getelementptr i64, ptr %step, i64 %predecessors.word
  %predecessors = load i64, ptr %predecessors.at
  %counter = getelementptr i64, ptr %unfinished, i64 %task
  store i64 %predecessors, ptr %counter
  %entry.at = getelementptr i64, ptr %queue, i64 %task
  store i64 0, ptr %entry.at
  %task.next = add i64 %task, 1
  %more = icmp slt i64 %task.next, %count
  br i1 %more, label %count.predecessors, label %begin

begin:
  %ready.word.at = getelementptr i64, ptr %step, i64 10
  %ready.word = load i64, ptr %ready.word.at
  %ready.at = getelementptr i64, ptr %step, i64 %ready.word
  %ready = load i64, ptr %ready.at
  %tail.at = getelementptr %region, ptr %region, i64 0, i32 9
  store i64 %ready, ptr %tail.at
  br label %fill

fill:
  %filled = phi i64 [ 0, %begin ], [ %filled.next, %fill ]
  %filled.next = add i64 %filled, 1
  %begins.at = getelementptr i64, ptr %ready.at, i64 %filled.next
  %begins = load i64, ptr %begins.at
  %number = add i64 %begins, 1
  %to = getelementptr i64, ptr %queue, i64 %filled
  store i64 %number, ptr %to
  %unfilled = icmp slt i64 %filled.next, %ready
  br i1 %unfilled, label %fill, label %run

run:
  %pool.at = getelementptr i64, ptr %table, i64 2
  %pfor.at = getelementptr i64, ptr %table, i64 3
  %threads.at = getelementptr i64, ptr %step, i64 3
  %pool = load ptr, ptr %pool.at
  %pfor = load ptr, ptr %pfor.at
  %threads = load i64, ptr %threads.at
  call void %pfor(ptr %pool, ptr @take_tasks, ptr %region, i64 %threads, i64 1)
  ret void
}

; Take and run tasks until all are taken.
define internal void @take_tasks(ptr %region, i64 %index, i64 %unused, i64 %thread) nounwind {
entry:
  %step.at = getelementptr %region, ptr %region, i64 0, i32 1
  %status.at = getelementptr %region, ptr %region, i64 0, i32 2
  %unfinished.at = getelementptr %region, ptr %region, i64 0, i32 3
  %queue.at = getelementptr %region, ptr %region, i64 0, i32 4
  %tasks.at = getelementptr %region, ptr %region, i64 0, i32 5
  %head.at = getelementptr %region, ptr %region, i64 0, i32 7
  %tail.at = getelementptr %region, ptr %region, i64 0, i32 9
  %buffers = load ptr, ptr %region
  %step = load ptr, ptr %step.at
  %status = load ptr, ptr %status.at
  %unfinished = load ptr, ptr %unfinished.at
  %queue = load ptr, ptr %queue.at
  %tasks = load i64, ptr %tasks.at
  %entries.at = getelementptr i64, ptr %step, i64 4
  %workspace.at = getelementptr i64, ptr %step, i64 5
  %arena.at = getelementptr i64, ptr %step, i64 6
  %scratch.at = getelementptr i64, ptr %step, i64 7
  %bytes.at = getelementptr i64, ptr %step, i64 8
  %entries = load i64, ptr %entries.at
  %workspace = load i64, ptr %workspace.at
  %arena = load i64, ptr %arena.at
  %scratch = load i64, ptr %scratch.at
  %bytes = load i64, ptr %bytes.at
  %size = add i64 %workspace, 1
  %own = alloca ptr, i64 %size, align 64
  %entry.bytes = mul i64 %entries, 8
  %copied = call ptr @memcpy(ptr %own, ptr %buffers, i64 %entry.bytes)
  %arena.entry = getelementptr ptr, ptr %own, i64 %arena
  %arena.start = load ptr, ptr %arena.entry
  %distance = mul i64 %index, %bytes
  %offset = add i64 %scratch, %distance
  %own.scratch = getelementptr i8, ptr %arena.start, i64 %offset
  %own.entry = getelementptr ptr, ptr %own, i64 %workspace
  store ptr %own.scratch, ptr %own.entry
  br label %look

look:
  %spins = phi i64 [ 0, %entry ], [ 0, %done ], [ %spins, %claim ], [ %spins.next, %pause ], [ %spins, %yield ]
  %head = load atomic i64, ptr %head.at monotonic, align 8
  %left = icmp slt i64 %head, %tasks
  br i1 %left, label %peek, label %end

peek:
  %entry.at = getelementptr i64, ptr %queue, i64 %head
  %number = load atomic i64, ptr %entry.at acquire, align 8
  %empty = icmp eq i64 %number, 0
  br i1 %empty, label %idle, label %claim

idle:
  %patient = icmp ult i64 %spins, 1000
  br i1 %patient, label %pause, label %yield

pause:
  call void @relax()
  %spins.next = add i64 %spins, 1
  br label %look

yield:                                          ; the thread that runs a task may be waiting for this very core
  %yielded = call i32 @sched_yield()
  br label %look

claim:
  %head.next = add i64 %head, 1
  %swap = cmpxchg ptr %head.at, i64 %head, i64 %head.next monotonic monotonic
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %run, label %look

run:
  %task = sub i64 %number, 1
  %word = mul i64 %task, 4
  %list.word = add i64 %word, 11
  %list.word.at = getelementptr i64, ptr %step, i64 %list.word
  %list.distance = load i64, ptr %list.word.at
  %list = getelementptr i64, ptr %step, i64 %list.distance
  call void @df_run_steps(ptr %own, ptr %list, ptr %status)
  %successors.at = getelementptr i64, ptr %list.word.at, i64 2
  %successors = load i64, ptr %successors.at
  %count.at = getelementptr i64, ptr %list.word.at, i64 3
  %count = load i64, ptr %count.at
  br label %release

release:
  %i = phi i64 [ 0, %run ], [ %i.next, %released ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %release.one, label %done

release.one:
  %successor.word = add i64 %successors, %i
  %successor.at = getelementptr i64, ptr %step, i64 %successor.word
  %successor = load i64, ptr %successor.at
  %counter = getelementptr i64, ptr %unfinished, i64 %successor
  %before = atomicrmw sub ptr %counter, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %append, label %released

append:
  %to = atomicrmw add ptr %tail.at, i64 1 monotonic
  %to.at = getelementptr i64, ptr %queue, i64 %to
  %successor.number = add i64 %successor, 1
  store atomic i64 %successor.number, ptr %to.at release, align 8
  br label %released

released:
  %i.next = add i64 %i, 1
  br label %release

done:
  br label %look

end:
  ret void
}
