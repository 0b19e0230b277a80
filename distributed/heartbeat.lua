-- The registry of the instances that share the limits of a prefix, or of a service.
-- A heartbeat takes time in proportion to the logarithm of their number.
--
-- KEYS[1]  sorted set: instance -> its expiry, in ms of this server's clock
-- KEYS[2]  sorted set: the same instances in the order of their names
-- KEYS[3]  the largest number that was known in the last minutes
-- ARGV     op, instance, ms to live, 1 if the instance has been counted by all
--            0 heartbeat
--            3 leave
-- reply    now (us), the number of instances, the number of instances that sort
--          before this one, the largest number that was known (0 for none)

local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000000 + tonumber(t[2])
local ms = math.floor(now / 1000)
local live, names, largest = KEYS[1], KEYS[2], KEYS[3]
local id, keep = ARGV[2], 600000

-- A few at a time: each heartbeat removes more than one can add.
local gone = redis.call('ZRANGEBYSCORE', live, '-inf', string.format('%.0f', ms), 'LIMIT', 0, 100)
for _, name in ipairs(gone) do
  redis.call('ZREM', live, name)
  redis.call('ZREM', names, name)
end
-- The clock stepped back: no instance lives longer than this one.
for _, name in ipairs(redis.call('ZRANGEBYSCORE', live, string.format('(%.0f', ms + tonumber(ARGV[3])), '+inf', 'LIMIT', 0, 100)) do
  redis.call('ZADD', live, string.format('%.0f', ms + tonumber(ARGV[3])), name)
end
if tonumber(ARGV[1]) == 0 then
  redis.call('ZADD', live, string.format('%.0f', ms + tonumber(ARGV[3])), id)
  redis.call('ZADD', names, 0, id)
  redis.call('PEXPIRE', live, ARGV[3])
  redis.call('PEXPIRE', names, ARGV[3])
else
  redis.call('ZREM', live, id)
  redis.call('ZREM', names, id)
end
local count = redis.call('ZCARD', live)
local known = tonumber(redis.call('GET', largest)) or 0
if ARGV[4] == '1' and (count > known or (count == known and redis.call('PTTL', largest) < keep / 2)) then
  redis.call('SET', largest, count, 'PX', keep)
end
return {now, count, redis.call('ZRANK', names, id) or 0, known}
