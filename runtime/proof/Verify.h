//===- Verify.h - What is proven of a program -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_VERIFY_H
#define CHIMERA_RUNTIME_PROOF_VERIFY_H

#include "runtime/program/Program.h"

#include <span>
#include <string>
#include <vector>

namespace chimera::program {

/// One reason to refuse a program. `message` is complete without context: it
/// names worker, instruction and source location if they apply.
struct Violation {
  enum class Rule {
    /// The program is not well formed: an index out of range, an operand of the
    /// wrong kind, a count that does not fit.
    Structure,
    /// A post or start does not have exactly one later wait, or a wait has no
    /// post or start.
    Waits,
    /// The k-th send and the k-th receive of a channel do not agree, or the
    /// k-th starts of a communicator at two members do not agree, or one is
    /// missing.
    Matching,
    /// Workers wait for each other in a cycle.
    Deadlock,
    /// A buffer is read before it is written, written while it is being sent,
    /// or used while a receive fills it. Two live values overlap in memory. A
    /// stash is used twice, never, or overwritten before its use.
    Buffers,
    /// An operand is not the value that the label of its instruction requires.
    Values,
    /// An action reads weights of a wrong version or a wrong stage. An update
    /// is out of order, or its gradient is not the sum that its label names.
    Weights,
    /// A worker's peak of bytes differs from the stated one, or is at another
    /// instruction.
    Memory,
    /// A worker needs more bytes than its cap.
    Cap,
  };
  static constexpr size_t kRules = static_cast<size_t>(Rule::Cap) + 1;
  Rule rule;
  std::string message;
  /// The worker and the index of the wrong instruction. If several instructions
  /// do not agree, the first one. UINT32_MAX if the violation does not belong
  /// to one worker or one instruction.
  uint32_t worker = UINT32_MAX;
  uint32_t instruction = UINT32_MAX;
};

/// Decides whether `program` can run. It must be well formed and have every
/// action once. Every message and collective must be matched, and there must be
/// no deadlock under its message model. Buffers must be used safely, and must
/// have the values that each action must read. Memory must be as stated. Time
/// and memory are linear in the size of the program, apart from sorting,
/// whatever numbers the program states. Returns all violations of the first
/// rule group that fails, but at most 20: later groups rely on earlier ones.
/// Returns an empty list if there is no violation.
///
/// Limits:
/// - The arena, all stashes of a worker together, and each size of a stage have
///   less than 2^48 bytes, so that their sums fit in 64 bits.
/// - There are at most 2^20 ranks.
/// - Costs are not negative.
/// - Learning rate, epsilon and weight decay are finite and not negative. Betas
///   are in [0, 1).
/// - Texts are printable UTF-8 (Printable.h) of at most 4096 bytes.
/// - The instructions of a worker together have at most as many operands and
///   results as its pool has entries: no entry is for two instructions.
///
/// Deadlock: the test executes the streams abstractly until no worker advances.
/// This decides whether the following graph has a cycle. Each instruction i has
/// two events, s(i) (reached) and c(i) (complete), with edges s(i)→c(i)→s(i+1).
/// A receive's wait completes after the send is posted. Under rendezvous, a
/// send's wait completes after the receive is posted. A collective's wait
/// completes after every member has started. No execution deadlocks if and only
/// if this graph has no cycle, provided that computations end, matched
/// operations complete and posting never blocks.
///
/// Under a stream model, a post or start has two more events, e (takes effect)
/// and f (finished). The posts of a group that are in the same stream share
/// them. The edges are s(post)→e→f→c(wait), f of the previous operation in the
/// stream→e, and e of each matched operation→f. A stream belongs to one
/// communicator or to the whole device. A program that has no deadlock under
/// one of these models has none under those after it: stream-per-device,
/// stream-per-pair, stream-per-direction, rendezvous, buffered.
///
/// A deadlock is reported as one cycle in the state in which every execution
/// gets stuck. The report shows the cycle with the fewest links and, of
/// several, the one with the smallest workers; the search is limited to linear
/// time, so it can miss that cycle and show another (ShortestCycle.h). It
/// prints at most 20 links. A link is a worker at a wait (or, under a stream
/// model, a communicator at an operation) and the instruction that it waits
/// for.
///
/// Sections: the messages of each section are matched inside it, and none is
/// left unreceived, so the body may run any number of times. All edges of the
/// graph lead from a section to itself or to the next one. So every cycle is
/// inside one section, and it is enough to test prologue, body and epilogue
/// once each.
///
/// Buffers, values and weights of a program without a flush are checked for two
/// sequences of sections: prologue, body, body, epilogue, and prologue,
/// epilogue. The second body must leave in buffers, weights and gradient sums
/// what it found there, one step later. Values need no such rule, because a
/// step can use only values of the step before. So all further bodies behave
/// like the second one.
///
/// Values: each operand is the value that the label of its instruction names,
/// of the step that the label names.
/// - A forward and its recomputes read the same inputs: the tokens or labels
///   that were loaded for their micro-batches, and the activation that the
///   stage before made of them.
/// - A backward reads the stash of its piece and the gradient that the next
///   stage computed for this piece; on the last stage, the loss of its
///   micro-batch.
/// - A weight gradient reads the weight stash of its piece.
/// - A message carries the value that its label names.
/// - If there is a communicator for losses, every step sums all its losses, in
///   the order of micro-batches.
///
/// Weights: a version is the number of updates that made it. The proof follows
/// versions through copies, renames and optimizer steps.
/// - A forward reads the version that `versionRead` states. Its backward and
///   its recompute read the same version.
/// - An update takes the newest weights and the newest optimizer state of its
///   stage. Its gradient is the sum over all pipelines and copies of exactly
///   the gradients of the micro-batches that its label names, each once.
/// - Every step updates each replica. At the end, each state has the newest
///   version.
/// - `weight_version` is the number of updates by which an action's weights are
///   older than the newest. It can exceed the number of updates so far while
///   the pipeline fills; then the action reads version 0.
///
/// Splits and joins: after a split, the whole gradient can no longer be used;
/// after a join, its pieces can no longer be used. The results are the same
/// bytes in memory. For each piece, the proof knows the sum that it is part of
/// and the byte at which it begins. The contributions to an all-reduce
/// have all gradients of an update. If it reduces a bucket, each contribution
/// is that bucket of its stage's sum, begins at the same byte at every
/// member, and begins where no element is cut (kBucketAlignment). A join
/// needs all pieces in their places, and either all or none of them reduced.
///
/// Tied parameters: the first and the last stage have them at the offsets that
/// `tied` states, which are those of the model. The gradient sum of such a
/// stage is split into the tied piece and the rest. The tied piece may enter
/// only an all-reduce of both stages; the rest may enter only an all-reduce of
/// its own stage. Both may be split further. A copy of the reduced tied piece
/// becomes the tied piece of the replica that the copy's label names. A join
/// needs both pieces, for the same update. The tied piece must be reduced, even
/// if there is only one pipeline and one copy.
///
/// Renames: a rename is the last instruction of its section. Its buffers share
/// no bytes with other buffers, so they can be exchanged safely.
///
/// Labels:
/// - Pipeline and stage are checked on all instructions except groups, waits,
///   renames and all-reduces of losses.
/// - The label of an all-reduce of gradients names a bucket.
/// - Loads, forwards and messages of tokens, labels and activations name the
///   micro-batches of one forward of the pipeline. Backwards, their halves,
///   recomputes and messages of gradients name one piece. Messages of losses
///   name one micro-batch.
/// - On loads, posts, starts and copies, `kind` is the kind of the buffers.
///   Other instructions may have any kind.
/// - `location` is an index, or UINT32_MAX for none.
///
/// Sizes:
/// - A buffer of activations has the stage's boundary bytes for each
///   micro-batch that its label names. A buffer of gradients has its piece's
///   share of them.
/// - A stash or a weight stash has its piece's share of the stage's size,
///   rounded up.
/// - Weights, their gradients and optimizer states have the sizes that the
///   stage states.
/// - A loss has kLossBytes.
/// - All micro-batches have the same bytes of tokens, and the same bytes of
///   labels. Both are divisible by the number of parts of any micro-batch.
/// - If there is a model, the sizes of its layers (Layers.h) are the sizes of
///   tokens, labels and stages, and each of its layers is in one stage.
/// - A buffer begins at a multiple of `buffer_alignment` bytes, except
/// for
///   pieces of gradients.
///
/// Memory: at an instruction, a worker holds the bytes of
/// - both buffers of each of its states, always;
/// - every other buffer, including the stated bytes of stashes, from the
///   instruction that writes a value into it to the last instruction that uses
///   this value, both included.
///
/// The rules for the second item are:
/// - A transfer or all-reduce uses its buffers from its post or start to its
///   wait.
/// - A value that replaces an operand in place continues the operand's
///   interval.
/// - A value that is never used counts at the instruction that writes it.
/// - The operands of a split or a join count up to the instruction before it.
/// - At an input gradient, the maximum of its stash and its weight stash
///   counts.
/// - A rename moves values to other buffers, and their intervals with them. It
///   is not a use of a value, unless it moves the value into a state's buffer.
///   A value that it moves out of a state's buffer counts from the next
///   instruction on.
///
/// `peak_bytes` is the maximum of these sums, and `peak_instruction` is an
/// instruction that reaches it.
///
/// Cap: the memory that a worker takes on its device is larger. It is the whole
/// arena, which a runtime allocates at the start, plus the maximum, over
/// instructions, of the bytes of live stashes. `memory_cap`, if there is one,
/// is at least this sum.
std::vector<Violation> verifyProgram(const ProgramT &program);

/// Sets `peak_bytes` of each of `workers` to the true peak, and
/// `peak_instruction` to the first instruction that reaches it. Changes nothing
/// if the program has an error that prevents this; verifyProgram then reports
/// the error. Requires workers of the program.
void setPeaks(ProgramT &program, std::span<const uint32_t> workers);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROOF_VERIFY_H
