//===- VectorWidths.h - Loops for every SIMD width --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The binary runs on any x86-64 machine, but its loops over elements use the
// widest SIMD instructions of the machine. Results must not depend on that
// width. Files that use this macro are compiled with -ffp-contract=off, because
// only some machines have fused multiply-add.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_VECTORWIDTHS_H
#define CHIMERA_RUNTIME_SYSTEM_VECTORWIDTHS_H

// The loader selects the clone before a sanitizer is initialised, so builds
// with a sanitizer have no clones.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHIMERA_ONE_VECTOR_WIDTH
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHIMERA_ONE_VECTOR_WIDTH
#endif

/// Put this before a function that is not a template. The function is compiled
/// once for each SIMD width, and calls go to the version for this machine.
#if defined(__x86_64__) && !defined(CHIMERA_ONE_VECTOR_WIDTH)
#define CHIMERA_FOR_EACH_SIMD_WIDTH                                            \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CHIMERA_FOR_EACH_SIMD_WIDTH
#endif

#endif // CHIMERA_RUNTIME_SYSTEM_VECTORWIDTHS_H
