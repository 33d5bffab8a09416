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
    Pipeline-parallel training steps, from description to streams.

    A training step of a model that is cut into stages is a dataflow graph in
    SSA: activations, gradients, stashes, weights, optimizer state and weight
    gradients are values, and nothing is hidden state. MLIR's dominance check
    is the dependency check of an order of actions.

    The phases, each a form of the same module:

    - *described*: `chimera.model` and `chimera.pipeline`;
    - *partitioned*: the pipeline holds `chimera.stage`, `chimera.direction` and
      `chimera.order` ops;
    - *unrolled*: and one `chimera.step` with every action of a step;
    - *scheduled*: the step's block is in execution order, each action names
      its worker;
    - *communicated* and *synchronised*: what crosses workers is posted and
      waited for;
    - *projected*: one isolated `chimera.worker` for each worker;
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
