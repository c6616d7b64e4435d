; A parallel for: the caller and some worker threads share out the chunks of one loop.
;
;   df_pfor(pool, fn, ctx, n, chunk)   calls   fn(ctx, lo, hi, slot)   for lo = 0, chunk, 2 chunk, ... below n,
;
; with hi = min(lo + chunk, n), each range once, in any order, on any thread. The ranges are the same however many
; threads there are, so a kernel that keeps one partial sum per chunk gives the same bits on every machine size.
; slot is 0 on the caller and 1, 2, ... on the workers: two chunks that run at the same moment never share a slot.
;
; Nobody is assigned a share. Whoever is awake claims the next chunk, the caller too, so a worker that the system
; has put aside costs nothing unless it was stopped inside a chunk, and a pool whose workers are all gone (in a
; forked child) still finishes every loop. A pool that is busy, because another user thread is inside or because a
; kernel opened a loop within a loop, is not waited for: the second caller runs its own chunks alone.
;
; Why it is right. `remaining` counts the chunks not yet claimed, and a claim is a compare-and-swap that takes it
; from r > 0 to r - 1. Let a job last from the owner's store of `remaining` to the moment the owner has seen `done`
; reach the number of chunks.
;   1. Only the holder of `lock` writes the job's fields and raises `remaining`, and it does so between jobs.
;   2. A claim succeeds only while remaining > 0, hence during a job. It belongs to the job that is current at that
;      moment, even when the claimer read the expected r long ago, during an older job: the number is all that a
;      claim needs, and equal numbers are equal. (There is no ABA to fear, for nothing else was read before.)
;   3. The claimer reads the fields after its claim. They can't change under it: the job can't end before the
;      claimer has added its own 1 to `done`. It sees them complete: the owner's store of `remaining` is a release,
;      the swaps after it continue that release sequence, and a claim is an acquire.
;   4. The owner's acquire of `done` = chunks comes after every claimer's release, so the kernel's writes are visible
;      to the caller, and nobody who could touch the job is left when the lock is released.
; Going to sleep: a worker first announces itself in `sleepers`, then looks at `remaining` once more; an owner first
; stores `remaining`, then looks at `sleepers`. All four are sequentially consistent, so one of them sees the other.
; The futex word read before the announcement makes a wake that comes before the wait end the wait at once.

; Groups of fields that different threads write are 128 bytes apart, for processors that fetch lines in pairs.
%pool = type {
  i32, [124 x i8],                              ;  0     lock: 1 while a caller owns the pool
  i64, [120 x i8],                              ;  2     remaining: chunks not claimed yet
  i64, [120 x i8],                              ;  4     done: chunks finished
  i32, i32, [120 x i8],                         ;  6, 7  futex word: number of wakes; sleepers: workers about to wait
  ptr, ptr, i64, i64, i64, [88 x i8],           ;  9-13  the job: fn, ctx, n, chunk, chunks
  i64, i64, [112 x i8],                         ; 15, 16 wanted: workers to use; running: workers started
  [64 x %seat]                                  ; 18     what each worker is given at its start
}
%seat = type { ptr, i64 }                       ; pool, slot

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
;   define internal void @relax()           tell the core that this is a spin loop
;   define internal i64 @futex_call()       the number of Linux's futex system call

@thread_name = private constant [9 x i8] c"dualflow\00"

