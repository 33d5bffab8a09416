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

/// One reason to refuse a program. `message` stands alone: it names worker,
/// instruction and source location where they apply.
struct Violation {
  enum class Rule {
    /// The program is not well formed: an index out of range, an operand of the
    /// wrong kind, a count that does not fit.
    Structure,
    /// A post or start without exactly one later wait, or a wait without one.
    Waits,
    /// The k-th send and the k-th receive of a channel, or the k-th start of a
    /// communicator at two members, differ or one is missing.
    Matching,
    /// Some workers wait for each other in a cycle.
    Deadlock,
    /// A buffer is read before it is written, written while it is being sent,
    /// touched while it is being received into, or a stash used twice, not at
    /// all or written over.
    Buffers,
    /// An operand is not the value that the label of its instruction asks for.
    Values,
    /// An action reads weights of another version or another stage than it
    /// must, or an update does not follow the one before with the gradients it
    /// names.
    Weights,
    /// A worker's peak of bytes is another than it states, or elsewhere.
    Memory,
    /// A worker takes more bytes than its cap.
    Cap,
  };
  static constexpr size_t kRules = static_cast<size_t>(Rule::Cap) + 1;
  Rule rule;
  std::string message;
  /// The instruction that is wrong, or the first of those that do not go
  /// together; UINT32_MAX where it is none, or none of this worker's alone.
  uint32_t worker = UINT32_MAX;
  uint32_t instruction = UINT32_MAX;
};

