; A parallel-for: the caller and worker threads run the chunks of one loop.
;
;   df_pfor(pool, fn, ctx, n, chunk)   calls   fn(ctx, lo, hi, thread)   for lo = 0, chunk, 2 chunk, ... below n,
;
; with hi = min(lo + chunk, n), each range once, in any order, on any thread. The ranges are the same however many
; threads there are, so a kernel that keeps one partial sum per chunk gives the same bits on every machine size.
; thread is 0 on the caller and 1, 2, ... on the workers: chunks that run at the same moment get different numbers.
;
; Chunks are not assigned to threads: each running thread claims a chunk. The caller and even workers take the first that
; is left, odd workers the last. So a preempted worker delays the loop only if it is inside a chunk, and a pool without
; workers (in a forked child) still finishes every loop. Of two threads, each computes about the same part of one loop
; after another, which is in its cache. A caller does not wait for a busy pool, which another thread uses or which runs a
; loop that contains this one: it runs its chunks alone.
;
; Correctness. `remaining` is the range of the chunks not yet claimed: the first in the lower half, the end in the upper.
; A claim is a compare-and-swap that shortens a range that is not empty. A job lasts from the owner's store of
; `remaining` until the owner loads a `done` that is the number of chunks.
;   1. Only the holder of `lock` writes the job's fields and refills `remaining`, and it does so between jobs.
;   2. A claim succeeds only while the range is not empty, hence during a job. It belongs to the job that is current at
;      that moment, even when the claimer read the expected range long ago, during an older job: a claim depends on the
;      range only. (There is no ABA problem, since nothing else was read before.)
;   3. The claimer reads the fields after its claim. They don't change: the job can't end before the
;      claimer has added its own 1 to `done`. It sees them complete: the owner's store of `remaining` is a release,
;      the swaps after it continue that release sequence, and a claim is an acquire.
;   4. The owner's acquire of `done` = chunks comes after every claimer's release, so the kernel's writes are visible
;      to the caller, and no thread accesses the job when the lock is released.
; Sleeping: a worker first increments `sleepers`, then loads `remaining` again; an owner first stores `remaining`, then
; loads `sleepers`. All four are sequentially consistent, so one of them sees the other's store. The worker loads the
; futex word before it increments `sleepers`, so an earlier wake ends its wait at once.

; Groups of fields that different threads write are 128 bytes apart, for processors that fetch lines in pairs.
%pool = type {
  i32, [124 x i8],                              ;  0     lock: 1 while a caller owns the pool
  i64, [120 x i8],                              ;  2     remaining: range of chunks not claimed
  i64, [120 x i8],                              ;  4     done: chunks finished
  i32, i32, [120 x i8],                         ;  6, 7  futex word: number of wakes; sleepers: workers about to wait
  ptr, ptr, i64, i64, [96 x i8],                ;  9-12  the job: fn, ctx, n, chunk
  i64, i64, [112 x i8],                         ; 14, 15 limit: workers to use; running: workers started
  [64 x %worker]                                ; 17     the argument of each worker thread
}
%worker = type { ptr, i64 }                     ; pool, thread

declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
declare i32 @prctl(i32, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sigdelset(ptr, i32)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
; The loader of this file appends two more, which depend on the processor:
;   define internal void @relax()           the processor's hint for spin loops
;   define internal i64 @futex_call()       the number of Linux's futex system call

@thread_name = private constant [9 x i8] c"dualflow\00"

define void @df_pfor(ptr %pool, ptr %fn, ptr %ctx, i64 %n, i64 %requested) nounwind {
entry:
  %chunk = call i64 @llvm.smax.i64(i64 %requested, i64 1)
  %most = add i64 %n, %chunk
  %last = sub i64 %most, 1
  %chunks = sdiv i64 %last, %chunk
  %limit.at = getelementptr %pool, ptr %pool, i64 0, i32 14
  %limit = load atomic i64, ptr %limit.at monotonic, align 8
  %several = icmp sgt i64 %chunks, 1
  %helped = icmp sgt i64 %limit, 0
  %countable = icmp ult i64 %chunks, 4294967296
  %shared = and i1 %several, %countable
  %worth = and i1 %shared, %helped
  br i1 %worth, label %enter, label %alone

enter:
  %lock.at = getelementptr %pool, ptr %pool, i64 0, i32 0
  %exchanged = cmpxchg ptr %lock.at, i32 0, i32 1 acquire monotonic
  %owner = extractvalue { i32, i1 } %exchanged, 1
  br i1 %owner, label %staff, label %alone

alone:
  call void @run_alone(ptr %fn, ptr %ctx, i64 %n, i64 %chunk)
  ret void

staff:
  %running.at = getelementptr %pool, ptr %pool, i64 0, i32 15
  %running = load i64, ptr %running.at
  %short = icmp slt i64 %running, %limit
  br i1 %short, label %start, label %publish

start:
  call void @start_workers(ptr %pool)
  br label %publish

publish:
  %fn.at = getelementptr %pool, ptr %pool, i64 0, i32 9
  %ctx.at = getelementptr %pool, ptr %pool, i64 0, i32 10
  %n.at = getelementptr %pool, ptr %pool, i64 0, i32 11
  %chunk.at = getelementptr %pool, ptr %pool, i64 0, i32 12
  store ptr %fn, ptr %fn.at
  store ptr %ctx, ptr %ctx.at
  store i64 %n, ptr %n.at
  store i64 %chunk, ptr %chunk.at
  %done.at = getelementptr %pool, ptr %pool, i64 0, i32 4
  store atomic i64 0, ptr %done.at monotonic, align 8
  %remaining.at = getelementptr %pool, ptr %pool, i64 0, i32 2
  %range = shl i64 %chunks, 32
  store atomic i64 %range, ptr %remaining.at seq_cst, align 8
  %sleepers.at = getelementptr %pool, ptr %pool, i64 0, i32 7
  %sleepers = load atomic i32, ptr %sleepers.at seq_cst, align 4
  %asleep = icmp ne i32 %sleepers, 0
  br i1 %asleep, label %call, label %work

call:
  call void @wake(ptr %pool, i64 %chunks)
  br label %work

work:
  call void @drain(ptr %pool, i64 0)
  br label %wait

wait:                                           ; for the chunks that workers are still inside
  %spins = phi i64 [ 0, %work ], [ %spins.next, %pause ], [ %spins, %yield ]
  %done = load atomic i64, ptr %done.at acquire, align 8
  %all = icmp eq i64 %done, %chunks
  br i1 %all, label %leave, label %patience

patience:
  %patient = icmp ult i64 %spins, 1000
  br i1 %patient, label %pause, label %yield

pause:
  call void @relax()
  %spins.next = add i64 %spins, 1
  br label %wait

yield:                                          ; the worker may be waiting for this very core
  %yielded = call i32 @sched_yield()
  br label %wait

leave:
  store atomic i32 0, ptr %lock.at release, align 4
  ret void
}

; Run all chunks in order on the calling thread.
define internal void @run_alone(ptr %fn, ptr %ctx, i64 %n, i64 %chunk) nounwind {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %next, label %end

next:
  %lo = phi i64 [ 0, %entry ], [ %hi, %next ]
  %left = sub i64 %n, %lo
  %size = call i64 @llvm.smin.i64(i64 %left, i64 %chunk)
  %hi = add i64 %lo, %size
  call void %fn(ptr %ctx, i64 %lo, i64 %hi, i64 0)
  %more = icmp slt i64 %hi, %n
  br i1 %more, label %next, label %end

end:
  ret void
}

; Claim and run chunks of the current job until all are claimed.
define internal void @drain(ptr %pool, i64 %thread.index) nounwind {
entry:
  %remaining.at = getelementptr %pool, ptr %pool, i64 0, i32 2
  %backwards = trunc i64 %thread.index to i1
  %step = select i1 %backwards, i64 -4294967296, i64 1
  br label %look

look:
  %remaining = load atomic i64, ptr %remaining.at monotonic, align 8
  %first = and i64 %remaining, 4294967295
  %last.end = lshr i64 %remaining, 32
  %none = icmp eq i64 %first, %last.end
  br i1 %none, label %end, label %claim

claim:
  %fewer = add i64 %remaining, %step
  %swap = cmpxchg ptr %remaining.at, i64 %remaining, i64 %fewer acquire monotonic
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %run, label %look

run:
  %fn.at = getelementptr %pool, ptr %pool, i64 0, i32 9
  %ctx.at = getelementptr %pool, ptr %pool, i64 0, i32 10
  %n.at = getelementptr %pool, ptr %pool, i64 0, i32 11
  %chunk.at = getelementptr %pool, ptr %pool, i64 0, i32 12
  %done.at = getelementptr %pool, ptr %pool, i64 0, i32 4
  %fn = load ptr, ptr %fn.at
  %ctx = load ptr, ptr %ctx.at
  %n = load i64, ptr %n.at
  %chunk = load i64, ptr %chunk.at
  %last = sub i64 %last.end, 1
  %index = select i1 %backwards, i64 %last, i64 %first
  %lo = mul i64 %index, %chunk
  %left = sub i64 %n, %lo
  %size = call i64 @llvm.smin.i64(i64 %left, i64 %chunk)
  %hi = add i64 %lo, %size
  call void %fn(ptr %ctx, i64 %lo, i64 %hi, i64 %thread.index)
  %before = atomicrmw add ptr %done.at, i64 1 release
  br label %look

end:
  ret void
}

; The function of a worker thread: spin for work, then sleep until woken. It ends with the process.
define internal ptr @worker(ptr %worker) nounwind {
entry:
  %pool.at = getelementptr %worker, ptr %worker, i64 0, i32 0
  %thread.index.at = getelementptr %worker, ptr %worker, i64 0, i32 1
  %pool = load ptr, ptr %pool.at
  %thread.index = load i64, ptr %thread.index.at
  %futex.at = getelementptr %pool, ptr %pool, i64 0, i32 6
  %sleepers.at = getelementptr %pool, ptr %pool, i64 0, i32 7
  %named = call i32 (i32, ...) @prctl(i32 15, ptr @thread_name)              ; PR_SET_NAME
  br label %look

look:
  %spins = phi i64 [ 0, %entry ], [ 0, %work ], [ 0, %awake ], [ %spins.next, %pause ]
  %has = call i1 @has_work(ptr %pool, i64 %thread.index)
  br i1 %has, label %work, label %idle

work:
  call void @drain(ptr %pool, i64 %thread.index)
  br label %look

idle:
  %patient = icmp ult i64 %spins, 2000
  br i1 %patient, label %pause, label %sleep

pause:
  call void @relax()
  %spins.next = add i64 %spins, 1
  br label %look

sleep:
  %wakes = load atomic i32, ptr %futex.at seq_cst, align 4
  %announced = atomicrmw add ptr %sleepers.at, i32 1 seq_cst
  %late = call i1 @has_work(ptr %pool, i64 %thread.index)
  br i1 %late, label %awake, label %wait

wait:                                                                        ; 128: FUTEX_WAIT, private
  %number = call i64 @futex_call()
  %waited = call i64 (i64, ...) @syscall(i64 %number, ptr %futex.at, i64 128, i32 %wakes, ptr null, ptr null, i64 0)
  br label %awake

awake:
  %withdrawn = atomicrmw sub ptr %sleepers.at, i32 1 seq_cst
  br label %look
}

; Whether there is a chunk to claim, and this worker is within the limit.
define internal i1 @has_work(ptr %pool, i64 %thread.index) nounwind alwaysinline {
  %remaining.at = getelementptr %pool, ptr %pool, i64 0, i32 2
  %limit.at = getelementptr %pool, ptr %pool, i64 0, i32 14
  %remaining = load atomic i64, ptr %remaining.at seq_cst, align 8
  %limit = load atomic i64, ptr %limit.at monotonic, align 8
  %first = and i64 %remaining, 4294967295
  %end = lshr i64 %remaining, 32
  %some = icmp ne i64 %first, %end
  %listed = icmp sle i64 %thread.index, %limit
  %has = and i1 %some, %listed
  ret i1 %has
}

; Wake a worker for each chunk but the caller's, and one more for each worker beyond the limit, since the system may
; wake those.
define internal void @wake(ptr %pool, i64 %chunks) nounwind {
  %futex.at = getelementptr %pool, ptr %pool, i64 0, i32 6
  %limit.at = getelementptr %pool, ptr %pool, i64 0, i32 14
  %running.at = getelementptr %pool, ptr %pool, i64 0, i32 15
  %before = atomicrmw add ptr %futex.at, i32 1 seq_cst
  %limit = load atomic i64, ptr %limit.at monotonic, align 8
  %running = load i64, ptr %running.at
  %helpers = sub i64 %chunks, 1
  %idlers = sub i64 %running, %limit
  %extra = call i64 @llvm.smax.i64(i64 %idlers, i64 0)
  %call = add i64 %helpers, %extra
  %count = call i64 @llvm.smin.i64(i64 %call, i64 2147483647)
  %number = call i64 @futex_call()                                           ; 129: FUTEX_WAKE, private
  %woken = call i64 (i64, ...) @syscall(i64 %number, ptr %futex.at, i64 129, i64 %count, ptr null, ptr null, i64 0)
  ret void
}

; Start the missing workers. They are detached, with 8 MiB of stack, and block all signals but those of faults, so that
; Ctrl-C goes to Python's main thread. If a thread can't be started, the limit becomes the number of running workers.
define internal void @start_workers(ptr %pool) nounwind cold {
entry:
  %blocked = alloca [16 x i64], align 16        ; sigset_t and pthread_attr_t are smaller on Linux, in every libc
  %previous = alloca [16 x i64], align 16
  %attributes = alloca [16 x i64], align 16
  %thread = alloca i64, align 8
  %filled = call i32 @sigfillset(ptr %blocked)
  %ill = call i32 @sigdelset(ptr %blocked, i32 4)
  %bus = call i32 @sigdelset(ptr %blocked, i32 7)
  %fpe = call i32 @sigdelset(ptr %blocked, i32 8)
  %segv = call i32 @sigdelset(ptr %blocked, i32 11)
  %masked = call i32 @pthread_sigmask(i32 2, ptr %blocked, ptr %previous)    ; SIG_SETMASK
  %ready = call i32 @pthread_attr_init(ptr %attributes)
  %detached = call i32 @pthread_attr_setdetachstate(ptr %attributes, i32 1)  ; PTHREAD_CREATE_DETACHED
  %sized = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 8388608)
  %limit.at = getelementptr %pool, ptr %pool, i64 0, i32 14
  %running.at = getelementptr %pool, ptr %pool, i64 0, i32 15
  %limit = load atomic i64, ptr %limit.at monotonic, align 8
  br label %next

next:
  %running = load i64, ptr %running.at
  %enough = icmp sge i64 %running, %limit
  br i1 %enough, label %end, label %create

create:
  %thread.index = add i64 %running, 1
  %worker = getelementptr %pool, ptr %pool, i64 0, i32 17, i64 %thread.index
  %thread.index.at = getelementptr %worker, ptr %worker, i64 0, i32 1
  store ptr %pool, ptr %worker
  store i64 %thread.index, ptr %thread.index.at
  %refused = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr @worker, ptr %worker)
  %created = icmp eq i32 %refused, 0
  br i1 %created, label %count, label %settle

count:
  store i64 %thread.index, ptr %running.at
  br label %next

settle:
  store atomic i64 %running, ptr %limit.at monotonic, align 8
  br label %end

end:
  %destroyed = call i32 @pthread_attr_destroy(ptr %attributes)
  %restored = call i32 @pthread_sigmask(i32 2, ptr %previous, ptr null)
  ret void
}
