/* The functions of math.h that exported programs call, for WebAssembly without a C library. */
#ifndef DF_MATH_H
#define DF_MATH_H

#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()

#define fabsf __builtin_fabsf
#define fabs __builtin_fabs
#define floorf __builtin_floorf
#define floor __builtin_floor
#define ceilf __builtin_ceilf
#define ceil __builtin_ceil
#define truncf __builtin_truncf
#define trunc __builtin_trunc
#define rintf __builtin_rintf
#define rint __builtin_rint
#define sqrtf __builtin_sqrtf
#define sqrt __builtin_sqrt
#define copysignf __builtin_copysignf
#define copysign __builtin_copysign

/* Imports from JavaScript, for arguments that are rare. */
#define DF_IMPORT(name) __attribute__((import_module("env"), import_name(#name))) extern

DF_IMPORT(sinf) float sinf(float x);
DF_IMPORT(sin) double sin(double x);
DF_IMPORT(cosf) float cosf(float x);
DF_IMPORT(cos) double cos(double x);
DF_IMPORT(tanf) float tanf(float x);
DF_IMPORT(tan) double tan(double x);
DF_IMPORT(fmodf) float fmodf(float x, float y);
DF_IMPORT(fmod) double fmod(double x, double y);

/* x * y + z. The product is exact; the sum is rounded twice, which differs from fmaf in one case of 2**29. */
static inline float df_fmaf(float x, float y, float z)
{
    return (float)((double)x * (double)y + (double)z);
}

/* x * y + z, by the error-free transformations of Dekker and Knuth. */
static inline double df_fma(double x, double y, double z)
{
    const double product = x * y, sum = product + z;
    const double split = 0x1p27 + 1.0;
    const double x_high = x * split - (x * split - x), y_high = y * split - (y * split - y);
    const double x_low = x - x_high, y_low = y - y_high;
    const double product_error = x_low * y_low - (((product - x_high * y_high) - x_low * y_high) - x_high * y_low);
    const double part = sum - product;
    const double sum_error = (product - (sum - part)) + (z - part);
    const double result = sum + (product_error + sum_error);
    return result - result == 0.0 ? result : sum;
}

#define fmaf df_fmaf
#define fma df_fma

#endif
