/* The functions of string.h that exported programs call, which are instructions of WebAssembly. */
#ifndef DF_STRING_H
#define DF_STRING_H

#define memcpy __builtin_memcpy
#define memmove __builtin_memmove
#define memset __builtin_memset

#endif
