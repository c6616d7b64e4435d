; A collective between workers: a call of the MPI library in the kernels' calling convention.
;
;   df_collective(context, lo, hi, thread)
;
; The parameters are words of 8 bytes; see collective_calls.py. The words of the progress are those of
; dualflow/distribute/collective_progress.py: this code and Python write them while they hold its mutex, and the
; thread of the monitor reads them at any time. So the words of a ring are stored before the number of collectives that have begun.
;
; If a check of the program has failed before, nothing is exchanged: the call is repeated in Python, up to the error.
; A return code other than 0 is stored in the progress, and the collective remains unfinished.

%call = type {
  i64,                          ;  0 what is exchanged: 0 a sum, 1 a block of a sum, 2 a gather, 3 one of rows, 4 their numbers
  ptr,                          ;  1 int function(const void *in, void *out, int count, datatype, operation, communicator),
                                ;    a gather's (const void *in, int count, datatype, void *out, int, datatype, communicator)
                                ;    and of rows (in, int count, datatype, out, int *counts, int *positions, datatype, communicator)
  i64, i64, i64,                ;  2 datatype, operation, communicator
  ptr, i64,                     ;  5 progress, signature
  i64, i64,                     ;  7 the number of elements of a worker's block, or of the sum, and the bytes of one
  i64,                          ;  9 the bytes of a part of a sum
  i64, i64, i64, i64,           ; 10 input and output, each as a buffer and an offset in elements
  i64, i64,                     ; 14 the number of its check, and of the clock
  i64, i64,                     ; 16 the workers' numbers of rows: a buffer and an offset in elements
  i64, i64, i64,                ; 18 the elements of a row, the number of workers, and the code of more than an int counts
  i64, [0 x i64]                ; 21 the number of dynamic sizes of the input, at most 4, and these
}
%progress = type {
  i64, i64, i64,                ;  0 collectives that have begun, those that have finished, a return code
  [13 x i64],                   ;  3 the mutex
  [16384 x i64],                ;  4 the ring of signatures
  [32768 x i64],                ;  5 the times at which they began and ended
  [65536 x i64]                 ;  6 their dynamic sizes
}

declare i32 @clock_gettime(i32, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)

