"""The matcher process: the loop, its checkpoints and its reports, and the supervision of such processes."""
