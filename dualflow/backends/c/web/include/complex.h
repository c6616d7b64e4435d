/* The functions of complex.h that exported programs call. */
#ifndef DF_COMPLEX_H
#define DF_COMPLEX_H

#define crealf __builtin_crealf
#define creal __builtin_creal
#define cimagf __builtin_cimagf
#define cimag __builtin_cimag

#endif