define void @df_collective(ptr %context, i64 %lo, i64 %hi, i64 %thread) nounwind {
entry:
  %params.at = getelementptr ptr, ptr %context, i64 1
  %status.at = getelementptr ptr, ptr %context, i64 2
  %buffers = load ptr, ptr %context
  %c = load ptr, ptr %params.at
  %status = load ptr, ptr %status.at
  %failed = load i64, ptr %status
  %fine = icmp eq i64 %failed, 0
  br i1 %fine, label %begin, label %end

begin:
  %kind.at = getelementptr %call, ptr %c, i64 0, i32 0
  %kind = load i64, ptr %kind.at
  %is.sum = icmp eq i64 %kind, 0
  %is.rows = icmp eq i64 %kind, 3
  %is.gather = icmp uge i64 %kind, 2
  %function.at = getelementptr %call, ptr %c, i64 0, i32 1
  %datatype.at = getelementptr %call, ptr %c, i64 0, i32 2
  %operation.at = getelementptr %call, ptr %c, i64 0, i32 3
  %communicator.at = getelementptr %call, ptr %c, i64 0, i32 4
  %progress.at = getelementptr %call, ptr %c, i64 0, i32 5
  %signature.at = getelementptr %call, ptr %c, i64 0, i32 6
  %count.at = getelementptr %call, ptr %c, i64 0, i32 7
  %bytes.at = getelementptr %call, ptr %c, i64 0, i32 8
  %part.at = getelementptr %call, ptr %c, i64 0, i32 9
  %check.at = getelementptr %call, ptr %c, i64 0, i32 14
  %function = load ptr, ptr %function.at
  %datatype = load i64, ptr %datatype.at
  %operation = load i64, ptr %operation.at
  %communicator = load i64, ptr %communicator.at
  %p = load ptr, ptr %progress.at
  %signature = load i64, ptr %signature.at
  %count = load i64, ptr %count.at
  %bytes = load i64, ptr %bytes.at
  %part.bytes = load i64, ptr %part.at
  %most.sum = udiv i64 %part.bytes, %bytes
  %most = select i1 %is.sum, i64 %most.sum, i64 2147483647
  %in = call ptr @place(ptr %buffers, ptr %c, i32 10, i64 %bytes)
  %out = call ptr @place(ptr %buffers, ptr %c, i32 12, i64 %bytes)
  %finished.at = getelementptr %progress, ptr %p, i64 0, i32 1
  %code.at = getelementptr %progress, ptr %p, i64 0, i32 2
  %mutex = getelementptr %progress, ptr %p, i64 0, i32 3
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  %number = load i64, ptr %p
  %place = and i64 %number, 16383
  %place.at = getelementptr %progress, ptr %p, i64 0, i32 4, i64 %place
  store i64 %signature, ptr %place.at
  %begin.index = shl i64 %place, 1
  %end.index = or i64 %begin.index, 1
  %begin.at = getelementptr %progress, ptr %p, i64 0, i32 5, i64 %begin.index
  %end.at = getelementptr %progress, ptr %p, i64 0, i32 5, i64 %end.index
  %clock.at = getelementptr %call, ptr %c, i64 0, i32 15
  %clock = load i64, ptr %clock.at
  call void @store_time(i64 %clock, ptr %begin.at)
  %sizes.at = getelementptr %call, ptr %c, i64 0, i32 21
  %sizes = load i64, ptr %sizes.at
  %first.stored = shl i64 %place, 2
  br label %size

size:
  %stored = phi i64 [ 0, %begin ], [ %stored.next, %store.size ]
  %unstored = icmp ult i64 %stored, %sizes
  br i1 %unstored, label %store.size, label %ready

store.size:
  %size.at = getelementptr %call, ptr %c, i64 0, i32 22, i64 %stored
  %dynamic.size = load i64, ptr %size.at
  %stored.index = add i64 %first.stored, %stored
  %stored.at = getelementptr %progress, ptr %p, i64 0, i32 6, i64 %stored.index
  store i64 %dynamic.size, ptr %stored.at
  %stored.next = add i64 %stored, 1
  br label %size

ready:
  %begun = add i64 %number, 1
  store atomic i64 %begun, ptr %p release, align 8
  br i1 %is.rows, label %rows, label %part

rows:
  %rows.code = call i32 @gather_rows(ptr %buffers, ptr %c, ptr %function, ptr %in, ptr %out, i64 %datatype, i64 %communicator)
  %rows.good = icmp eq i32 %rows.code, 0
  br i1 %rows.good, label %finish, label %bad

part:                                   ; of a sum, which stays in caches
  %done = phi i64 [ 0, %ready ], [ %after, %next ]
  %left = sub i64 %count, %done
  %few = icmp slt i64 %left, %most
  %n = select i1 %few, i64 %left, i64 %most
  %n.int = trunc i64 %n to i32
  %skipped = mul i64 %done, %bytes
  %in.part = getelementptr i8, ptr %in, i64 %skipped
  %out.part = getelementptr i8, ptr %out, i64 %skipped
  br i1 %is.gather, label %gather, label %reduce

reduce:
  %reduced = call i32 %function(ptr %in.part, ptr %out.part, i32 %n.int, i64 %datatype, i64 %operation, i64 %communicator)
  br label %called

gather:
  %gathered = call i32 %function(ptr %in.part, i32 %n.int, i64 %datatype, ptr %out.part, i32 %n.int, i64 %datatype, i64 %communicator)
  br label %called

called:
  %code = phi i32 [ %reduced, %reduce ], [ %gathered, %gather ]
  %good = icmp eq i32 %code, 0
  br i1 %good, label %next, label %bad

next:
  %after = add i64 %done, %n
  %more = icmp slt i64 %after, %count
  br i1 %more, label %part, label %finish

finish:
  call void @store_time(i64 %clock, ptr %end.at)
  store atomic i64 %begun, ptr %finished.at release, align 8
  br label %unlock

bad:
  %bad.code = phi i32 [ %rows.code, %rows ], [ %code, %called ]
  %code.long = sext i32 %bad.code to i64
  %check = load i64, ptr %check.at
  store i64 %code.long, ptr %code.at
  store i64 %check, ptr %status
  br label %unlock

unlock:
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %end

end:
  ret void
}