define void @df_pfor(ptr %pool, ptr %fn, ptr %ctx, i64 %n, i64 %asked) nounwind {
entry:
  %chunk = call i64 @llvm.smax.i64(i64 %asked, i64 1)
  %most = add i64 %n, %chunk
  %last = sub i64 %most, 1
  %chunks = sdiv i64 %last, %chunk
  %wanted.at = getelementptr %pool, ptr %pool, i64 0, i32 15
  %wanted = load atomic i64, ptr %wanted.at monotonic, align 8
  %several = icmp sgt i64 %chunks, 1
  %helped = icmp sgt i64 %wanted, 0
  %worth = and i1 %several, %helped
  br i1 %worth, label %enter, label %alone

enter:
  %lock.at = getelementptr %pool, ptr %pool, i64 0, i32 0
  %seen = cmpxchg ptr %lock.at, i32 0, i32 1 acquire monotonic
  %owner = extractvalue { i32, i1 } %seen, 1
  br i1 %owner, label %staff, label %alone

alone:
  call void @run_alone(ptr %fn, ptr %ctx, i64 %n, i64 %chunk)
  ret void

staff:
  %running.at = getelementptr %pool, ptr %pool, i64 0, i32 16
  %running = load i64, ptr %running.at
  %short = icmp slt i64 %running, %wanted
  br i1 %short, label %start, label %publish

start:
  call void @hire(ptr %pool)
  br label %publish

publish:
  %fn.at = getelementptr %pool, ptr %pool, i64 0, i32 9
  %ctx.at = getelementptr %pool, ptr %pool, i64 0, i32 10
  %n.at = getelementptr %pool, ptr %pool, i64 0, i32 11
  %chunk.at = getelementptr %pool, ptr %pool, i64 0, i32 12
  %chunks.at = getelementptr %pool, ptr %pool, i64 0, i32 13
  store ptr %fn, ptr %fn.at
  store ptr %ctx, ptr %ctx.at
  store i64 %n, ptr %n.at
  store i64 %chunk, ptr %chunk.at
  store i64 %chunks, ptr %chunks.at
  %done.at = getelementptr %pool, ptr %pool, i64 0, i32 4
  store atomic i64 0, ptr %done.at monotonic, align 8
  %remaining.at = getelementptr %pool, ptr %pool, i64 0, i32 2
  store atomic i64 %chunks, ptr %remaining.at seq_cst, align 8
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
  %turns = phi i64 [ 0, %work ], [ %turns.next, %pause ], [ %turns, %yield ]
  %done = load atomic i64, ptr %done.at acquire, align 8
  %all = icmp eq i64 %done, %chunks
  br i1 %all, label %leave, label %patience

patience:
  %patient = icmp ult i64 %turns, 1000
  br i1 %patient, label %pause, label %yield

pause:
  call void @relax()
  %turns.next = add i64 %turns, 1
  br label %wait

yield:                                          ; the worker may be waiting for this very core
  %yielded = call i32 @sched_yield()
  br label %wait

leave:
  store atomic i32 0, ptr %lock.at release, align 4
  ret void
}

; The same chunks, one after another, on the calling thread.
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

; Claim and run chunks of the current job until none is left to claim.
define internal void @drain(ptr %pool, i64 %slot) nounwind {
entry:
  %remaining.at = getelementptr %pool, ptr %pool, i64 0, i32 2
  br label %look

look:
  %remaining = load atomic i64, ptr %remaining.at monotonic, align 8
  %none = icmp eq i64 %remaining, 0
  br i1 %none, label %end, label %claim

claim:
  %fewer = sub i64 %remaining, 1
  %swap = cmpxchg ptr %remaining.at, i64 %remaining, i64 %fewer acquire monotonic
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %run, label %look

run:
  %fn.at = getelementptr %pool, ptr %pool, i64 0, i32 9
  %ctx.at = getelementptr %pool, ptr %pool, i64 0, i32 10
  %n.at = getelementptr %pool, ptr %pool, i64 0, i32 11
  %chunk.at = getelementptr %pool, ptr %pool, i64 0, i32 12
  %chunks.at = getelementptr %pool, ptr %pool, i64 0, i32 13
  %done.at = getelementptr %pool, ptr %pool, i64 0, i32 4
  %fn = load ptr, ptr %fn.at
  %ctx = load ptr, ptr %ctx.at
  %n = load i64, ptr %n.at
  %chunk = load i64, ptr %chunk.at
  %chunks = load i64, ptr %chunks.at
  %index = sub i64 %chunks, %remaining
  %lo = mul i64 %index, %chunk
  %left = sub i64 %n, %lo
  %size = call i64 @llvm.smin.i64(i64 %left, i64 %chunk)
  %hi = add i64 %lo, %size
  call void %fn(ptr %ctx, i64 %lo, i64 %hi, i64 %slot)
  %before = atomicrmw add ptr %done.at, i64 1 release
  br label %look

end:
  ret void
}

