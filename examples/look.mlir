// One line is enough to look at a schedule:
//
//   chimera-show examples/look.mlir
chimera.pipeline @look stages(4) micro_batches(4) schedule("chimera")
