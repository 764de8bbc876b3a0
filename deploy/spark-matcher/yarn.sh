#!/usr/bin/env bash
# Submits the job of a comparison to YARN, which runs its driver, too, and starts it again when it fails.
#
#   ARCHIVE=python.tar.gz EXECUTORS=2 CORES=4 yarn.sh orders.yaml --brokers kafka:9092 --results orders.results \
#     --checkpoint hdfs:///twinstream/orders --shards 32
#
# ARCHIVE is a Python with twinstream[spark-matcher] that runs wherever it is unpacked (conda-pack, venv-pack), with
# bin/python in it; CORES are those of each of the EXECUTORS. The arguments are those of `twinstream
# spark-submit-args`, the comparison file first. Memory stands in conf/spark-defaults.conf, as for every job.
set -euo pipefail

: "${ARCHIVE:?give the archive of a Python that has Twinstream}"
: "${EXECUTORS:?give the number of executors}"
: "${CORES:?give the cores of each executor}"

words=$(twinstream spark-submit-args "$@")
eval "arguments=($words)"

# The driver finds what is sent along by its name alone, in the folder where it runs.
files=()
send() {
  files+=("${arguments[$1]}")
  arguments[$1]=$(basename "${arguments[$1]}")
}
for place in "${!arguments[@]}"; do
  case ${arguments[place]} in
    "$1") send "$place" ;;
    --config) send $((place + 1)) ;;
  esac
done

# YARN gives up after two failures, unless the older one is forgotten: then a job that fails now and then goes on.
exec spark-submit --master yarn --deploy-mode cluster --num-executors "$EXECUTORS" --executor-cores "$CORES" \
  --archives "$ARCHIVE#python" --files "$(IFS=,; echo "${files[*]}")" \
  --conf spark.pyspark.python=./python/bin/python \
  --conf spark.yarn.am.attemptFailuresValidityInterval=10m \
  --conf spark.yarn.submit.waitAppCompletion=false \
  --conf "spark.sql.shuffle.partitions=$((EXECUTORS * CORES))" "${arguments[@]}"
