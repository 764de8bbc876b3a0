"""The theory: decides whether two streams are equivalent, explains the differences, and keeps the state.

Pure: no I/O, no clock, no environment, no logging, no thread. It imports the standard library and
`errors`, nothing else. It is fed and never fetches, and knows the sides as LEFT and RIGHT only.

Read in this order: `events` and `relation` (what is compared), `matching` (which events are partners),
`diagnosis.scope` (a difference is set aside until both sides meet again), `pairing` (which events of two
finite pieces differ), `verdict`, `overdue` (when no partner comes), and `comparison`, which composes them.
"""
