//===- ErrorText.h - Texts of system errors ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_ERRORTEXT_H
#define CHIMERA_RUNTIME_SYSTEM_ERRORTEXT_H

#include <cerrno>
#include <cstring>
#include <string>

namespace chimera::runtime {

/// The system's text for the error number `code`. For EMFILE (too many open
/// files), it also has advice for the user.
inline std::string errorText(int code) {
  return std::strerror(code) +
         std::string(code == EMFILE ? ": raise ulimit -n" : "");
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_ERRORTEXT_H
