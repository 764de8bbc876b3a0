"""The drill: plants a marked difference into a copy of a comparison, and follows it to the alarm.

`run` is the drill from beginning to end, and removes what drills have left that were killed. What it
decides is pure: `copies` selects the records to copy, `editing` changes one field of a record, `planting`
plans the difference and has the offline comparison find it and nothing else, `shadow` is the comparison of
the copies and the order in which they are written, and `signals` are the signals on the way to the alarm.
`shadow_service` runs the service of the copies, and `alarm` asks the servers outside.
"""
