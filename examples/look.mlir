// One line is enough to look at a schedule:
//
//   chimera-opt examples/look.mlir --chimera-timeline -o /dev/null
chimera.pipeline @look stages(4) micro_batches(4) schedule("chimera")
