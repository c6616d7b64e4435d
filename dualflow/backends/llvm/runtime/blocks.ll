; An allocator that caches large freed blocks: a memory handler of NumPy (NEP 49) for the outputs of compiled graphs.
;
; The system zeroes each page of new memory, which takes longer than most kernels take to fill it. So freed blocks are
; cached, up to a limit, and reused for arrays of the same size class. There are four classes from a power of two to the
; next, so that arrays of similar sizes, as in calls with new sizes, share blocks; pages that nothing writes to take no
; memory. Blocks that C would unmap at once (32 MiB and more) are marked as free (MADV_FREE): the system reclaims their
; pages when it is short of memory. For smaller ones the call would take as long as filling them.
;
; NumPy may call from any thread. A call that can't take the lock allocates and frees without the cache, so no thread
; waits, and a child that was forked while the lock was taken continues.
;
; A call is much shorter than filling the block, so its code is not optimised (QUICKLY_COMPILED).

%block = type { ptr, i64 }                        ; a cached block and its bytes; null for none
%blocks = type {
  i32, i32,                                       ;  0 lock, 1 the entry that is replaced next
  i64,                                            ;  2 cached bytes
  i64,                                            ;  3 the maximum of cached bytes
  [32 x %block],                                  ;  4
  ptr, ptr                                        ;  5 this handler and NumPy's default, as Python objects
}

@df_blocks = external global %blocks
declare ptr @PyArray_Empty(i32, ptr, ptr, i32)
declare ptr @PyDataMem_GetHandler()
declare ptr @PyDataMem_SetHandler(ptr)
declare void @Py_DecRef(ptr)

declare i64 @llvm.ctlz.i64(i64, i1)
declare i32 @posix_memalign(ptr, i64, i64)
declare i32 @madvise(ptr, i64, i32)
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare void @free(ptr)

; The alignment of a block and of its size: huge pages of 2 MiB for huge blocks, cache lines for others.
define internal i64 @unit(i64 %whole) alwaysinline {
  %huge = call i1 @is_huge(i64 %whole)
  %unit = select i1 %huge, i64 2097152, i64 64
  ret i64 %unit
}

; The size of the class of a block: a multiple of a quarter of the largest power of two in its bytes, and of the unit.
define internal i64 @whole(i64 %bytes) alwaysinline {
  %zeros = call i64 @llvm.ctlz.i64(i64 %bytes, i1 false)
  %place = sub i64 61, %zeros
  %quarter = shl i64 1, %place
  %class = call i64 @rounded(i64 %bytes, i64 %quarter)
  %unit = call i64 @unit(i64 %class)
  %whole = call i64 @rounded(i64 %class, i64 %unit)
  ret i64 %whole
}

define internal i64 @rounded(i64 %bytes, i64 %step) alwaysinline {
  %last = sub i64 %step, 1
  %more = add i64 %bytes, %last
  %mask = sub i64 0, %step
  %rounded = and i64 %more, %mask
  ret i64 %rounded
}

; From 4 MiB on NumPy asks for huge pages, too.
define internal i1 @is_huge(i64 %whole) alwaysinline {
  %huge = icmp uge i64 %whole, 4194304
  ret i1 %huge
}

; Below 64 KiB page faults are few.
define internal i1 @is_large(i64 %bytes) alwaysinline {
  %large = icmp uge i64 %bytes, 65536
  %possible = icmp ult i64 %bytes, 1152921504606846976
  %both = and i1 %large, %possible
  ret i1 %both
}

define internal i1 @lock(ptr %blocks) alwaysinline {
  %pair = cmpxchg ptr %blocks, i32 0, i32 1 acquire monotonic
  %taken = extractvalue { i32, i1 } %pair, 1
  ret i1 %taken
}

define internal void @unlock(ptr %blocks) alwaysinline {
  store atomic i32 0, ptr %blocks release, align 4
  ret void
}

