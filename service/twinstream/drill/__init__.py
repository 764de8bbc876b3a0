"""The drill: plants a marked difference into a copy of a comparison, and follows it to the alarm.

Everything here is pure. `copies` selects the records to copy, `editing` changes one field of a record,
`planting` plans the difference and has the offline comparison find it and nothing else, `shadow` is
the comparison of the copies, `writing` the order in which they are written, `signals` the signals on the way
to the alarm, and `alarm_path` records when each was seen.
"""