/// Decides whether `program` can run: well formed, every action there once,
/// every message and collective matched, free of deadlock under its message
/// model, buffers used safely and holding what each action must read, memory as
/// stated. Time and memory are linear in the size of the program, but for
/// sorting, whatever its numbers claim. Returns every violation of the first
/// rule group that fails (later groups assume the earlier), at most 20, empty
/// if there is none.
///
/// Limits: arena, stashes together and each size of a stage have less than 2^48
/// bytes, so that sums of them fit in 64 bits; there are at most 2^20 ranks;
/// costs are not negative; learning rate, epsilon and weight decay are finite
/// and not negative, betas in [0, 1); texts are printable UTF-8 (Printable.h)
/// of at most 4096 bytes. The instructions of a worker have together no more
/// operands and results than its pool has entries: none is there for two.
///
/// The deadlock test runs the streams abstractly until no worker advances. Each
/// instruction i is two events, s(i) reached and c(i) complete, with edges
/// s(i)→c(i)→s(i+1); a receive's wait completes after the send is posted, under
/// rendezvous a send's wait after the receive is posted, a collective's wait
/// after every member has started. No execution deadlocks if and only if this
/// graph has no cycle, given that computations end, matched operations complete
/// and posting never blocks.
///
/// Under a stream model a post or start has two more events, e taking effect
/// and f finished, which the posts of a group in one stream share:
/// s(post)→e→f→c(wait), f of the operation before in its stream→e, and e of
/// each matched operation→f. A stream is that of one communicator, or of the
/// whole device. A program that is free of deadlock under stream-per-device is
/// so under stream-per-pair, one that is free there under stream-per-direction,
/// one that is free there under rendezvous, and one that is free there under
/// buffered.
///
/// Of a deadlock one cycle is shown: in the state in which every execution ends
/// up, the one of the fewest links, and of these the smallest by its workers,
/// as far as a search in linear time finds it (ShortestCycle.h); of a long one
/// the first 20 links. A link is a worker at a wait, or under a stream model a
/// communicator at an operation, and what it waits for.
///
/// Each section is matched by itself and leaves no message unreceived, so the
/// body may run any number of times: all edges of the graph lead from a section
/// to itself or to the next one, so a cycle lies inside one of them, and the
/// three in a row have one exactly if any number of bodies does.
///
/// Buffers and weights of a program without a flush are checked along the runs
/// prologue, body, body, epilogue and prologue, epilogue. The body must leave
/// what it found, one step later, which makes all further bodies equal.
///
/// Values: a forward and its recomputes read the same, what was loaded for
/// their micro-batches or what the stage before made of them; a backward reads
/// the stash of its piece and the gradient that the next stage made of it, or
/// the loss of its micro-batch; a weight gradient the weight stash of its
/// piece; a message carries what its label says, and the losses are summed by
/// micro-batch: all of them, in every step, where a communicator is for them.
/// All are of the step that the label names.
///
/// Weights: a version is the number of updates that made it, followed through
/// copies, renames and optimizer steps. A forward reads the one that
/// `versionRead` states, its backward (and recompute) the same; each update
/// takes the newest and its stage's newest optimizer state and, summed once
/// over all pipelines and copies, exactly the gradients of the micro-batches
/// that its label names; every step updates each replica, and at the end each
/// state holds the newest. `weight_version` is how many updates older than the
/// newest an action's weights are, once the pipeline is full: before the first
/// update there are only copies of the first version.
///
/// A split ends a gradient's whole and a join its pieces: what was there can be
/// used no further, and what takes its place has the same bytes. Pieces carry
/// from where on they are parts of which sum. Contributions to an all-reduce
/// hold all gradients of an update; of a bucket they are that piece of their
/// stage's sum, the same at every member, which begins where no element is cut
/// (kBucketAlignment). A join makes the whole again of all its pieces in their
/// places, reduced alike.
///
/// Tied parameters, which first and last stage hold where `tied` and the model
/// say: a sum of such a stage is split into theirs and the rest. Theirs may
/// enter only an all-reduce of both stages, the rest only one of its own; each
/// of the two may be split further. A copy of the reduced sum of what is tied
/// becomes that of the replica that its label names. A join takes both, theirs
/// reduced in any case, for one update.
///
/// A rename is the last instruction of its section. Its buffers share bytes
/// with no other buffer, so that they can change places with nothing in the
/// way.
///
/// Labels: pipeline and stage are checked on all but groups, waits and
/// all-reduces of losses; buckets on all-reduces of gradients; micro-batches
/// and parts on loads, computations and posts of what belongs to micro-batches:
/// loads, forwards and messages of tokens, labels and activations name what one
/// forward of the pipeline covers, backwards, recomputes and messages of
/// gradients one piece; `kind` must be that of the buffers on loads, posts and
/// starts and is free elsewhere. `location` is an index, or UINT32_MAX for
/// none.
///
/// Sizes: buffers of activations and gradients have as many boundaries as their
/// label names, or that part of one; stashes and weight stashes have that part
/// of their stage's, rounded up; weights, their gradients and optimizer states
/// have what the stage says; a loss has kLossBytes. All micro-batches have the
/// same bytes of tokens, and of labels, which the parts of any of them divide.
/// Where there is a model, it says what those and stages have (Layers.h), and
/// each of its layers is in one stage. A buffer begins at a multiple of 64
/// bytes (buffer_alignment) but for pieces of gradients.
///
/// The bytes that a worker holds at an instruction are those of
/// - both buffers of each of its states, always;
/// - every other buffer (a stash's declared bytes too) from the instruction
///   that writes a value into it to the last one that uses that value, both
///   included. A transfer or all-reduce uses its buffers from its post or start
///   to its wait. A value that replaces an operand in place continues it; one
///   that nothing uses counts where it is written. What a split or a join takes
///   counts up to the instruction before it. At an input gradient the larger of
///   its stash and its weight stash counts.
/// A rename moves values, and with them what is counted, and is no use of them
/// but of one that it moves to a state's buffer; what it moves out of a state's
/// buffer counts from the next instruction on. `peak_bytes` must be the most of
/// these, reached at `peak_instruction` (at any, if there are several).
///
/// What a worker takes of its device's memory is more: the whole arena, since a
/// runtime allocates it at the start, and the most bytes of stashes that the
/// list above has at one instruction. `memory_cap`, where there is one, must be
/// at least `arena_bytes` and these together.
std::vector<Violation> verifyProgram(const ProgramT &program);

/// Makes each of `workers` state the peak that it has, and where it reaches it
/// first. Leaves them as they are where the program is not sound enough to
/// tell: verifyProgram then says why. Requires workers of the program.
void statePeaks(ProgramT &program, std::span<const uint32_t> workers);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROOF_VERIFY_H
