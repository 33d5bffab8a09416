#!/bin/bash
# Trains under torchrun. If a rank dies, torchrun starts all ranks again, and
# they continue from the last checkpoint. So they do if you run this script
# again after it has ended.
#
#   examples/torchrun.sh gpt2.chimera --data TEXT --steps 3000 \
#     --save gpt2.safetensors
#
# All arguments go to chimera-run. These variables may be set:
#   RANKS             ranks on this host (default: 4)
#   RESTARTS          how often torchrun may start the ranks again (default: 3)
#   CHECKPOINTS       the folder of checkpoints (default: checkpoints)
#   CHECKPOINT_EVERY  steps between checkpoints (default: 100)
#   TORCHRUN_OPTIONS  how the torchruns of several hosts meet (default:
#                     --standalone, for one host). For two hosts, on each:
#                     "--nnodes 2 --rdzv-backend c10d --rdzv-id RUN
#                     --rdzv-endpoint HOST:PORT". CHECKPOINTS must then be a
#                     folder that the hosts share.
set -eu
checkpoints=${CHECKPOINTS:-checkpoints}

# shellcheck disable=SC2086 # TORCHRUN_OPTIONS are several words
exec torchrun --no-python ${TORCHRUN_OPTIONS:---standalone} \
  --nproc-per-node "${RANKS:-4}" --max-restarts "${RESTARTS:-3}" \
  -- chimera-run --transport tcp \
  --checkpoint "$checkpoints" --checkpoint-every "${CHECKPOINT_EVERY:-100}" \
  --resume "$checkpoints" "$@"
