"""What no format takes for a value, and the reason that is given: the table beside this file.

Its records are written as Python writes bytes.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from twinstream.errors import DecodeError
from twinstream.spec.decode.formats import Decoder, avro, decoder_of
from twinstream.spec.file.model import Decode

FIELDS = [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]
VIEW = avro.Schema(json.dumps({"type": "record", "name": "View", "fields": FIELDS}))
DECODERS: dict[str, Decoder] = {
    **{name: decoder_of(Decode.model_validate({"format": name})) for name in ("json", "utf8", "msgpack")},
    "avro": avro.body_of(VIEW),
}
TABLE = Path(__file__).with_name("refused.txt").read_text(encoding="utf-8")
ROWS = [row.split(" | ") for row in TABLE.splitlines() if row]


@pytest.mark.parametrize(("name", "record", "said"), ROWS)
def test_what_is_no_value_is_refused_with_the_reason(name: str, record: str, said: str) -> None:
    with pytest.raises(DecodeError) as caught:
        DECODERS[name.strip()](eval(record))
    assert str(caught.value).startswith(said)