; A worker's life: look for work for a while, then sleep until called. It ends with the process.
define internal ptr @worker(ptr %seat) nounwind {
entry:
  %pool.at = getelementptr %seat, ptr %seat, i64 0, i32 0
  %slot.at = getelementptr %seat, ptr %seat, i64 0, i32 1
  %pool = load ptr, ptr %pool.at
  %slot = load i64, ptr %slot.at
  %futex.at = getelementptr %pool, ptr %pool, i64 0, i32 6
  %sleepers.at = getelementptr %pool, ptr %pool, i64 0, i32 7
  %named = call i32 (i32, ...) @prctl(i32 15, ptr @thread_name)              ; PR_SET_NAME
  br label %look

look:
  %turns = phi i64 [ 0, %entry ], [ 0, %work ], [ 0, %awake ], [ %turns.next, %pause ]
  %has = call i1 @has_work(ptr %pool, i64 %slot)
  br i1 %has, label %work, label %idle

work:
  call void @drain(ptr %pool, i64 %slot)
  br label %look

idle:
  %patient = icmp ult i64 %turns, 2000
  br i1 %patient, label %pause, label %sleep

pause:
  call void @relax()
  %turns.next = add i64 %turns, 1
  br label %look

sleep:
  %wakes = load atomic i32, ptr %futex.at seq_cst, align 4
  %announced = atomicrmw add ptr %sleepers.at, i32 1 seq_cst
  %late = call i1 @has_work(ptr %pool, i64 %slot)
  br i1 %late, label %awake, label %wait

wait:                                                                        ; 128: FUTEX_WAIT, private
  %number = call i64 @futex_call()
  %waited = call i64 (i64, ...) @syscall(i64 %number, ptr %futex.at, i64 128, i32 %wakes, ptr null, ptr null, i64 0)
  br label %awake

awake:
  %withdrawn = atomicrmw sub ptr %sleepers.at, i32 1 seq_cst
  br label %look
}

; Whether there is a chunk to claim, and this worker is one of those wanted now.
define internal i1 @has_work(ptr %pool, i64 %slot) nounwind alwaysinline {
  %remaining.at = getelementptr %pool, ptr %pool, i64 0, i32 2
  %wanted.at = getelementptr %pool, ptr %pool, i64 0, i32 15
  %remaining = load atomic i64, ptr %remaining.at seq_cst, align 8
  %wanted = load atomic i64, ptr %wanted.at monotonic, align 8
  %some = icmp ne i64 %remaining, 0
  %listed = icmp sle i64 %slot, %wanted
  %has = and i1 %some, %listed
  ret i1 %has
}

; Wake as many workers as there are chunks for (the caller takes one), and as many more as are not wanted now, for
; the system does not ask us whom it wakes.
define internal void @wake(ptr %pool, i64 %chunks) nounwind noinline {
  %futex.at = getelementptr %pool, ptr %pool, i64 0, i32 6
  %wanted.at = getelementptr %pool, ptr %pool, i64 0, i32 15
  %running.at = getelementptr %pool, ptr %pool, i64 0, i32 16
  %before = atomicrmw add ptr %futex.at, i32 1 seq_cst
  %wanted = load atomic i64, ptr %wanted.at monotonic, align 8
  %running = load i64, ptr %running.at
  %helpers = sub i64 %chunks, 1
  %idlers = sub i64 %running, %wanted
  %extra = call i64 @llvm.smax.i64(i64 %idlers, i64 0)
  %call = add i64 %helpers, %extra
  %count = call i64 @llvm.smin.i64(i64 %call, i64 2147483647)
  %number = call i64 @futex_call()                                           ; 129: FUTEX_WAKE, private
  %woken = call i64 (i64, ...) @syscall(i64 %number, ptr %futex.at, i64 129, i64 %count, ptr null, ptr null, i64 0)
  ret void
}

; Start the workers that are wanted and not running. They are detached, with 8 MiB of stack, and take no signals
; but those of their own faults, so that Ctrl-C goes to Python's main thread. A system that refuses another
; thread is not asked again: the pool makes do with what it has.
define internal void @hire(ptr %pool) nounwind noinline cold {
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
  %wanted.at = getelementptr %pool, ptr %pool, i64 0, i32 15
  %running.at = getelementptr %pool, ptr %pool, i64 0, i32 16
  %wanted = load atomic i64, ptr %wanted.at monotonic, align 8
  br label %next

next:
  %running = load i64, ptr %running.at
  %enough = icmp sge i64 %running, %wanted
  br i1 %enough, label %end, label %create

create:
  %slot = add i64 %running, 1
  %seat = getelementptr %pool, ptr %pool, i64 0, i32 18, i64 %slot
  %slot.at = getelementptr %seat, ptr %seat, i64 0, i32 1
  store ptr %pool, ptr %seat
  store i64 %slot, ptr %slot.at
  %refused = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr @worker, ptr %seat)
  %created = icmp eq i32 %refused, 0
  br i1 %created, label %count, label %settle

count:
  store i64 %slot, ptr %running.at
  br label %next

settle:
  store atomic i64 %running, ptr %wanted.at monotonic, align 8
  br label %end

end:
  %destroyed = call i32 @pthread_attr_destroy(ptr %attributes)
  %restored = call i32 @pthread_sigmask(i32 2, ptr %previous, ptr null)
  ret void
}
