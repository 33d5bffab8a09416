//===- Elsewhere.h - Another place for a file that has none -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_ELSEWHERE_H
#define CHIMERA_RUNTIME_PROGRAM_ELSEWHERE_H

#include <functional>
#include <string>

namespace chimera::program {

/// For what was too long in the making to be lost with the disk it was to go
/// to. Has `write` write a file whose name is made from that of `path`, that is
/// not there yet, in the current folder or, where that fails, in that for
/// temporary files (TMPDIR, else /tmp). Returns the absolute path; empty where
/// `write` gave false in both. It must replace no file (Existing::Kept).
std::string
writeElsewhere(const std::string &path,
               const std::function<bool(const std::string &)> &write);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_ELSEWHERE_H
