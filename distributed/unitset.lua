-- Units that expire: the sliding log, where each unit is held for the length of
-- the window, and limits on units in flight, where it is held until it is given
-- back, or until it expires because its instance is gone.
--
-- The value is a sorted set: unit -> its expiry, in microseconds of this
-- server's clock; or '-end', the end of a ban.
--
-- KEYS[i]  a set; it may occur more than once, entries run in order
-- ARGV     six words for each key: op, a, b, c, id, d
--            0 acquire  a = time to live  b = limit  c = units  id = of the units
--            1 refund   c = units  id  d = the number above theirs
--            2 force    a = time to live  b = most that are counted  c = units
--                       id  d = the number of the first
--            6 replace  the same; units that do not fit replace the oldest, and
--                       then none of these and of those before can be given back
--            3 reset
--            4 ban      a = how long
--            5 renew    a = time to live  id  d = the number above theirs
-- reply    now, then five integers for each key: units held before; when one unit
--          more is free, when enough are for the units asked for and when all
--          are (or the end of the ban); flag
--
-- A denial writes nothing. The key expires slack milliseconds after its last
-- unit: a server that loses the processor for longer than a key has to live
-- would delete it, with the units just added, while the script still works on
-- it.

local slack = 500

local function read(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'zset' or kind == 'none' then
    return 0, DENIED
  elseif kind ~= 'string' then
    return 0, WRONG_TYPE
  end
  local ends = tonumber(string.match(redis.call('GET', key), '^%-%d+$'))
  if not ends then
    return 0, WRONG_TYPE
  elseif banned(ends) then
    return -ends, BANNED
  end
  redis.call('DEL', key) -- a ban that has ended
  return 0, DENIED
end

-- nth is when the nth unit to leave expires, from 0; negative n from the end.
local function nth(key, n)
  local found
  if n < 0 then
    found = redis.call('ZRANGE', key, n, n, 'WITHSCORES')
  else
    found = redis.call('ZRANGEBYSCORE', key, '(' .. int(now), '+inf', 'WITHSCORES', 'LIMIT', int(n), 1)
  end
  return math.floor(tonumber(found[2] or 0))
end

local function expire(key)
  redis.call('PEXPIRE', key, int(math.ceil((math.max(nth(key, -1), now) - now) / 1000) + slack))
end

local function add(key, id, from, units, long)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', int(now))
  for j = from, from + units - 1 do
    redis.call('ZADD', key, int(now + long), id .. ':' .. int(j))
  end
  expire(key)
end

-- names returns the names of the units of id with numbers below d, the last one
-- first. Some may not exist any more.
local function names(key, id, d, held)
  local found = {}
  if d <= held then
    for j = d - 1, 0, -1 do
      found[#found + 1] = id .. ':' .. int(j)
    end
    return found
  end
  local numbers = {}
  for _, name in ipairs(redis.call('ZRANGE', key, 0, -1)) do -- fewer than d
    local of, j = string.match(name, '^(.*):(%d+)$')
    if of == id and tonumber(j) < d then
      found[#found + 1] = name
      numbers[name] = tonumber(j)
    end
  end
  table.sort(found, function(x, y) return numbers[x] > numbers[y] end)
  return found
end

-- replace removes the oldest units and gives the others new names.
local function replace(key, id, oldest)
  local units = redis.call('ZRANGEBYSCORE', key, '(' .. int(now), '+inf', 'WITHSCORES')
  redis.call('DEL', key)
  for j = oldest * 2 + 1, #units, 2 do
    redis.call('ZADD', key, units[j + 1], id .. ':void:' .. int(j))
  end
end

for i = 1, #KEYS do
  local key, at = KEYS[i], (i - 1) * 6
  local op = tonumber(ARGV[at + 1])
  local a, b, c = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local id, d = ARGV[at + 5], tonumber(ARGV[at + 6])
  local last, flag = read(key)
  local count, next, enough = 0, 0, 0
  if flag == DENIED then
    count = redis.call('ZCOUNT', key, '(' .. int(now), '+inf')
    if count > 0 then
      last = nth(key, -1)
    end
  end
  if flag == WRONG_TYPE or (flag == BANNED and op ~= 3 and op ~= 4) then
    count = 0
  elseif op == 0 then
    local after = count
    if count + c <= b then
      flag, after = ADMITTED, count + c
      if c > 0 then
        add(key, id, 0, c, a)
      end
    else
      enough = nth(key, count + c - b - 1)
    end
    next = nth(key, math.max(after - b, 0))
  elseif op == 1 then
    for _, name in ipairs(names(key, id, d, count)) do
      if c > 0 then
        c = c - redis.call('ZREM', key, name)
      end
    end
  elseif op == 2 then
    add(key, id, d, math.min(c, math.max(b - count, 0)), a)
  elseif op == 6 then
    local units = math.min(c, b)
    if c > b - count then
      replace(key, id, math.min(units, math.max(count + units - b, 0)))
      id = id .. ':new'
    end
    add(key, id, d, units, a)
  elseif op == 3 then
    redis.call('DEL', key)
  elseif op == 4 then
    last = math.max(last, now + a)
    put(key, '-' .. int(last), last - now)
  elseif op == 5 then
    for _, name in ipairs(names(key, id, d, count)) do
      local ends = tonumber(redis.call('ZSCORE', key, name) or 0)
      if ends > now then -- the units of an expired one may be taken again
        redis.call('ZADD', key, int(now + a), name)
      end
    end
    if count > 0 then
      expire(key)
    end
  end
  reply[#reply + 1] = count
  reply[#reply + 1] = next
  reply[#reply + 1] = enough
  reply[#reply + 1] = last
  reply[#reply + 1] = flag
end
return reply
