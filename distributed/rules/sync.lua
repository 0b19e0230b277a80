-- Writes rules, and reads those that have changed.
--
-- KEYS[1]  hash: name of a rule -> 'version document'
-- KEYS[2]  sorted set: name -> version; and '' -> minus the sum of the versions modulo 2^52
-- ARGV     the version that the caller has read up to, the highest that it knows, the rank from which
--          versions are compared with the hash, the most rules to read, and any number of: name,
--          condition, document. The condition is
--            0   none
--            N   the rule's version is N
--            -N  it is less than N, which it gets: Redis has lost what the caller knows
-- reply    the highest version, the sum, 0 if a condition N failed, and the changed rules with
--          the lowest versions: name, version, document
--
-- A version is this server's time in microseconds, or one more than all before. A rule that is
-- written again as it is keeps its version. A rule that was written without this script, by hand or by an
-- earlier version, gets a new one: the hash is the truth. Each call compares 128 of them. A deleted rule is
-- forgotten after a week; the sum still has its version.

local rules, versions = KEYS[1], KEYS[2]
local WEEK = 7 * 86400 * 1000000

local function int(x)
  return string.format('%.0f', x)
end

local function versionOf(name)
  return tonumber(redis.call('ZSCORE', versions, name) or 0)
end

-- content is the version and the document of a rule as the hash has them.
local function content(name)
  local text = redis.call('HGET', rules, name) or ''
  local version, document = string.match(text, '^(%d+) (.*)$')
  return version, document or text
end

local function documentOf(name)
  local _, document = content(name)
  return document
end

local clock = redis.call('TIME')
local highest = tonumber(redis.call('ZRANGE', versions, -1, -1, 'WITHSCORES')[2] or 0)
local latest = math.max(highest, tonumber(ARGV[2]), tonumber(clock[1]) * 1000000 + tonumber(clock[2]))
local sum, held = -versionOf(''), 1

-- set writes a rule with a version, by default the next one.
local function set(name, was, document, version)
  latest = latest + 1
  version = version or latest
  highest = math.max(highest, version)
  sum = (sum - was + version) % 2 ^ 52
  redis.call('ZADD', versions, int(version), name, int(-sum), '')
  redis.call('HSET', rules, name, int(version) .. ' ' .. document)
end

local count = redis.call('ZCARD', versions)
local foreign = redis.call('HLEN', rules) ~= math.max(count - 1, 0)
local from = tonumber(ARGV[3]) % math.max(count, 1)
local some = redis.call('ZRANGE', versions, int(from), int(from + 127), 'WITHSCORES')
for i = 1, #some, 2 do
  local name, version = some[i], tonumber(some[i + 1])
  if name ~= '' then
    local written, document = content(name)
    if written ~= int(version) then
      foreign = true
    elseif document == '{"deleted":true}' and version < latest - WEEK and version < highest then
      redis.call('HDEL', rules, name)
      redis.call('ZREM', versions, name)
    end
  end
end

if foreign then
  local known, all = {}, redis.call('ZRANGE', versions, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    known[all[i]] = int(tonumber(all[i + 1]))
  end
  redis.call('DEL', versions)
  sum = 0
  for _, name in ipairs(redis.call('HKEYS', rules)) do
    local version, document = content(name)
    set(name, 0, document, version == known[name] and tonumber(version) or nil)
  end
end

for i = 5, #ARGV, 3 do
  local name, condition, document = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local was = versionOf(name)
  if condition < 0 then
    if was < -condition then
      set(name, was, document, -condition)
    end
  elseif documentOf(name) ~= document then
    if condition == 0 or was == condition then
      set(name, was, document)
    else
      held = 0
    end
  end
end

local reply = {highest, sum, held}
local changed = redis.call('ZRANGEBYSCORE', versions, '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[4])
for i = 1, #changed, 2 do
  local name = changed[i]
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = name, tonumber(changed[i + 1]), documentOf(name)
end
return reply
