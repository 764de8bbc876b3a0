"""The drill: a marked difference planted into a copy of a comparison, and its way to the alarm.

Everything here is pure. `copies` holds what is copied, `editing` changes one field of a record, `planting`
plans the difference and has the offline comparison say that it is found and nothing else is, `shadow` is the
comparison of the copies, `writing` the order in which these are written, `signals` what the way of the alarm
consists of, and `alarm_path` what was seen of it when.
"""
