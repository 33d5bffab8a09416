//===- VectorWidths.h - Loops for every SIMD width --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A macro for loops over elements. The binary runs on every x86-64 machine, but
// these loops use the widest SIMD instructions of the machine. Results must not
// depend on the SIMD width. So files that use this macro are compiled with
// -ffp-contract=off: the compiler must not use fused multiply-add, which only
// some machines have.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_VECTORWIDTHS_H
#define CHIMERA_RUNTIME_SYSTEM_VECTORWIDTHS_H

// The loader selects the version of a function before a sanitizer is
// initialised. This does not work with the address and the thread sanitizer, so
// their builds have only one version of each function.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHIMERA_ONE_VECTOR_WIDTH
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHIMERA_ONE_VECTOR_WIDTH
#endif

/// Write this macro before a function that is not a template. The function is
/// then compiled once for each SIMD width. A call of the function calls the
/// version for this machine.
#if defined(__x86_64__) && !defined(CHIMERA_ONE_VECTOR_WIDTH)
#define CHIMERA_FOR_EACH_SIMD_WIDTH                                            \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CHIMERA_FOR_EACH_SIMD_WIDTH
#endif

#endif // CHIMERA_RUNTIME_SYSTEM_VECTORWIDTHS_H
