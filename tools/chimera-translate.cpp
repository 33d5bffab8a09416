//===- chimera-translate.cpp - IR to program file to JSON -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit.h"
#include "compiler/Source.h"
#include "compiler/VerifyProgram.h"
#include "dialect/Chimera.h"
#include "passes/PassOptions.h"
#include "runtime/program/File.h"
#include "runtime/proof/ProvenFile.h"
#include "tools/MlirDriver.h"
#include "tools/Start.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/Timing.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

static llvm::cl::OptionCategory category("chimera-translate options");
static llvm::cl::opt<chimera::program::MessageModel>
    messages("messages",
             llvm::cl::desc("Message model under which a program is proven"),
             chimera::messageModels(),
             llvm::cl::init(chimera::program::MessageModel::Rendezvous),
             llvm::cl::cat(category));

static LogicalResult writeProgram(ModuleOp module, llvm::raw_ostream &os) {
  std::unique_ptr<chimera::program::ProgramT> program =
      chimera::emitProgram(module);
  if (!program)
    return failure();
  program->message_model = messages;
  if (failed(chimera::verifyProgram(module, *program)))
    return failure();
  std::vector<std::byte> bytes = chimera::program::serialize(*program);
  os.write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  return success();
}

static LogicalResult dumpProgram(llvm::SourceMgr &sources,
                                 llvm::raw_ostream &os, MLIRContext *) {
  const llvm::MemoryBuffer &file =
      *sources.getMemoryBuffer(sources.getMainFileID());
  std::string error;
  std::optional<chimera::program::ProgramT> program =
      chimera::program::readProgram(
          std::as_bytes(std::span(file.getBufferStart(), file.getBufferSize())),
          error);
  if (!program) {
    llvm::errs() << "chimera-translate: " << file.getBufferIdentifier() << ": "
                 << error << "\n";
    return failure();
  }
  os << chimera::program::dumpJson(*program) << "\n";
  return success();
}

int main(int argc, char **argv) {
  chimera::guardOutputs();
  TranslateFromMLIRRegistration toProgram(
      "chimera-to-program", "write the program of an allocated pipeline",
      [](Operation *op, llvm::raw_ostream &os) {
        return writeProgram(cast<ModuleOp>(op), os);
      },
      [](DialectRegistry &registry) {
        registry.insert<chimera::ChimeraDialect>();
      });
  TranslateRegistration toJson(
      "program-to-json",
      "print a view of a program file in JSON, for people and scripts: flatc "
      "does not read it",
      [](const std::shared_ptr<llvm::SourceMgr> &sources, llvm::raw_ostream &os,
         MLIRContext *context) { return dumpProgram(*sources, os, context); });
  registerAsmPrinterCLOptions();
  registerMLIRContextCLOptions();
  registerDefaultTimingManagerCLOptions();
  chimera::hideLibraryOptions(&category);
  chimera::setVersion("chimera-translate");
  llvm::SmallVector<char *> arguments =
      chimera::withoutOpsInDiagnostics(argc, argv);
  // Skip program files here, because readProgram checks them itself.
  bool readsProgram = llvm::any_of(arguments, [](llvm::StringRef argument) {
    return argument.ltrim('-') == "program-to-json";
  });
  if (chimera::reportBadOutputs(arguments) ||
      (!readsProgram && chimera::reportBadSources(arguments)))
    return 1;
  return failed(mlirTranslateMain(static_cast<int>(arguments.size()),
                                  arguments.data(),
                                  "chimera translation driver\n"));
}
