; An exchange between workers: a call of the MPI library in the kernels' calling convention.
;
;   df_exchange(context, lo, hi, thread)
;
; The parameters are words of 8 bytes; see exchange_calls.py. The words of the progress are those of
; dualflow/distribute/progress.py: this code and Python write them while they hold its mutex, and the thread of the
; monitor reads them at any time. So a word of the ring is stored before the number of exchanges that have begun.
;
; If a check of the program has failed before, nothing is exchanged: the call is repeated in Python, up to the error.
; A return code other than 0 is stored in the progress, and the exchange remains unfinished.

%call = type {
  ptr,                          ;  0 int function(const void *in, void *out, int count, datatype, operation, communicator)
  i64, i64, i64,                ;  1 datatype, operation, communicator
  ptr, i64,                     ;  4 progress, signature
  i64, i64,                     ;  6 the number of elements, and the bytes of one
  i64, i64, i64, i64,           ;  8 input and output, each as a buffer and an offset in elements
  i64                           ; 12 the number of its check
}
%progress = type {
  i64, i64, i64,                ;  0 exchanges that have begun, those that have finished, a return code
  [13 x i64],                   ;  3 the mutex
  [16384 x i64]                 ;  4 the ring of signatures
}

declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)

define void @df_exchange(ptr %context, i64 %lo, i64 %hi, i64 %thread) nounwind {
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
  %function.at = getelementptr %call, ptr %c, i64 0, i32 0
  %datatype.at = getelementptr %call, ptr %c, i64 0, i32 1
  %operation.at = getelementptr %call, ptr %c, i64 0, i32 2
  %communicator.at = getelementptr %call, ptr %c, i64 0, i32 3
  %progress.at = getelementptr %call, ptr %c, i64 0, i32 4
  %signature.at = getelementptr %call, ptr %c, i64 0, i32 5
  %count.at = getelementptr %call, ptr %c, i64 0, i32 6
  %bytes.at = getelementptr %call, ptr %c, i64 0, i32 7
  %check.at = getelementptr %call, ptr %c, i64 0, i32 12
  %function = load ptr, ptr %function.at
  %datatype = load i64, ptr %datatype.at
  %operation = load i64, ptr %operation.at
  %communicator = load i64, ptr %communicator.at
  %p = load ptr, ptr %progress.at
  %signature = load i64, ptr %signature.at
  %count = load i64, ptr %count.at
  %bytes = load i64, ptr %bytes.at
  %in = call ptr @place(ptr %buffers, ptr %c, i32 8, i64 %bytes)
  %out = call ptr @place(ptr %buffers, ptr %c, i32 10, i64 %bytes)
  %finished.at = getelementptr %progress, ptr %p, i64 0, i32 1
  %code.at = getelementptr %progress, ptr %p, i64 0, i32 2
  %mutex = getelementptr %progress, ptr %p, i64 0, i32 3
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  %number = load i64, ptr %p
  %place = and i64 %number, 16383
  %place.at = getelementptr %progress, ptr %p, i64 0, i32 4, i64 %place
  store i64 %signature, ptr %place.at
  %begun = add i64 %number, 1
  store atomic i64 %begun, ptr %p release, align 8
  br label %part

part:                                   ; of at most 2^28 elements, as MPI counts with 31 bits
  %done = phi i64 [ 0, %begin ], [ %after, %next ]
  %left = sub i64 %count, %done
  %few = icmp slt i64 %left, 268435456
  %n = select i1 %few, i64 %left, i64 268435456
  %n.int = trunc i64 %n to i32
  %skipped = mul i64 %done, %bytes
  %in.part = getelementptr i8, ptr %in, i64 %skipped
  %out.part = getelementptr i8, ptr %out, i64 %skipped
  %code = call i32 %function(ptr %in.part, ptr %out.part, i32 %n.int, i64 %datatype, i64 %operation, i64 %communicator)
  %good = icmp eq i32 %code, 0
  br i1 %good, label %next, label %bad

next:
  %after = add i64 %done, %n
  %more = icmp slt i64 %after, %count
  br i1 %more, label %part, label %finish

finish:
  store atomic i64 %begun, ptr %finished.at release, align 8
  br label %unlock

bad:
  %code.long = sext i32 %code to i64
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
