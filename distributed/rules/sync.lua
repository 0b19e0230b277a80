-- Writes rules, and reads those that have changed.
--
-- KEYS[1]  hash: name of a rule -> 'version document'
-- KEYS[2]  sorted set: name -> version; and '' -> minus the sum of the versions modulo 2^52
-- ARGV     the version that the caller has read up to, the highest that it knows, and any
--          number of: name, condition, document. The condition is
--            0   none
--            N   the rule's version is N
--            -N  it is less than N, which it gets: Redis has lost what the caller knows
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

-- set gives a rule a version, by default the next one.
local function set(name, was, version)
  latest = latest + 1
  version = version or latest
  highest = math.max(highest, version)
  sum = (sum - was + version) % 2 ^ 52
  redis.call('ZADD', versions, int(version), name, int(-sum), '')
  return int(version)
end

-- Rules that came or went without this script: of an earlier format, or by hand.
if redis.call('HLEN', rules) ~= math.max(redis.call('ZCARD', versions) - 1, 0) then
  redis.call('DEL', versions)
  sum = 0
  for _, name in ipairs(redis.call('HKEYS', rules)) do
    set(name, 0)
  end
end

for i = 3, #ARGV, 3 do
  local name, condition, document = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local was = versionOf(name)
  if condition < 0 then
    if was < -condition then
      redis.call('HSET', rules, name, set(name, was, -condition) .. ' ' .. document)
    end
  elseif documentOf(name) ~= document then
    if condition == 0 or was == condition then
      redis.call('HSET', rules, name, set(name, was) .. ' ' .. document)
    else
      held = 0
    end
  end
end

local reply = {highest, sum, held}
local changed = redis.call('ZRANGEBYSCORE', versions, '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, 500)
for i = 1, #changed, 2 do
  local name = changed[i]
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = name, tonumber(changed[i + 1]), documentOf(name)
end
return reply
