-- The registry of the instances that share the limits of a prefix.
--
-- KEYS[1]  sorted set: instance -> its expiry, in ms of this server's clock
-- ARGV     three for the key: op, instance, ms to live
--            0 heartbeat
--            3 leave
-- reply    now (us), the number of instances, and the number of instances that
--          sort before this one

local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000000 + tonumber(t[2])
local ms = math.floor(now / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', ms))
if tonumber(ARGV[1]) == 0 then
  redis.call('ZADD', KEYS[1], string.format('%.0f', ms + tonumber(ARGV[3])), ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
else
  redis.call('ZREM', KEYS[1], ARGV[2])
end
local rank = 0
local all = redis.call('ZRANGE', KEYS[1], 0, -1)
for i = 1, #all do
  if all[i] < ARGV[2] then
    rank = rank + 1
  end
end
return {now, #all, rank}
