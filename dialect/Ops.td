//===- Ops.td - All ops of the chimera dialect -------------*- tablegen -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_OPS_TD
#define CHIMERA_DIALECT_OPS_TD

include "dialect/CommunicationOps.td"
include "dialect/DescriptionOps.td"
include "dialect/StepOps.td"
include "dialect/WorkerOps.td"

#endif // CHIMERA_DIALECT_OPS_TD
