// <immintrin.h>, without g++ 12's false alarms: its AVX-512 intrinsics pass an undefined register
// where all lanes are written, and -Wmaybe-uninitialized reports that in whoever calls them.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
