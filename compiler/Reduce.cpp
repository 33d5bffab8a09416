//===- Reduce.cpp - Reduction of failing modules --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's own pass `reduction-tree` is not enough: it erases ops whose results
// are used and leaves null operands, so no test can read the module, and it
// applies its patterns to all ops or to none. This pass makes each step of the
// reduction on a copy, together with all changes that the step requires. It
// keeps the copy if the copy is valid and the test still finds it interesting.
//
//===----------------------------------------------------------------------===//

#include "compiler/Reduce.h"

#include "dialect/Chimera.h"
#include "passes/PassOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Reducer/Tester.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace chimera {

namespace {

/// All ops in the module. A clone of the module has them in the same order, so
/// an index identifies an op in both.
SmallVector<Operation *> opsOf(ModuleOp module) {
  SmallVector<Operation *> ops;
  module->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != module)
      ops.push_back(op);
  });
  return ops;
}

using OpsToErase = llvm::SetVector<Operation *>;

/// A value that can replace `value` in `user`, or null. It has the type of
/// `value`, and is not a result of an op to erase. It is either an argument of
/// the user's block or an operand of the op that defines `value`. If that
/// operand is defined by an op to erase, the operands of that op are tried in
/// turn.
Value replacementFor(Value value, Operation *user, const OpsToErase &toErase) {
  for (Value operand : value.getDefiningOp()->getOperands()) {
    if (operand.getType() != value.getType())
      continue;
    return toErase.contains(operand.getDefiningOp())
               ? replacementFor(operand, user, toErase)
               : operand;
  }
  for (Value argument : user->getBlock()->getArguments())
    if (argument.getType() == value.getType())
      return argument;
  return Value();
}

/// Removes `value` from the operands of `user`. Fails if that is not possible.
LogicalResult removeOperand(Operation *user, Value value,
                            const OpsToErase &toErase) {
  for (unsigned i = user->getNumOperands(); i-- > 0;) {
    if (user->getOperand(i) != value)
      continue;
    if (Value replacement = replacementFor(value, user, toErase))
      user->setOperand(i, replacement);
    else if (isa<AllReduceOp>(user) && user->getNumResults() == 1 &&
             user->getNumOperands() > 1)
      user->eraseOperand(i); // sum one loss less
    else
      return failure();
  }
  return success();
}

/// Erases `ops`. Also erases each user of their results that can neither drop
/// the operand nor get another one. Fails if such a user is a terminator.
LogicalResult eraseWithUsers(ArrayRef<Operation *> ops) {
  OpsToErase toErase(ops.begin(), ops.end());
  for (size_t i = 0; i < toErase.size(); ++i) {
    if (toErase[i]->hasTrait<OpTrait::IsTerminator>())
      return failure();
    for (Value result : toErase[i]->getResults())
      for (Operation *user : llvm::to_vector(result.getUsers()))
        if (!toErase.contains(user) &&
            failed(removeOperand(user, result, toErase)))
          toErase.insert(user);
  }
  // An operand may have been replaced by a result of an op that became an op to
  // erase later. So check that no other op uses an op to erase.
  for (Operation *op : toErase)
    for (Operation *user : op->getUsers())
      if (!toErase.contains(user))
        return failure();
  for (Operation *op : toErase)
    op->dropAllReferences();
  for (Operation *op : toErase)
    op->erase();
  return success();
}

/// Smaller numbers to try in place of `value`: 0, 1, and then numbers that come
/// ever closer to `value`.
SmallVector<int64_t> numbersBelow(int64_t value) {
  SmallVector<int64_t> numbers;
  if (value > 1)
    numbers = {0, 1};
  for (int64_t less = value; less > 0; less /= 2)
    numbers.push_back(value - less);
  return numbers;
}

class Reducer {
public:
  Reducer(OwningOpRef<ModuleOp> module, const Tester &test)
      : module(std::move(module)), test(test) {}

  bool isInteresting() { return isInteresting(*module); }

  OwningOpRef<ModuleOp> run() {
    while (eraseOps() | emptyRegions() | simplifyAttributes()) {
    }
    return std::move(module);
  }

private:
  bool isInteresting(ModuleOp candidate) {
    return test.isInteresting(candidate).first == Tester::Interestingness::True;
  }

  /// True if the test has not run on this module yet. The test takes most of
  /// the time, so it runs only once on each module.
  bool isNew(ModuleOp candidate) {
    std::string text;
    llvm::raw_string_ostream os(text);
    candidate->print(os);
    return seen.insert(llvm::xxh3_64bits(text)).second;
  }

  /// Applies `change` to a copy of the module. Keeps the copy and returns true
  /// if the change succeeds and the copy is valid, new and interesting.
  template <typename Change> bool attempt(Change change) {
    OwningOpRef<ModuleOp> copy = module->clone();
    bool valid = false;
    {
      ScopedDiagnosticHandler silence(copy->getContext(),
                                      [](Diagnostic &) { return success(); });
      valid = succeeded(change(opsOf(*copy))) && succeeded(mlir::verify(*copy));
    }
    if (!valid || !isNew(*copy) || !isInteresting(*copy))
      return false;
    module = std::move(copy);
    return true;
  }

