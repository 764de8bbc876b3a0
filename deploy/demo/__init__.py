"""The whole product on one machine: both versions of the advertising job, compared while they run.

`folder` keeps the data of a run and clears them up, `parts` knows the processes and their order, `service`
asks the service over HTTP as any release tool would, `outcome` turns its answers into one result, `display`
shows them.
"""
