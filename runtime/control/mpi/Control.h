//===- Control.h - Control among processes of an MPI job --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CONTROL_MPI_CONTROL_H
#define CHIMERA_RUNTIME_CONTROL_MPI_CONTROL_H

#include "runtime/channel/mpi/Session.h"
#include "runtime/control/Control.h"

namespace chimera::runtime {

/// Control over all ranks of an MPI job. Every rank makes (and destroys) it
/// like its channels. It ends the waits of channels that share its `news`.
std::unique_ptr<Control> makeMpiControl(std::shared_ptr<mpi::News> news);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CONTROL_MPI_CONTROL_H
