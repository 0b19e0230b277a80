-- Units that expire: the sliding log, where each unit is held for the length of
-- the window, and limits on units in flight, where it is held until it is given
-- back, or until it expires because its instance is gone.
--
-- The value is a sorted set: lease -> its expiry, in a log the instant of its charge, in
-- microseconds of this server's clock; and 'Ksum:units' at 0, the units of all leases, expired ones
-- included. Or it is 'K-end', the end of a ban. A lease is Kmmm:id:last:units: K is the kind of the
-- limit, w for a log and v for units in flight, mmm the mark of the parameters (see span in
-- prelude.lua), and last the number of its last unit. A lease that was settled upwards in a log
-- has several members. So a decision takes time in proportion to the leases that it adds, removes
-- or waits for, whatever their units; and each limit on a log counts its own period.
--
-- KEYS[i]  a set; it may occur more than once, entries run in order
-- ARGV     seven words for each key: op, a, b, c, id, d, mark of the parameters
--            0 acquire  a = time to live  b = limit  c = units  id = of the units
--            1 refund   c = units  id  d = all units of the lease
--            2 force    a = time to live  b = most that are counted  c = units
--                       id  d = the units of the lease before; in a log those keep their instants
--            3 reset
--            4 ban      a = how long
--            7 peek     as acquire, but charges nothing
--            5 renew    a = time to live  id  d = all units of the lease; if it is missing it
--                       is put back
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

local life = 0 -- from the score of a lease to its expiry

local function name(mark, id, last, units)
  return KIND .. string.format('%03d', mark) .. ':' .. id .. ':' .. int(last) .. ':' .. int(units)
end

-- parts returns the mark, id, last and units of a lease.
local function parts(lease)
  local mark, id, last, units = string.match(lease, '^.(%d%d%d):(.*):(%d+):(%d+)$')
  return tonumber(mark), id, tonumber(last), tonumber(units)
end

-- sum returns the units of all leases.
local function sum(key)
  local found = redis.call('ZRANGE', key, 0, 0)[1]
  return tonumber(string.match(found or '', '^.sum:(%d+)$') or 0)
end

local function set_sum(key, was, is)
  redis.call('ZREM', key, KIND .. 'sum:' .. int(was))
  if is > 0 then
    redis.call('ZADD', key, 0, KIND .. 'sum:' .. int(is))
  end
end

-- before returns the units of the leases with scores up to most.
local function before(key, most)
  local units = 0
  for _, lease in ipairs(redis.call('ZRANGEBYSCORE', key, '(0', int(most))) do
    local _, _, _, n = parts(lease)
    units = units + n
  end
  return units
end

-- heal ends the units of a later clock as if they were new.
local function heal(key, long)
  local latest = now + long - life
  local late = redis.call('ZRANGEBYSCORE', key, '(' .. int(latest), '+inf')
  for _, lease in ipairs(late) do
    redis.call('ZADD', key, int(latest), lease)
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

-- nth is when more than n units have left.
local function nth(key, n)
  local from, many = 0, 16
  while true do
    local found = redis.call('ZRANGEBYSCORE', key, '(' .. int(now - life), '+inf', 'WITHSCORES', 'LIMIT', from, many)
    for i = 1, #found, 2 do
      local _, _, _, units = parts(found[i])
      n = n - units
      if n < 0 then
        return math.floor(tonumber(found[i + 1])) + life
      end
    end
    if #found < 2 * many then
      return 0
    end
    from, many = from + many, 2 * many
  end
end

local function expire(key)
  local found = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
  local ms = math.ceil(math.max(math.floor(tonumber(found[2] or 0)) + life - now, 0) / 1000) + slack
  if LOG then -- a longer period of other parameters may still count the units
    ms = math.max(ms, redis.call('PTTL', key))
  end
  redis.call('PEXPIRE', key, int(ms))
end

-- counted is how long the oldest lease may count.
local function counted(key, mine)
  local found = LOG and redis.call('ZRANGE', key, 1, 1)[1]
  local mark = found and parts(found) or mine
  return mark == mine and life or math.max(life, span(mark))
end

local function add(key, id, last, units, long, mark)
  local most, was = now - counted(key, mark), sum(key)
  local gone = before(key, most)
  if gone > 0 then
    redis.call('ZREMRANGEBYSCORE', key, '(0', int(most))
  end
  if units > 0 then
    redis.call('ZADD', key, int(now + long - life), name(mark, id, last, units))
  end
  set_sum(key, was, was - gone + units)
  expire(key)
end

-- leases returns the members of a lease of d units, the last one first. Some may not exist
-- any more.
local function leases(key, id, d, mark)
  local one = name(mark, id, d, d)
  if redis.call('ZSCORE', key, one) then
    return {one}
  end
  local found, last = {}, {}
  for _, lease in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    local _, of, number = parts(lease)
    if of == id and number <= d then
      found[#found + 1] = lease
      last[lease] = number
    end
  end
  table.sort(found, function(x, y) return last[x] > last[y] end)
  return found
end

-- take gives c of the d units of a lease back, the last ones first.
local function take(key, id, d, c, mark)
  local was, taken = sum(key), 0
  for i, lease in ipairs(leases(key, id, d, mark)) do
    local of, _, last, units = parts(lease)
    if i == 1 and c < d and last < d then
      break -- done before
    end
    local given, at = math.min(c - taken, units), redis.call('ZSCORE', key, lease)
    if given > 0 then
      redis.call('ZREM', key, lease)
      taken = taken + given
    end
    if given > 0 and given < units then
      redis.call('ZADD', key, at, name(of, id, last - given, units - given))
    end
  end
  if taken > 0 then
    set_sum(key, was, was - taken)
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
  if flag == DENIED and op ~= 1 then
    count = sum(key) - before(key, now - life)
  end
  if flag == WRONG_TYPE or (flag == BANNED and op ~= 3 and op ~= 4) then
    count = 0
  elseif op == 0 or op == 7 then
    local after = count
    if count + c <= b then
      flag = ADMITTED
      if c > 0 and op == 0 then
        after = count + c
        add(key, id, c, c, a, mark)
      end
    else
      enough = nth(key, count + c - b - 1)
    end
    next = nth(key, math.max(after - b, 0))
  elseif op == 1 then
    take(key, id, d, c, mark)
  elseif op == 2 then
    c = math.min(c, math.max(b - count, 0))
    if not LOG and redis.call('ZREM', key, name(mark, id, d, d)) == 1 then -- one member for all its units
      local was = sum(key)
      set_sum(key, was, was - d)
      c = c + d
      d = 0
    end
    add(key, id, d + c, c, a, mark)
  elseif op == 3 then
    redis.call('DEL', key)
  elseif op == 4 then
    last = math.max(last, now + a)
    put(key, KIND .. '-' .. int(last), last - now)
  elseif op == 5 then
    if redis.call('ZSCORE', key, name(mark, id, d, d)) then
      redis.call('ZADD', key, int(now + a), name(mark, id, d, d))
      expire(key)
    else
      add(key, id, d, d, a, mark)
    end
  end
  reply[#reply + 1] = count
  reply[#reply + 1] = next
  reply[#reply + 1] = enough
  reply[#reply + 1] = last
  reply[#reply + 1] = flag + mixed
end
return reply