; Gathers rows: the counts and positions of all workers in elements, from their numbers of rows, and the call.
define internal i32 @gather_rows(ptr %buffers, ptr %c, ptr %function, ptr %in, ptr %out, i64 %datatype, i64 %communicator) nounwind noinline {
entry:
  %own.at = getelementptr %call, ptr %c, i64 0, i32 7
  %row.at = getelementptr %call, ptr %c, i64 0, i32 18
  %workers.at = getelementptr %call, ptr %c, i64 0, i32 19
  %too.many.at = getelementptr %call, ptr %c, i64 0, i32 20
  %own = load i64, ptr %own.at
  %row = load i64, ptr %row.at
  %workers = load i64, ptr %workers.at
  %rows = call ptr @place(ptr %buffers, ptr %c, i32 16, i64 8)
  %counts = alloca i32, i64 %workers
  %positions = alloca i32, i64 %workers
  br label %worker

worker:
  %i = phi i64 [ 0, %entry ], [ %i.next, %store ]
  %position = phi i64 [ 0, %entry ], [ %end, %store ]
  %rows.at = getelementptr i64, ptr %rows, i64 %i
  %number = load i64, ptr %rows.at
  %count = mul i64 %number, %row
  %end = add i64 %position, %count
  %fits = icmp sle i64 %end, 2147483647
  br i1 %fits, label %store, label %too.many

store:
  %count.at = getelementptr i32, ptr %counts, i64 %i
  %position.at = getelementptr i32, ptr %positions, i64 %i
  %count.int = trunc i64 %count to i32
  %position.int = trunc i64 %position to i32
  store i32 %count.int, ptr %count.at
  store i32 %position.int, ptr %position.at
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %workers
  br i1 %more, label %worker, label %exchange

exchange:
  %own.int = trunc i64 %own to i32
  %code = call i32 %function(ptr %in, i32 %own.int, i64 %datatype, ptr %out, ptr %counts, ptr %positions, i64 %datatype, i64 %communicator)
  ret i32 %code

too.many:
  %error = load i64, ptr %too.many.at
  %error.int = trunc i64 %error to i32
  ret i32 %error.int
}

; The address of an operand: the words of its buffer and of its offset in elements.
define internal ptr @place(ptr %buffers, ptr %c, i32 %word, i64 %bytes) nounwind alwaysinline {
  %buffer.at = getelementptr i64, ptr %c, i32 %word
  %offset.at = getelementptr i64, ptr %buffer.at, i64 1
  %buffer = load i64, ptr %buffer.at
  %offset = load i64, ptr %offset.at
  %start.at = getelementptr ptr, ptr %buffers, i64 %buffer
  %start = load ptr, ptr %start.at
  %skipped = mul i64 %offset, %bytes
  %address = getelementptr i8, ptr %start, i64 %skipped
  ret ptr %address
}

; Stores the nanoseconds of a clock.
define internal void @store_time(i64 %clock, ptr %target) nounwind {
  %time = alloca { i64, i64 }
  %id = trunc i64 %clock to i32
  %failed = call i32 @clock_gettime(i32 %id, ptr %time)
  %rest.at = getelementptr { i64, i64 }, ptr %time, i64 0, i32 1
  %seconds = load i64, ptr %time
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  store i64 %now, ptr %target
  ret void
}
