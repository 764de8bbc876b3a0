#!/usr/bin/env bash
# Runs the job of a comparison on a standalone cluster of Spark, until it ends: a supervisor starts it again.
#
#   MASTER=spark://HOST:7077 EXECUTORS=2 CORES=4 PYSPARK_PYTHON=/opt/twinstream/bin/python \
#     standalone.sh orders.yaml --brokers kafka:9092 --results orders.results \
#     --checkpoint hdfs://state/twinstream/orders --shards 32
#
# MASTER is the master of the cluster, CORES are those of each of the EXECUTORS, PYSPARK_PYTHON is the Python that has
# Twinstream, by the same path on all hosts. The arguments are those of `twinstream spark-submit-args`. Memory stands
# in conf/spark-defaults.conf, as for every job. The driver runs here: a standalone cluster runs none in Python.
set -euo pipefail

: "${MASTER:?give the master of the cluster, spark://HOST:7077}"
: "${EXECUTORS:?give the number of executors}"
: "${CORES:?give the cores of each executor}"
: "${PYSPARK_PYTHON:?give the path of the Python that has Twinstream on all hosts}"

words=$(twinstream spark-submit-args "$@")
eval "arguments=($words)"
exec spark-submit --master "$MASTER" --executor-cores "$CORES" --total-executor-cores $((EXECUTORS * CORES)) \
  --conf "spark.sql.shuffle.partitions=$((EXECUTORS * CORES))" "${arguments[@]}"
