-- Units that expire: the sliding log, where each unit is held for the length of
-- the window, and limits on units in flight, where it is held until it is given
-- back, or until it expires because its instance is gone.
--
-- The value is a sorted set: unit -> its expiry, in a log the instant of its charge, in
-- microseconds of this server's clock; or 'K-end', the end of a ban. A unit is Kmmm:id:number:
-- K is the kind of the limit, t for a log and u for units in flight, and mmm the mark of
-- the parameters (see span in prelude.lua). So each limit on a log counts the units of its own
-- period, whatever the parameters of others.
--
-- KEYS[i]  a set; it may occur more than once, entries run in order
-- ARGV     seven words for each key: op, a, b, c, id, d, mark of the parameters
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
-- A denial writes nothing, except that units from a clock that stepped back expire
-- as if they were new. The key expires slack milliseconds after its last
-- unit: a server that loses the processor for longer than a key has to live
-- would delete it, with the units just added, while the script still works on
-- it.

local slack = 500

local life = 0 -- from the score of a unit to its expiry

-- heal ends the units of a later clock as if they were new.
local function heal(key, long)
  local latest = now + long - life
  local late = redis.call('ZRANGEBYSCORE', key, '(' .. int(latest), '+inf')
  for _, name in ipairs(late) do
    redis.call('ZADD', key, int(latest), name)
  end
end

-- read returns when the last unit expires, or the ban ends; the flag; and MIXED or
-- 0. long is how long a unit lives.
local function read(key, long, mine)
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' then
    return 0, DENIED, 0
  elseif kind == 'zset' then
    local found = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
    local last, mark = tonumber(found[2]) + life, tonumber(string.match(found[1], '^' .. KIND .. '(%d%d%d):'))
    if not mark or mark > LAST_MARK then
      return 0, WRONG_TYPE, 0
    elseif last <= now then
      return 0, DENIED, 0
    elseif mark == mine or long == 0 then
      mark, kind = long, 0
    else
      mark, kind = LOG and long or math.max(long, span(mark)), MIXED
    end
    if mark > 0 and last > now + mark then
      heal(key, mark)
      last = now + mark
    end
    return last, DENIED, kind
  elseif kind ~= 'string' then
    return 0, WRONG_TYPE, 0
  end
  local ends = tonumber(string.match(redis.call('GET', key), '^' .. KIND .. '(%-%d+)$'))
  if not ends then
    return 0, WRONG_TYPE, 0
  elseif banned(ends) then
    return -ends, BANNED, 0
  end
  redis.call('DEL', key) -- a ban that has ended
  return 0, DENIED, 0
end

-- nth is when the nth unit to leave expires, from 0; negative n from the end.
local function nth(key, n)
  local found
  if n < 0 then
    found = redis.call('ZRANGE', key, n, n, 'WITHSCORES')
  else
    found = redis.call('ZRANGEBYSCORE', key, '(' .. int(now - life), '+inf', 'WITHSCORES', 'LIMIT', int(n), 1)
  end
  return found[2] and math.floor(tonumber(found[2])) + life or 0
end

local function name(mark, id, number)
  return KIND .. string.format('%03d', mark) .. ':' .. id .. ':' .. int(number)
end

local function expire(key)
  local ms = math.ceil((math.max(nth(key, -1), now) - now) / 1000) + slack
  if LOG then -- a longer period of other parameters may still count the units
    ms = math.max(ms, redis.call('PTTL', key))
  end
  redis.call('PEXPIRE', key, int(ms))
end

-- counted is how long the oldest unit may count.
local function counted(key, mine)
  local found = LOG and redis.call('ZRANGE', key, 0, 0)[1]
  local mark = tonumber(string.match(found or '', '^.(%d%d%d):') or mine)
  return mark == mine and life or math.max(life, span(mark))
end

local function add(key, id, from, units, long, mark)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', int(now - counted(key, mark)))
  for j = from, from + units - 1 do
    redis.call('ZADD', key, int(now + long - life), name(mark, id, j))
  end
  expire(key)
end

-- names returns the names of the units of id with numbers below d, the last one
-- first. Some may not exist any more.
local function names(key, id, d, held, mark)
  local found = {}
  if d <= held then
    for j = d - 1, 0, -1 do
      found[#found + 1] = name(mark, id, j)
    end
    return found
  end
  local numbers = {}
  for _, unit in ipairs(redis.call('ZRANGE', key, 0, -1)) do -- fewer than d
    local of, j = string.match(unit, '^.%d%d%d:(.*):(%d+)$')
    if of == id and tonumber(j) < d then
      found[#found + 1] = unit
      numbers[unit] = tonumber(j)
    end
  end
  table.sort(found, function(x, y) return numbers[x] > numbers[y] end)
  return found
end

-- replace removes the oldest units and gives the others new names.
local function replace(key, id, oldest, mark)
  local units = redis.call('ZRANGEBYSCORE', key, '(' .. int(now - life), '+inf', 'WITHSCORES')
  redis.call('DEL', key)
  for j = oldest * 2 + 1, #units, 2 do
    redis.call('ZADD', key, units[j + 1], name(mark, id .. ':void', j))
  end
end

for i = 1, #KEYS do
  local key, at = KEYS[i], (i - 1) * 7
  local op = number(ARGV[at + 1])
  local a, b, c = number(ARGV[at + 2]), number(ARGV[at + 3]), number(ARGV[at + 4])
  local id, d = ARGV[at + 5], number(ARGV[at + 6])
  local mark = number(ARGV[at + 7])
  life = LOG and a or 0
  local last, flag, mixed = read(key, a, mark)
  local count, next, enough = 0, 0, 0
  if flag == DENIED and op == 1 then
    count = redis.call('ZCARD', key)
  elseif flag == DENIED then
    count = redis.call('ZCOUNT', key, '(' .. int(now - life), '+inf')
  end
  if flag == WRONG_TYPE or (flag == BANNED and op ~= 3 and op ~= 4) then
    count = 0
  elseif op == 0 then
    local after = count
    if count + c <= b then
      flag, after = ADMITTED, count + c
      if c > 0 then
        add(key, id, 0, c, a, mark)
      end
    else
      enough = nth(key, count + c - b - 1)
    end
    next = nth(key, math.max(after - b, 0))
  elseif op == 1 then
    for _, unit in ipairs(names(key, id, d, count, mark)) do
      if c > 0 then
        c = c - redis.call('ZREM', key, unit)
      end
    end
  elseif op == 2 then
    add(key, id, d, math.min(c, math.max(b - count, 0)), a, mark)
  elseif op == 6 then
    local units = math.min(c, b)
    if c > b - count then
      replace(key, id, math.min(units, math.max(count + units - b, 0)), mark)
      id = id .. ':new'
    end
    add(key, id, d, units, a, mark)
  elseif op == 3 then
    redis.call('DEL', key)
  elseif op == 4 then
    last = math.max(last, now + a)
    put(key, KIND .. '-' .. int(last), last - now)
  elseif op == 5 then
    for _, unit in ipairs(names(key, id, d, count, mark)) do
      local ends = tonumber(redis.call('ZSCORE', key, unit) or 0)
      if ends > now then -- the units of an expired one may be taken again
        redis.call('ZADD', key, int(now + a), unit)
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
  reply[#reply + 1] = flag + mixed
end
return reply
