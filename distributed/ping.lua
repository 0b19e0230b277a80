-- Runs each command that a script uses, for a Ping that reports missing rights, and finds out whether
-- a proxy runs a script on the server of its first key.
--
-- KEYS     any number; the first one lives ten seconds
-- ARGV     op  0 run the commands on the first key
--              1 put the first key
--              2 count only
-- reply    now (us), the number of keys that are there

-- call names the command that the server rejects.
local function call(command, ...)
  local result = redis.pcall(command, ...)
  if type(result) == 'table' and result.err then
    error(command .. ': -' .. result.err, 0)
  end
  return result
end

local now, key = call('TIME'), KEYS[1]
if ARGV[1] == '0' then
  call('DEL', key)
  call('ZADD', key, 1, 'a')
  call('ZCARD', key)
  call('ZRANGE', key, 0, 0)
  call('ZRANGEBYSCORE', key, 0, 1)
  call('ZRANK', key, 'a')
  call('ZSCORE', key, 'a')
  call('ZREM', key, 'b')
  call('ZREMRANGEBYSCORE', key, 0, 1)
  call('DEL', key)
  call('HSET', key, 'a', 1)
  call('HGET', key, 'a')
  call('HMGET', key, 'a')
  call('HDEL', key, 'a')
  call('EXISTS', key)
  call('SET', key, 1)
  call('TYPE', key)
  call('PEXPIRE', key, 10000)
  call('PTTL', key)
elseif ARGV[1] == '1' then
  call('SET', key, 1, 'PX', 10000)
end
local there = 0
for _, k in ipairs(KEYS) do
  there = there + (call('GET', k) and 1 or 0)
end
return {tonumber(now[1]) * 1000000 + tonumber(now[2]), there}
