"""The theory: deciding, explaining and remembering whether two streams are equivalent.

Pure: no I/O, no clock, no environment, no logging, no thread. It imports the standard library and
nothing else. It is fed and never fetches, and knows the sides as LEFT and RIGHT only.

Read in this order: `events` and `relation` (what is compared), `matching` (which events are partners),
`diagnosis.scope` (a difference is set aside until both sides meet again), `pairing` (what differs in a finite
piece), `verdict`, `overdue` (when no partner comes), and `comparison`, which puts them together.
"""
