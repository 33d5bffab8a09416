//===- Verify.h - The rules that a proof checks -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_VERIFY_H
#define CHIMERA_RUNTIME_PROOF_VERIFY_H

#include "runtime/program/Program.h"
#include "runtime/proof/Violation.h"

#include <span>
#include <string>
#include <vector>

namespace chimera::program {

/// Decides whether `program` can run. The program must be well formed and have
/// every action once. Every send must have a receive, and every start of an
/// all-reduce must have starts at all other members. There must be no deadlock
/// under the program's message model. Buffers must be used safely, and each
/// action must read the right values. The sizes of memory in the program must
/// be correct. The function takes linear time and memory in the size of the
/// program, except for sorting, even if the program has very large numbers. The
/// rules are checked in groups. Returns all violations of the first group that
/// fails, but at most 20. Later groups are not checked then, because they rely
/// on earlier groups. Returns an empty list if there is no violation.
///
/// Limits:
/// - The arena, all stashes of a worker together, and each size of a stage have
///   less than 2^48 bytes, so that their sums fit in 64 bits.
/// - There are at most 2^20 ranks.
/// - Costs are not negative.
/// - Learning rate, epsilon and weight decay are finite and not negative. Betas
///   are in [0, 1).
/// - Texts are printable UTF-8 (Printable.h) of at most 4096 bytes.
/// - All instructions of a worker together have at most as many operands and
///   results as the list Worker.operands has entries. So no entry belongs to
///   two instructions.
///
/// Deadlock: the proof executes the instructions of all workers abstractly
/// until no worker can advance. This decides whether the following graph has a
/// cycle. Each instruction i has two events, s(i) (reached) and c(i)
/// (complete), with edges s(i)→c(i)→s(i+1). A receive's wait completes after
/// the send is posted. Under rendezvous, a send's wait completes after the
/// receive is posted. The wait for an all-reduce completes after every member
/// has started the all-reduce. Each of these three conditions is also an edge
/// of the graph. The program has no deadlock if and only if this graph has no
/// cycle. This assumes that computations end, that matched operations complete,
/// and that a post never blocks.
///
/// Under a stream model, a post or start has two more events, e (takes effect)
/// and f (finished). The posts of a group that are in the same stream have the
/// same e and f. The edges are s(post)→e→f→c(wait), f of the previous operation
/// in the stream→e, and e of each matched operation→f. A stream belongs to one
/// communicator or to the whole device. If a program has no deadlock under one
/// model of the following list, it has none under the later models of the list:
/// stream-per-device, stream-per-pair, stream-per-direction, rendezvous,
/// buffered.
///
/// If there is a deadlock, all executions get stuck in the same state. In this
/// state, a stuck worker or, under a stream model, a stuck communicator waits
/// for an instruction of another one. These links form a cycle. The report
/// shows the cycle with the fewest links and, if there are several, the cycle
/// with the smallest workers. The search takes linear time, so it can miss this
/// cycle and find a longer one (ShortestCycle.h). The report prints at most 20
/// links.
///
/// Sections (prologue, body and epilogue): each message is sent and received in
/// the same section, so the body may run any number of times. Every edge of the
/// graph leads from a section to itself or to a later section. So every cycle
/// is inside one section, and it is enough to test each section once.
///
/// Buffers, values and weights of a program without a flush are checked for two
/// executions. The first consists of the prologue, two bodies and the epilogue.
/// The second consists of the prologue and the epilogue. At the end of the
/// second body, buffers, weights and gradient sums must have the same contents
/// as at its beginning, but one step later. Then all further bodies behave like
/// the second one. Values need no such rule, because a step can use only its
/// own values and values of the previous step.
///
/// Values: each operand has the value that the label of its instruction names.
/// The label also determines the step.
/// - A forward and its recomputes read the same inputs: the tokens or labels
///   that were loaded for their micro-batches, and the activation that the
///   previous stage computed for these micro-batches.
/// - A backward reads the stash of its piece (the micro-batch, or the part of a
///   micro-batch, that it covers). It also reads the gradient that the next
///   stage computed for this piece. On the last stage, it reads the loss of its
///   micro-batch instead of the gradient.
/// - A weight gradient reads the weight stash of its piece.
/// - A message sends the value that its label names.
/// - If there is a communicator for losses, every step sums all its losses, in
///   the order of micro-batches.
/// - A sum or a message of a loss begins after all backwards that take this
///   loss, because they may add to it.
///
/// Weights: version v of the weights of a replica is their value after v
/// updates. The proof computes the version in each buffer after each copy,
/// rename and optimizer step.
/// - A forward reads the version that `versionRead` states. Its backward and
///   its recompute read the same version.
/// - An update reads the newest weights and the newest optimizer state of its
///   replica. Its gradient is the sum, over all pipelines and data-parallel
///   copies, of the gradients of the micro-batches that its label names. Each
///   of them is in the sum once, and no others are.
/// - Every step updates each replica. At the end, the buffers of each state
///   have the newest version.
/// - The weights that an action reads are `weight_version` updates older than
///   the newest weights. While the pipeline fills, there can be fewer updates
///   than that. In this case, the action reads version 0.
///
/// Splits and joins: after a split, the whole gradient can no longer be used;
/// after a join, its pieces can no longer be used. The operands and the results
/// have the same bytes in memory. For each piece, the proof knows the gradient
/// sum that contains the piece, and the byte at which the piece begins. A
/// contribution to an all-reduce must have all gradients of an update. If the
/// all-reduce sums a bucket, each contribution must be this bucket of its
/// stage's sum. The bucket must begin at the same byte at every member, and at
/// a byte where no element is cut (kBucketAlignment). A join needs all pieces
/// in their order. Either all pieces or none of them must have been
/// all-reduced.
///
/// Tied parameters: `tied` has their offsets in the weights of the first and of
/// the last stage, and must agree with the model. The gradient sum of each of
/// these stages is split into the tied piece and the rest. The tied piece may
/// be a contribution only to an all-reduce of both stages. The rest may be a
/// contribution only to an all-reduce of its own stage. The two pieces may be
/// split further. If a tied piece has been all-reduced, a copy of it becomes
/// the tied piece of the replica that the copy's label names. A join needs the
/// tied piece and the rest, for the same update. The tied piece must have been
/// all-reduced, even if there is only one pipeline and one copy.
///
/// Renames: a rename is the last instruction of its section. Its buffers share
/// no bytes with other buffers.
///
/// Labels:
/// - Pipeline and stage are checked on all instructions except groups, waits,
///   renames and all-reduces of losses.
/// - For an all-reduce of gradients, `micro_batch` is the index of a bucket and
///   `micro_batches` the number of buckets.
/// - Loads, forwards and messages of tokens, labels and activations name the
///   micro-batches of one forward of the pipeline. Backwards, input gradients,
///   weight gradients, recomputes and messages of gradients name one piece.
///   Messages of losses name one micro-batch.
/// - On loads, posts, starts and copies, `kind` is the kind of the buffers.
///   Other instructions may have any kind.
/// - `location` is an index in Program.locations, or UINT32_MAX for none.
///
/// Sizes:
/// - A buffer of activations has the stage's boundary bytes for each
///   micro-batch that its label names. If a micro-batch is divided into p
///   parts, a buffer of gradients has 1/p of these bytes.
/// - A stash or a weight stash has 1/p of the bytes in the table of stages,
///   rounded up.
/// - Weights, their gradients and optimizer states have the sizes in the table
///   of stages.
/// - A loss has kLossBytes.
/// - All micro-batches have the same bytes of tokens, and the same bytes of
///   labels. The two sizes are divisible by the number of parts of each
///   micro-batch.
/// - If there is a model, the sizes of tokens, labels and stages follow from
///   its layers (Layers.h), and each of its layers is in one stage.
/// - A buffer begins at a multiple of `buffer_alignment` bytes, unless it is a
///   piece of a gradient.
///
/// Memory: the bytes in use at an instruction are the bytes of
/// - the weights and the optimizer state of each replica, always;
/// - every other buffer, including stashes, from the instruction that writes a
///   value to it to the last instruction that uses this value, both included.
///
/// The rules for the second item are:
/// - A message or all-reduce uses its buffers from its post or start to its
///   wait.
/// - If a result has the same buffer as an operand, the two values count as one
///   value.
/// - A value that is never used counts only at the instruction that writes it.
/// - The operands of a split or a join count up to the instruction before it.
/// - At an input gradient, only the larger one of its stash and its weight
///   stash counts.
/// - A rename moves values to other buffers. It is not a use of a value, unless
///   it moves the value into the buffer of a state. If it moves a value out of
///   the buffer of a state, the value counts from the next instruction on.
///
/// `peak_bytes` must be the maximum over all instructions, and
/// `peak_instruction` an instruction with this maximum.
///
/// Cap: the memory that a worker allocates on its device is larger than the
/// bytes in use. It is the whole arena, which the runtime allocates at the
/// start, plus the maximum, over all instructions, of the bytes of live
/// stashes. If `memory_cap` is not 0, it must be at least this sum.
std::vector<Violation> verifyProgram(const ProgramT &program);

/// Computes the peak of each of `workers`, and sets its `peak_bytes` to the
/// peak and its `peak_instruction` to the first instruction with this peak.
/// Changes nothing if an error in the program prevents the computation. In this
/// case, verifyProgram reports the error. Requires workers of the program.
void computeMemoryPeaks(ProgramT &program, std::span<const uint32_t> workers);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROOF_VERIFY_H
