//===- Dialect.td - The chimera dialect --------------------*- tablegen -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_DIALECT_TD
#define CHIMERA_DIALECT_DIALECT_TD

include "mlir/IR/OpBase.td"

def Chimera_Dialect : Dialect {
  let name = "chimera";
  let cppNamespace = "::chimera";
  let description = [{
    Pipeline-parallel training steps, from a description to one instruction
    stream per worker.

    A training step of a model that is cut into stages is a dataflow graph in
    SSA. Activations, gradients, stashes, weights, optimizer state and weight
    gradients are values; there is no hidden state. MLIR's dominance check is
    therefore the dependency check of an order of actions.

    A module goes through these phases:

    - *described*: `chimera.model` and `chimera.pipeline`;
    - *partitioned*: the pipeline holds `chimera.stage`, `chimera.direction` and
      `chimera.order` ops;
    - *unrolled*: the pipeline also holds one `chimera.step` with every action
      of a step;
    - *scheduled*: the block of the step is in execution order, and each action
      names its worker;
    - *communicated* and *synchronised*: every value that one worker makes and
      another uses is sent, received or reduced by explicit ops;
    - *projected*: there is one isolated `chimera.worker` for each worker;
    - *allocated*: every value has a buffer.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
  }];
}

#endif // CHIMERA_DIALECT_DIALECT_TD
