#!/usr/bin/env bash
# Train a recipe on a SLURM cluster, and continue it after every end of its time:
#   sbatch examples/slurm.sh RECIPE RUN [options of lipcert train]
# Nodes, GPUs and time are set below or on sbatch's command line. RUN must lie on a shared file system.
#SBATCH --job-name=lipcert
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
recipe=${1:?usage: sbatch examples/slurm.sh RECIPE RUN [options of lipcert train]}
run=${2:?usage: sbatch examples/slurm.sh RECIPE RUN [options of lipcert train]}
shift 2

resume=()
if [ -e "$run/recipe.yaml" ]; then
    resume=(--resume)
fi
status=0
srun lipcert train "$recipe" --output "$run" ${resume[@]+"${resume[@]}"} "$@" || status=$?

# SLURM sends the signal two minutes before the end of the time. lipcert then saves its state and exits with 130.
if [ "$status" -eq 130 ]; then
    exec scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
