"""Kafka, Redis and Spark as real processes of this machine, without containers.

The demo, the tests and the load tests all start their stack here, so that what is measured and tested is what
is shown. `jars`, `gotools` and `prerequisites` fetch what is needed, once, `processes` starts programs that
cannot outlive us, `kafka`, `redis_server` and `spark` know one program each, and `stack` puts a broker and a
store together.
"""
