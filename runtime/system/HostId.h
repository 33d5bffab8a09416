//===- HostId.h - Tells hosts apart -----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_HOSTID_H
#define CHIMERA_RUNTIME_SYSTEM_HOSTID_H

#include <string>

namespace chimera::runtime {

/// The ID of the running kernel, which changes with every reboot. Containers of
/// a machine have the same one. Empty if the kernel does not say.
std::string bootId();

/// A text without spaces that tells hosts apart: containers of a machine by
/// their host names, and machines of the same name by their boot IDs.
std::string hostId();

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_HOSTID_H
