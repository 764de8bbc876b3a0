"""The drill: a marked difference planted into a copy of a comparison, and its way to the alarm.

Everything here is pure. `copies` holds what is copied, `editing` changes one field of a record, `planting`
plans the difference and has the offline comparison say that it is found and nothing else is, `shadow` is the
comparison of the copy, `signals` what the alarm's way consists of, and `course` what was seen of it when.
"""
