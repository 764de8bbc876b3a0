"""The one error of this package: something that the stack needs could not be had."""


class EmbeddedError(Exception):
    """A part of the stack is missing, did not start, or died; the text says what to do."""
