; The clock of timed calls: a kernel, which starts or stops the time of an interval.
;
;   df_clock(context, lo, hi, thread)
;
; Its parameters are the distance in words from the first of them to the interval's words, 0 to start and 1 to
; stop, and the number of the operating system's clock. The words of an interval, in the same table:
;
;   begin, total, runs, slowest         in nanoseconds: of the run that goes on; the sum of all runs; their number;
;                                       the longest one

%context = type { ptr, ptr, ptr }

declare i32 @clock_gettime(i32, ptr)

define void @df_clock(ptr %context, i64 %lo, i64 %hi, i64 %thread) nounwind {
entry:
  %time = alloca { i64, i64 }
  %params.at = getelementptr %context, ptr %context, i64 0, i32 1
  %params = load ptr, ptr %params.at
  %stops.at = getelementptr i64, ptr %params, i64 1
  %clock.at = getelementptr i64, ptr %params, i64 2
  %distance = load i64, ptr %params
  %stops = load i64, ptr %stops.at
  %clock = load i64, ptr %clock.at
  %interval = getelementptr i64, ptr %params, i64 %distance
  %number = trunc i64 %clock to i32
  %failed = call i32 @clock_gettime(i32 %number, ptr %time)
  %nanoseconds.at = getelementptr { i64, i64 }, ptr %time, i64 0, i32 1
  %seconds = load i64, ptr %time
  %nanoseconds = load i64, ptr %nanoseconds.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %nanoseconds
  %starts = icmp eq i64 %stops, 0
  br i1 %starts, label %start, label %stop

start:
  store i64 %now, ptr %interval
  ret void

stop:
  %total.at = getelementptr i64, ptr %interval, i64 1
  %runs.at = getelementptr i64, ptr %interval, i64 2
  %slowest.at = getelementptr i64, ptr %interval, i64 3
  %begin = load i64, ptr %interval
  %total = load i64, ptr %total.at
  %runs = load i64, ptr %runs.at
  %slowest = load i64, ptr %slowest.at
  %run = sub i64 %now, %begin
  %total.new = add i64 %total, %run
  %runs.new = add i64 %runs, 1
  %slower = icmp sgt i64 %run, %slowest
  %slowest.new = select i1 %slower, i64 %run, i64 %slowest
  store i64 %total.new, ptr %total.at
  store i64 %runs.new, ptr %runs.at
  store i64 %slowest.new, ptr %slowest.at
  ret void
}
