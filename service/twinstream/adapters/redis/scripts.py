"""The scripts that Redis runs as one step for `twinstream.adapters.redis.store`. None takes long.

Their keys begin with ``owner, lease, epoch, checkpoint, staged``, and their arguments with ``token, length of
the lease in milliseconds, the owner's epoch, sequence``. Each may be repeated without further effect.
"""

from __future__ import annotations

# The third argument is an owner known to be gone: its lease keeps nobody out. With a fourth one a store that
# is empty, or has an older checkpoint than that one, is left to the owner that was there a moment ago: it
# writes all of its state again, if it lives.
ACQUIRE = """
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] and holder ~= ARGV[3] then return 0 end
if ARGV[4] ~= '' then
  local sequence = tonumber(redis.call('HGET', KEYS[4], 'sequence') or 0) or 0
  if redis.call('EXISTS', KEYS[1]) == 0 or sequence < tonumber(ARGV[4]) then return -1 end
end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  redis.call('INCR', KEYS[3])
  redis.call('SET', KEYS[1], ARGV[1])
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return tonumber(redis.call('GET', KEYS[3]) or 1)
"""

RELEASE = """
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
"""

_FENCE = """
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 'fenced' end
"""

# A store without an owner is taken back, with an epoch not below that in the names of chunks.
_PROLONG = """
if not owner then
  redis.call('SET', KEYS[1], ARGV[1])
  local epoch = tonumber(redis.call('GET', KEYS[3]) or 0)
  if epoch < tonumber(ARGV[3]) then redis.call('SET', KEYS[3], ARGV[3]) end
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
"""

# A save of this owner may arrive after a newer one. A delta needs its base: its fifth argument.
_GUARD = """
local sequence = redis.call('HGET', KEYS[4], 'sequence')
if sequence == ARGV[4] then return 'done' end
local own = redis.call('HGET', KEYS[4], 'epoch') == ARGV[3]
if own and tonumber(sequence) > tonumber(ARGV[4]) then return 'outdated' end
if ARGV[5] ~= '' and sequence ~= ARGV[5] then return 'outdated' end
"""

BEGIN = _FENCE + _PROLONG + _GUARD + "return 'go on'"

# The name comes first: a staged part without a name in the set would never be swept.
_NAME = """
if redis.call('HGET', KEYS[4], 'sequence') == ARGV[4] then return 'done' end
redis.call('SADD', KEYS[5], KEYS[6])
"""

STAGE_CHUNK = _FENCE + _PROLONG + _NAME + "redis.call('SET', KEYS[6], ARGV[5]) return 'go on'"

STAGE_REPORTS = f"""{_FENCE}{_PROLONG}{_NAME}
redis.call('DEL', KEYS[6])
redis.call('HSET', KEYS[6], unpack(ARGV, 5))
return 'go on'
"""

_PRESENT = """
local present = true
for i = 6, #KEYS do present = present and redis.call('EXISTS', KEYS[i]) == 1 end
"""

# A fail-over in the middle of a save may have lost staged parts, or the base of the delta.
FLIP = f"""{_FENCE}{_PROLONG}{_GUARD}{_PRESENT}
if not present then return 'incomplete' end
redis.call('DEL', KEYS[4])
redis.call('HSET', KEYS[4], 'sequence', ARGV[4], 'epoch', ARGV[3], 'head', ARGV[6], 'bodies', ARGV[7],
  'reports', ARGV[8])
return 'done'
"""

RENEW = f"""{_FENCE}{_PROLONG}{_PRESENT}
return present and redis.call('HGET', KEYS[4], 'sequence') == ARGV[4] and 'held' or 'lost'
"""

# After a fail-over to an older state other names are live: names read before it must not be swept.
SWEEP = f"""{_FENCE}
if (redis.call('HGET', KEYS[4], 'sequence') or '') ~= ARGV[4] then return 'moved' end
redis.call('UNLINK', unpack(KEYS, 6))
redis.call('SREM', KEYS[5], unpack(KEYS, 6))
return 'done'
"""

CLEAR = f"""{_FENCE}
if (redis.call('HGET', KEYS[4], 'sequence') or '') ~= ARGV[4] then return 'outdated' end
redis.call('DEL', KEYS[4])
return 'done'
"""
