//===- VectorWidths.h - Loops for every width of vectors --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A binary runs on any x86-64, and its loops over elements use the vectors of
// the machine that it runs on. What they compute must not depend on the width:
// files that use this are compiled with -ffp-contract=off, as only some of
// those machines can multiply and add at once.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_VECTORWIDTHS_H
#define CHIMERA_RUNTIME_SYSTEM_VECTORWIDTHS_H

// The choice is made while the process is loaded, before a sanitizer has begun.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHIMERA_ONE_VECTOR_WIDTH
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHIMERA_ONE_VECTOR_WIDTH
#endif

/// Before a function that is no template: compiles it for each width; the
/// machine's is called.
#if defined(__x86_64__) && !defined(CHIMERA_ONE_VECTOR_WIDTH)
#define CHIMERA_VECTOR_WIDTHS                                                  \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CHIMERA_VECTOR_WIDTHS
#endif

#endif // CHIMERA_RUNTIME_SYSTEM_VECTORWIDTHS_H