  /// Erases runs of consecutive ops. The length of a run is halved until it
  /// is 1. Users come after the ops that they use, so the last ops are erased
  /// first.
  bool eraseOps() {
    bool progress = false;
    for (size_t run = std::max<size_t>(opsOf(*module).size() / 2, 1); run > 0;
         run /= 2)
      for (size_t end = opsOf(*module).size(); end > 0;) {
        size_t begin = end - std::min(run, end);
        if (attempt([&](ArrayRef<Operation *> ops) {
              return eraseWithUsers(outermost(ops.slice(begin, end - begin)));
            })) {
          progress = true;
          end = std::min(begin, opsOf(*module).size());
        } else {
          end = begin;
        }
      }
    return progress;
  }

  /// The ops of `ops` that are not inside another one of them, without
  /// terminators.
  static SmallVector<Operation *> outermost(ArrayRef<Operation *> ops) {
    SmallVector<Operation *> result;
    llvm::DenseSet<Operation *> all(ops.begin(), ops.end());
    for (Operation *op : ops)
      if (!all.contains(op->getParentOp()) &&
          !op->hasTrait<OpTrait::IsTerminator>())
        result.push_back(op);
    return result;
  }

  /// Removes the bodies of pipelines.
  bool emptyRegions() {
    bool progress = false;
    for (size_t i = 0; i < opsOf(*module).size(); ++i)
      progress |= attempt([&](ArrayRef<Operation *> ops) {
        auto pipeline = dyn_cast<PipelineOp>(ops[i]);
        if (!pipeline || pipeline.getBody().empty())
          return failure();
        pipeline.getBody().getBlocks().clear();
        return success();
      });
    return progress;
  }

  bool simplifyAttributes() {
    bool progress = false;
    for (size_t i = 0; i < opsOf(*module).size(); ++i) {
      Operation *op = opsOf(*module)[i];
      for (NamedAttribute attribute : op->getAttrDictionary())
        progress |= simplify(i, attribute);
    }
    return progress;
  }

  /// Removes the attribute, so that it has its default, or makes its number
  /// smaller.
  bool simplify(size_t index, NamedAttribute attribute) {
    StringAttr name = attribute.getName();
    bool isDefault = false;
    if (attempt([&](ArrayRef<Operation *> ops) {
          Operation *op = ops[index];
          op->removeAttr(name);
          op->getName().populateDefaultProperties(op->getPropertiesStorage());
          isDefault = op->getAttr(name) == attribute.getValue();
          return success(!isDefault);
        }))
      return true;
    auto number = dyn_cast<IntegerAttr>(attribute.getValue());
    // The numbers of other ops name things, such as a stage. A smaller number
    // is not simpler there, so those are kept.
    Operation *op = opsOf(*module)[index];
    if (isDefault || !number ||
        !isa<ModelOp, TrainingOp, MachineOp, PipelineOp>(op))
      return false;
    return llvm::any_of(numbersBelow(number.getInt()), [&](int64_t less) {
      return attempt([&](ArrayRef<Operation *> ops) {
        ops[index]->setAttr(name, IntegerAttr::get(number.getType(), less));
        return success();
      });
    });
  }

  OwningOpRef<ModuleOp> module;
  const Tester &test;
  llvm::DenseSet<uint64_t> seen; ///< hashes of the tested modules
};

struct ReducePass : PassWrapper<ReducePass, PassOn<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReducePass)

  ReducePass() = default;
  // The options are not copied here, because they cannot be. The pass manager
  // copies their values.
  ReducePass(const ReducePass &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "chimera-reduce"; }
  StringRef getDescription() const final {
    return "Make a module as small as possible while a test still fails on it";
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (script.empty()) {
      module.emitError("chimera-reduce: expected test=SCRIPT, a program that "
                       "takes a file and exits with a nonzero status if the "
                       "file shows the error, got none");
      return signalPassFailure();
    }
    if (!llvm::sys::fs::can_execute(script)) {
      module.emitError("chimera-reduce: expected test=SCRIPT to be a program "
                       "that can be run, got '")
          << script << "'";
      return signalPassFailure();
    }
    Tester tester(script, arguments);
    Reducer reducer(module.clone(), tester);
    if (!reducer.isInteresting()) {
      module.emitError("chimera-reduce: expected a module for which the test "
                       "exits with a nonzero status, got 0");
      return signalPassFailure();
    }
    OwningOpRef<ModuleOp> reduced = reducer.run();
    module.getBodyRegion().takeBody(reduced->getBodyRegion());
  }

  Option<std::string> script{
      *this, "test",
      llvm::cl::desc(
          "Program that takes a file and exits with a nonzero status if the "
          "file shows the error")};
  ListOption<std::string> arguments{
      *this, "test-arg",
      llvm::cl::desc("Arguments of the test before the file")};
};

} // namespace

void registerReducePass() { PassRegistration<ReducePass>(); }

} // namespace chimera