; Remove the block of an entry from the cache; returns its address, or null.
define internal ptr @take_out(ptr %blocks, ptr %place) alwaysinline {
  %memory = load ptr, ptr %place
  %bytes.at = getelementptr %block, ptr %place, i64 0, i32 1
  %bytes = load i64, ptr %bytes.at
  %kept.at = getelementptr %blocks, ptr %blocks, i64 0, i32 2
  %kept = load i64, ptr %kept.at
  %left = sub i64 %kept, %bytes
  store i64 %left, ptr %kept.at
  store ptr null, ptr %place
  store i64 0, ptr %bytes.at
  ret ptr %memory
}

; PyArray_Empty with this handler; with the user's handler if one is set.
define ptr @df_block_empty(i32 %ndim, ptr %dims, ptr %dtype, i32 %order) nounwind {
entry:
  %own.at = getelementptr %blocks, ptr @df_blocks, i64 0, i32 6
  %own = load ptr, ptr %own.at
  %current = call ptr @PyDataMem_GetHandler()
  %usual = icmp eq ptr %current, %own
  br i1 %usual, label %change, label %as.set

as.set:
  %other = call ptr @PyArray_Empty(i32 %ndim, ptr %dims, ptr %dtype, i32 %order)
  br label %end

change:
  %policy.at = getelementptr %blocks, ptr @df_blocks, i64 0, i32 5
  %policy = load ptr, ptr %policy.at
  %before = call ptr @PyDataMem_SetHandler(ptr %policy)
  %array = call ptr @PyArray_Empty(i32 %ndim, ptr %dims, ptr %dtype, i32 %order)
  %set = call ptr @PyDataMem_SetHandler(ptr %current)
  call void @drop.reference(ptr %before)
  call void @drop.reference(ptr %set)
  br label %end

end:
  %result = phi ptr [ %other, %as.set ], [ %array, %change ]
  call void @drop.reference(ptr %current)
  ret ptr %result
}

define internal void @drop.reference(ptr %object) alwaysinline {
  %nothing = icmp eq ptr %object, null
  br i1 %nothing, label %end, label %drop

drop:
  call void @Py_DecRef(ptr %object)
  br label %end

end:
  ret void
}

define ptr @df_block_malloc(ptr %blocks, i64 %bytes) nounwind {
entry:
  %large = call i1 @is_large(i64 %bytes)
  br i1 %large, label %try, label %small

small:
  %plain = call ptr @malloc(i64 %bytes)
  ret ptr %plain

try:
  %whole = call i64 @whole(i64 %bytes)
  %locked = call i1 @lock(ptr %blocks)
  br i1 %locked, label %next, label %new

next:
  %i = phi i64 [ 0, %try ], [ %i.next, %differs ]
  %place = getelementptr %blocks, ptr %blocks, i64 0, i32 4, i64 %i
  %has.at = getelementptr %block, ptr %place, i64 0, i32 1
  %has = load i64, ptr %has.at
  %fits = icmp eq i64 %has, %whole
  br i1 %fits, label %found, label %differs

differs:
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, 32
  br i1 %more, label %next, label %none

found:
  %kept = call ptr @take_out(ptr %blocks, ptr %place)
  call void @unlock(ptr %blocks)
  ret ptr %kept

none:
  call void @unlock(ptr %blocks)
  br label %new

new:
  %at = alloca ptr
  %unit = call i64 @unit(i64 %whole)
  %failed = call i32 @posix_memalign(ptr %at, i64 %unit, i64 %whole)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %aligned, label %short

short:
  ret ptr null

aligned:
  %aligned.block = load ptr, ptr %at
  %huge = call i1 @is_huge(i64 %whole)
  br i1 %huge, label %advise, label %give

advise:
  call i32 @madvise(ptr %aligned.block, i64 %whole, i32 14)       ; MADV_HUGEPAGE
  br label %give

give:
  ret ptr %aligned.block
}

