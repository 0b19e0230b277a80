-- Writes rules, and reads those that have changed.
--
-- KEYS[1]  hash: name of a rule -> 'version document'
-- KEYS[2]  sorted set: name -> version; and '' -> minus the sum of the versions modulo 2^52
-- ARGV     the version that the caller has read up to, the highest that it knows, and any
--          number of: name, condition, document. The condition is
--            0   none
--            N   the rule's version is N
--            -N  it is less than N: Redis has lost what the caller knows
-- reply    the highest version, the sum, 0 if a condition N failed, and the changed rules with
--          the lowest versions, at most 500: name, version, document
--
-- A version is this server's time in microseconds, or one more than all before. A rule that is
-- written again as it is keeps its version.

local rules, versions = KEYS[1], KEYS[2]

local function int(x)
  return string.format('%.0f', x)
end

local function versionOf(name)
  return tonumber(redis.call('ZSCORE', versions, name) or 0)
end

local function documentOf(name)
  return string.match(redis.call('HGET', rules, name) or '', '^%S+ (.*)$') or ''
end

local clock = redis.call('TIME')
local highest = tonumber(redis.call('ZRANGE', versions, -1, -1, 'WITHSCORES')[2] or 0)
local latest = math.max(highest, tonumber(ARGV[2]), tonumber(clock[1]) * 1000000 + tonumber(clock[2]))
local sum, held = -versionOf(''), 1

-- renew gives a rule its next version.
local function renew(name, was)
  latest = latest + 1
  highest = latest
  sum = (sum - was + latest) % 2 ^ 52
  redis.call('ZADD', versions, int(latest), name, int(-sum), '')
end

-- Rules that came or went without this script: of an earlier format, or by hand.
if redis.call('HLEN', rules) ~= math.max(redis.call('ZCARD', versions) - 1, 0) then
  redis.call('DEL', versions)
  sum = 0
  for _, name in ipairs(redis.call('HKEYS', rules)) do
    renew(name, 0)
  end
end

for i = 3, #ARGV, 3 do
  local name, condition, document = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local was, same = versionOf(name), documentOf(name) == document
  if condition < 0 and was < -condition or condition >= 0 and not same and (condition == 0 or was == condition) then
    renew(name, was)
    redis.call('HSET', rules, name, int(latest) .. ' ' .. document)
  elseif condition > 0 and not same then
    held = 0
  end
end

local reply = {highest, sum, held}
local changed = redis.call('ZRANGEBYSCORE', versions, '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, 500)
for i = 1, #changed, 2 do
  local name = changed[i]
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = name, tonumber(changed[i + 1]), documentOf(name)
end
return reply
