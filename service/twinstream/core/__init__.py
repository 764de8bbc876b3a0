"""The theory: deciding, explaining and remembering whether two streams are equivalent.

Pure: no I/O, no clock, no environment, no logging, no thread. It imports the standard library and
nothing else. It is fed and never fetches, and knows the sides as LEFT and RIGHT only.

Read in this order: `events` (what is compared), `lanes` (matching), `alignment` (what differs in a finite
piece), `scopes` (set aside, meet again, compare), `verdicts`, `overdue` (when no partner comes), and
`comparison`, which puts them together.
"""
