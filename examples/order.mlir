// A placement and an order of one's own, a line for each worker: four stages on a V,
// backwards of stages 0 and 2 whole and the others split, so that the last stages'
// weight gradients fill what would be idle.
//
//   chimera-opt examples/order.mlir --chimera-timeline -o /dev/null
chimera.pipeline @mine stages(4) micro_batches(2) workers(2) {
  chimera.direction 0 down on [0, 1, 1, 0] micro_batches [0, 1]
  chimera.order 0 "0F0 0F1 3F0 3I0 3F1 3I1 0B0 3W0 0B1 3W1"
  chimera.order 1 "1F0 2F0 1F1 2F1 2B0 1I0 2B1 1I1 1W0 1W1"
}
