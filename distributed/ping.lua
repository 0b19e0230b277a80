-- Runs each command that a script uses, for a Ping that reports missing rights.
--
-- KEYS     any number; those of op 0 live ten seconds
-- ARGV     op  0 the commands, on the first key, which is there afterwards
--              1 how many of the keys are there
-- reply    now (us), the number of keys that are there

local now, key = redis.call('TIME'), KEYS[1]
if ARGV[1] == '0' then
  redis.call('DEL', key)
  redis.call('ZADD', key, 1, 'a')
  redis.call('ZCARD', key)
  redis.call('ZRANGE', key, 0, 0)
  redis.call('ZRANGEBYSCORE', key, 0, 1)
  redis.call('ZRANK', key, 'a')
  redis.call('ZSCORE', key, 'a')
  redis.call('ZREM', key, 'b')
  redis.call('ZREMRANGEBYSCORE', key, 0, 1)
  redis.call('SET', key, 1)
  redis.call('TYPE', key)
  redis.call('PEXPIRE', key, 10000)
  redis.call('PTTL', key)
end
local there = 0
for _, k in ipairs(KEYS) do
  there = there + (redis.call('GET', k) and 1 or 0)
end
return {tonumber(now[1]) * 1000000 + tonumber(now[2]), there}
