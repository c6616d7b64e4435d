; The handler of SIGSEGV and SIGBUS in the checked mode (DUALFLOW_CHECK_MEMORY), which describes a memory fault.
;
; It may run in any thread and at any instruction, so it only reads tables that checked_memory.py has written before,
; and calls write and sigaction. It prints the descriptions of the running step and of the address, restores the
; previous handler, and returns: the instruction faults again, and the previous handler, or the system, ends the
; process.

%record = type {
  ptr,                                  ;  0 the running step, which the driver stores
  ptr,                                  ;  1 its parameter table; null while no machine code runs
  ptr, i64,                             ;  2 entries for byte ranges of that table: descriptions of the steps
  ptr, i64,                             ;  4 entries for ranges of addresses: descriptions of buffers
  [19 x i64],                           ;  6 the previous handler of SIGSEGV, a struct sigaction
  [19 x i64]                            ;  7 the previous handler of SIGBUS
}
%entry = type { i64, i64, ptr, i64 }    ; first and last + 1 of a range, text, its bytes

@df_record = external global i8
@head = private constant [47 x i8] c"\0Adualflow: memory fault in machine code, while "
@outside = private constant [44 x i8] c"\0Adualflow: memory fault outside machine code"
@what = private constant [12 x i8] c"\0Aat address "
@digits = private constant [16 x i8] c"0123456789abcdef"

declare i64 @write(i32, ptr, i64)
declare i32 @sigaction(i32, ptr, ptr)

define void @df_on_fault(i32 %signal, ptr %info, ptr %context) nounwind {
entry:
  %address.at = getelementptr i8, ptr %info, i64 16
  %address = load i64, ptr %address.at
  %step = load i64, ptr @df_record
  %table.at = getelementptr %record, ptr @df_record, i64 0, i32 1
  %table = load i64, ptr %table.at
  %idle = icmp eq i64 %table, 0
  br i1 %idle, label %elsewhere, label %inside

elsewhere:
  %w0 = call i64 @write(i32 2, ptr @outside, i64 44)
  br label %where

inside:
  %w1 = call i64 @write(i32 2, ptr @head, i64 47)
  %place = sub i64 %step, %table
  %steps.at = getelementptr %record, ptr @df_record, i64 0, i32 2
  %steps = load ptr, ptr %steps.at
  %count.at = getelementptr %record, ptr @df_record, i64 0, i32 3
  %count = load i64, ptr %count.at
  call void @describe(ptr %steps, i64 %count, i64 %place)
  br label %where

where:
  %w2 = call i64 @write(i32 2, ptr @what, i64 12)
  call void @hexadecimal(i64 %address)
  %regions.at = getelementptr %record, ptr @df_record, i64 0, i32 4
  %regions = load ptr, ptr %regions.at
  %number.at = getelementptr %record, ptr @df_record, i64 0, i32 5
  %number = load i64, ptr %number.at
  call void @describe(ptr %regions, i64 %number, i64 %address)
  %is.bus = icmp eq i32 %signal, 7
  %segv = getelementptr %record, ptr @df_record, i64 0, i32 6
  %bus = getelementptr %record, ptr @df_record, i64 0, i32 7
  %before = select i1 %is.bus, ptr %bus, ptr %segv
  %restored = call i32 @sigaction(i32 %signal, ptr %before, ptr null)
  ret void
}

; Print the text of the first entry whose range holds `value`.
define internal void @describe(ptr %entries, i64 %count, i64 %value) nounwind noinline {
entry:
  br label %next

next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %look ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %end

look:
  %first.at = getelementptr %entry, ptr %entries, i64 %i, i32 0
  %last.at = getelementptr %entry, ptr %entries, i64 %i, i32 1
  %first = load i64, ptr %first.at
  %last = load i64, ptr %last.at
  %begun = icmp uge i64 %value, %first
  %before = icmp ult i64 %value, %last
  %holds = and i1 %begun, %before
  %i.next = add i64 %i, 1
  br i1 %holds, label %print, label %next

print:
  %text.at = getelementptr %entry, ptr %entries, i64 %i, i32 2
  %size.at = getelementptr %entry, ptr %entries, i64 %i, i32 3
  %text = load ptr, ptr %text.at
  %size = load i64, ptr %size.at
  %written = call i64 @write(i32 2, ptr %text, i64 %size)
  ret void

end:
  ret void
}

; Print a number as 0x and 16 digits, then a newline.
define internal void @hexadecimal(i64 %value) nounwind noinline {
entry:
  %text = alloca [19 x i8]
  %x.at = getelementptr i8, ptr %text, i64 1
  %end.at = getelementptr i8, ptr %text, i64 18
  store i8 48, ptr %text
  store i8 120, ptr %x.at
  store i8 10, ptr %end.at
  br label %next

next:
  %i = phi i64 [ 17, %entry ], [ %i.next, %next ]
  %left = phi i64 [ %value, %entry ], [ %shifted, %next ]
  %low = and i64 %left, 15
  %digit.at = getelementptr i8, ptr @digits, i64 %low
  %digit = load i8, ptr %digit.at
  %at = getelementptr i8, ptr %text, i64 %i
  store i8 %digit, ptr %at
  %shifted = lshr i64 %left, 4
  %i.next = sub i64 %i, 1
  %more = icmp uge i64 %i.next, 2
  br i1 %more, label %next, label %done

done:
  %written = call i64 @write(i32 2, ptr %text, i64 19)
  ret void
}