; NumPy has checked that the product does not overflow.
define ptr @df_block_calloc(ptr %blocks, i64 %count, i64 %bytes) nounwind {
  %product = mul i64 %count, %bytes
  %large = call i1 @is_large(i64 %product)
  %whole = call i64 @whole(i64 %product)
  %all = select i1 %large, i64 %whole, i64 %product
  %memory = call ptr @calloc(i64 1, i64 %all)
  ret ptr %memory
}

; The rounded size of a block, which `free` computes in the same way.
define ptr @df_block_realloc(ptr %blocks, ptr %memory, i64 %bytes) nounwind {
  %large = call i1 @is_large(i64 %bytes)
  %whole = call i64 @whole(i64 %bytes)
  %all = select i1 %large, i64 %whole, i64 %bytes
  %moved = call ptr @realloc(ptr %memory, i64 %all)
  ret ptr %moved
}

; NumPy's sorts free null with the size of a buffer that they did not need.
define void @df_block_free(ptr %blocks, ptr %memory, i64 %bytes) nounwind {
entry:
  %large = call i1 @is_large(i64 %bytes)
  %allocated = icmp ne ptr %memory, null
  %reusable = and i1 %large, %allocated
  br i1 %reusable, label %try, label %plain

plain:
  call void @free(ptr %memory)
  ret void

try:
  %whole = call i64 @whole(i64 %bytes)
  %limit.at = getelementptr %blocks, ptr %blocks, i64 0, i32 3
  %limit = load i64, ptr %limit.at
  %keeps = icmp ule i64 %whole, %limit
  br i1 %keeps, label %try.lock, label %plain

try.lock:
  %locked = call i1 @lock(ptr %blocks)
  br i1 %locked, label %keep, label %plain

keep:
  %next.at = getelementptr %blocks, ptr %blocks, i64 0, i32 1
  %first = load i32, ptr %next.at
  %kept.at = getelementptr %blocks, ptr %blocks, i64 0, i32 2
  br label %evict

evict:                                        ; evict blocks from the oldest on, that of the replaced entry too
  %n = phi i32 [ 0, %keep ], [ %n.next, %drop ]
  %sum = add i32 %first, %n
  %oldest = and i32 %sum, 31
  %old = getelementptr %blocks, ptr %blocks, i64 0, i32 4, i32 %oldest
  %kept = load i64, ptr %kept.at
  %then = add i64 %kept, %whole
  %over = icmp ugt i64 %then, %limit
  %is.first = icmp eq i32 %n, 0
  %must = or i1 %over, %is.first
  br i1 %must, label %drop, label %put

drop:
  %dropped = call ptr @take_out(ptr %blocks, ptr %old)
  call void @free(ptr %dropped)
  %n.next = add i32 %n, 1
  br label %evict

put:
  %place = getelementptr %blocks, ptr %blocks, i64 0, i32 4, i32 %first
  store ptr %memory, ptr %place
  %bytes.at = getelementptr %block, ptr %place, i64 0, i32 1
  store i64 %whole, ptr %bytes.at
  store i64 %then, ptr %kept.at
  %second = add i32 %first, 1
  %following = and i32 %second, 31
  store i32 %following, ptr %next.at
  %marked = icmp uge i64 %bytes, 33554432        ; 32 MiB, where C's own limit ends
  br i1 %marked, label %mark, label %done

mark:
  ; Only its whole pages: a resized block may begin at any address.
  %address = ptrtoint ptr %memory to i64
  %begin.up = add i64 %address, 4095
  %begin = and i64 %begin.up, -4096
  %end.any = add i64 %address, %whole
  %end = and i64 %end.any, -4096
  %length = sub i64 %end, %begin
  %pages = inttoptr i64 %begin to ptr
  call i32 @madvise(ptr %pages, i64 %length, i32 8)            ; MADV_FREE
  br label %done

done:
  call void @unlock(ptr %blocks)
  ret void
}
