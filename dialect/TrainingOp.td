//===- TrainingOp.td - How a model is trained --------------*- tablegen -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_TRAININGOP_TD
#define CHIMERA_DIALECT_TRAININGOP_TD

include "dialect/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"

def Chimera_TrainingOp : Chimera_Op<"training", [Symbol]> {
  let summary = "the optimizer, its numbers and the seed";
  let description = [{
    The optimizer, its numbers and the seed of a run. They are independent of
    the model and of the workers. A pipeline names its training after `with`; a
    pipeline without one has the default of every clause.

    *Optimizer.* `optimizer` is one of:
    - `adamw` (the default; Loshchilov and Hutter, "Decoupled Weight Decay
      Regularization", ICLR'19). Its state has twice the size of the parameters.
    - `sgd`, stochastic gradient descent as `torch.optim.SGD` computes it. With a
      `momentum`, `sgd` updates the weights by a running sum: before each
      gradient is added, the sum is multiplied by `momentum`. The sum is the
      optimizer's state and has the size of the parameters. With `nesterov`, the
      update is the gradient plus `momentum` times the sum. Without a
      `momentum`, `sgd` has no state.
    - `muon` for matrices, and `adamw` for all other parameters (Jordan et al.,
      "Muon: an optimizer for hidden layers in neural networks", 2024). Muon
      orthogonalises the running average of the gradients, in the type in which
      the layers compute. `momentum`, which must be given, is the weight of the
      average; `nesterov` looks one step ahead. Updates are scaled as Liu et al.
      do ("Muon is Scalable for LLM Training", arXiv 2502.16982), so that
      `learning_rate` and `weight_decay` suit both optimizers. A matrix is a
      parameter with exactly two dimensions, both larger than 1. `adamw` also
      updates all parameters of the first and of the last layer (the embedding
      and the head), and those whose names match a pattern in `no_muon`. The
      state of a matrix has the size of the matrix.

    `seed` determines the initial weights, the order of the data and dropout.

    *Clipping.* With `clip_norm(C)`, each update first computes the norm of all
    gradients of the model together. If the norm is above C, the gradients are
    multiplied by C / (norm + 1e-6), as `torch.nn.utils.clip_grad_norm_` does.
    Each stage and each tied parameter counts once, however many replicas it
    has. All updates of a step wait for the gradients of all stages, so the
    schedule must have a flush. To see the norm without clipping, give a large
    C.

    *Weight decay.* A parameter decays by the learning rate times `weight_decay`
    (by default 0.01 for `adamw`, 0.1 for `muon` and 0 for `sgd`, as in PyTorch)
    if more than one of its dimensions is larger than 1: matrices and embeddings
    decay, biases and the parameters of norms do not. An exported model may
    instead name the parameters that decay. `no_decay` is a list of patterns: no
    parameter whose name matches one of them decays. In a pattern, `*` stands
    for any number of characters and `?` for one. The names are those in files
    of saved weights.

    *Learning rate.* In the first `warmup` steps, the rate rises linearly from 0
    to `learning_rate`. So the first step has the rate 0. After these steps,
    `lr_schedule` determines the rate:
    - `constant` (the default): it stays;
    - `linear`, `cosine`: it falls to `min_lr`, in a line or in half a wave of
      the cosine;
    - `wsd` (warm-up, stable, decay): it stays, and falls to `min_lr` in the
      last `decay_steps` steps, in half a wave of the cosine. Here the warm-up
      begins at `min_lr`.

    After `lr_steps` steps, the rate is `min_lr` and stays there. By default,
    `lr_steps` is the number of steps of the run (`chimera-run --steps`). If a
    step has several updates, all of them have the rate of the step. The rates
    are equal to those of Hugging Face's transformers to the last bit;
    `runtime/model/LearningRate.h` has the formulas.

    *A run can have other numbers.* The program contains the numbers, but options
    of `chimera-run` override all of them except `optimizer`, `epsilon`,
    `nesterov` and `no_muon`. A `momentum` or a `clip_norm` can be changed but
    not added.

    Invalid if
    - a number is negative or not finite, or a beta or `momentum` is not below 1;
    - `clip_norm` is 0, or the schedule has no flush;
    - a clause is given that the optimizer or the schedule does not use;
    - `muon` has no `momentum`, or no matrix to update (the latter is checked
      when the program is written);
    - `min_lr` is above `learning_rate`;
    - a pattern in `no_decay` or `no_muon` matches no parameter of the model
      (this is checked when the program is written);
    - `wsd` has no `decay_steps`;
    - `warmup` and `decay_steps` are together more than `lr_steps`.

    Example:
    ```mlir
    chimera.training @slowly learning_rate(1.0e-4) weight_decay(0.1) seed(7)
    chimera.training @pretrain learning_rate(3.0e-4) lr_schedule(cosine)
        warmup(2000) min_lr(3.0e-5) clip_norm(1.0) no_decay("*embedding*")
    chimera.training @plainly optimizer(sgd) learning_rate(0.1) momentum(0.9)
    chimera.training @hidden optimizer(muon) learning_rate(1.0e-3)
        momentum(0.95) nesterov weight_decay(0.1) no_muon("*router*")
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    DefaultValuedAttr<Chimera_Optimizer,
                      "::chimera::Optimizer::AdamW">:$optimizer,
    DefaultValuedAttr<F64Attr, "1.0e-3">:$learning_rate,
    DefaultValuedAttr<Chimera_RateSchedule,
                      "::chimera::RateSchedule::Constant">:$lr_schedule,
    DefaultValuedAttr<Chimera_StepsOrNone, "0">:$warmup,
    DefaultValuedAttr<F64Attr, "0.0">:$min_lr,
    OptionalAttr<Chimera_Steps>:$decay_steps,
    OptionalAttr<Chimera_Steps>:$lr_steps,
    DefaultValuedAttr<F64Attr, "0.9">:$beta1,
    DefaultValuedAttr<F64Attr, "0.999">:$beta2,
    DefaultValuedAttr<F64Attr, "1.0e-8">:$epsilon,
    DefaultValuedAttr<F64Attr, "0.0">:$momentum,
    UnitAttr:$nesterov,
    OptionalAttr<F64Attr>:$clip_norm,
    OptionalAttr<F64Attr>:$weight_decay,
    OptionalAttr<StrArrayAttr>:$no_decay,
    OptionalAttr<StrArrayAttr>:$no_muon,
    DefaultValuedAttr<I64Attr, "1">:$seed);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif // CHIMERA_DIALECT_TRAININGOP_TD
