"""The matcher as a Spark Structured Streaming job: the same worker as in the service, one for each shard.

    both topics ─► deal (by key) ─► one worker a shard, its checkpoint in Spark's state ─► results topic

A job carries what one machine cannot, or topics that are partitioned differently. It deals events out by
key (`core.arrivals.sharding`), so equal and dependent events meet in one shard whatever their partitions.
"""
