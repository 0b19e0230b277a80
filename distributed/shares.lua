-- Shares: children of one token bucket, with floors. See decide.Shares.
--
-- The constants before this are the parameters of the limit: HASH names them, a unit has
-- PERIOD parts, REST is the refill of the common bucket in a microsecond, COMMON the
-- depth of the common bucket, and FLOORS and DEPTHS are the rates and depths of the
-- children.
--
-- The value is 's' and HASH:last:voided:common:own...: the parts that the buckets lack at the
-- instant last. Charges with a lower voided cannot be refunded. With a negative last it is
-- the end of a ban, which has no buckets. No key means full. The value of other parameters is
-- left alone.
--
-- KEYS[i]  the buckets; a key may occur more than once, entries run in order
-- ARGV     seven integers for each key: op, child, a, b, c, d, e
--            0 acquire  a = units (0 peeks)
--            1 refund   a = when they were charged  b = voided at the charge  c = parts that
--                       the child's own bucket paid  d = units charged  e = units to keep
--            2 force    a = units; charges up to the largest debt
--            3 reset
--            4 ban      child = how long
-- reply    now, then for each key: voided (or the end of the ban), the parts that the common
--          bucket and the children's own lacked before, flag
--
-- A denial writes nothing, except that a later instant, from a clock that stepped back, becomes the
-- current one. A key lives until its buckets are full, and with a voided, until
-- the charges from before that have drained. So does a ban, because it forgets the debt.

local total = REST
for i = 1, #FLOORS do
  total = total + FLOORS[i]
end

-- inflow is the refill of the common bucket in dt.
local function inflow(own, dt)
  local sum = REST * dt
  for i = 1, #FLOORS do
    sum = sum + math.max(FLOORS[i] * dt - own[i], 0)
  end
  return sum
end

local stepped = false -- the clock has stepped back since the key was written that was read last

-- read returns the buckets now, voided, the flag and the end of a ban.
local function read(key)
  stepped = false
  local s = {common = 0}
  for i = 1, #FLOORS do
    s[i] = 0
  end
  local v = get(key)
  if not v then
    return s, 0, DENIED, 0
  end
  local hash, last, voided, rest = string.match(v, '^s(%x+):(%-?%d+):(%d+)([:%d]*)$')
  last, voided = tonumber(last), tonumber(voided)
  if hash ~= HASH then
    return s, 0, WRONG_TYPE, 0
  elseif banned(last) then
    return s, voided, BANNED, -last
  end
  local i = 0
  for lack in string.gmatch(rest, '%d+') do
    s[i] = tonumber(lack)
    i = i + 1
  end
  stepped = last > now
  local dt = math.max(now - last, 0)
  s.common = math.max((s[0] or 0) - inflow(s, dt), 0)
  for k = 1, #FLOORS do
    s[k] = math.max(s[k] - FLOORS[k] * dt, 0)
  end
  return s, voided, DENIED, 0
end

-- until_full is how long it takes until all buckets are full.
local function until_full(s)
  local dt = 0
  for i = 1, #FLOORS do
    if s[i] > 0 then
      dt = math.max(dt, math.ceil(s[i] / FLOORS[i]))
    end
  end
  return dt + math.ceil(math.max(s.common - inflow(s, dt), 0) / total)
end

-- longest is how long the buckets take to fill at most.
local function longest()
  local dt = 0
  for i = 1, #FLOORS do
    if FLOORS[i] > 0 then
      dt = math.max(dt, math.ceil(DEPTHS[i] / FLOORS[i]))
    end
  end
  return dt + math.ceil(2 * COMMON / total)
end

-- kept is how much longer a key must live for its voided.
local function kept(key, voided)
  return voided > 0 and math.min(redis.call('PTTL', key) * 1000, longest()) or 0
end

local function write(key, s, voided, long)
  local text = 's' .. HASH .. ':' .. int(now) .. ':' .. int(voided) .. ':' .. int(s.common)
  for i = 1, #FLOORS do
    text = text .. ':' .. int(s[i])
  end
  local dt = math.max(until_full(s), kept(key, voided), long)
  if dt > 0 then
    put(key, text, dt)
  else
    redis.call('DEL', key)
  end
end

local function ban(key, voided, ends)
  put(key, 's' .. HASH .. ':-' .. int(ends) .. ':' .. int(voided), math.max(ends - now, kept(key, voided)))
end

-- take charges parts to the child's own bucket and the rest to the common one.
local function take(s, child, parts)
  local own = math.min(parts, DEPTHS[child] - s[child])
  s[child] = s[child] + own
  s.common = s.common + parts - own
end

-- paid returns the parts that the own bucket and the common one have paid for
-- units.
local function paid(units, first)
  local parts = units * PERIOD
  return math.min(parts, first), math.max(parts - first, 0)
end

local function refund(s, child, at, first, units, keep)
  local elapsed = math.max(now - at, 0)
  local own, common = paid(units, first)
  local keep_own, keep_common = paid(keep, first)
  local to_own = math.min(own - keep_own, math.max(own - FLOORS[child] * elapsed, 0), s[child])
  local to_common = math.min(common - keep_common, math.max(common - total * elapsed, 0), s.common)
  s[child], s.common = s[child] - to_own, s.common - to_common
  return to_own + to_common > 0
end

for i = 1, #KEYS do
  local key, at = KEYS[i], (i - 1) * 7
  local op, child, a = number(ARGV[at + 1]), number(ARGV[at + 2]), number(ARGV[at + 3])
  local s, voided, flag, ends = read(key)
  local first = #reply + 1
  reply[first], reply[first + 1] = flag == BANNED and ends or voided, s.common
  for k = 1, #FLOORS do
    reply[first + 1 + k] = s[k]
  end
  local has = (DEPTHS[child] or 0) - (s[child] or 0)
  if flag ~= WRONG_TYPE and op == 4 then
    ends = math.max(now + math.max(child, until_full(s)), ends)
    ban(key, voided, ends)
    reply[first], flag = ends, BANNED
  elseif flag ~= WRONG_TYPE and op == 3 then
    if get(key) then
      for k = 1, #FLOORS do
        s[k] = 0
      end
      s.common = 0
      write(key, s, voided + 1, longest())
    end
  elseif flag ~= DENIED then
    has = 0
  elseif op == 0 then
    if a * PERIOD <= has + math.max(COMMON - s.common, 0) or a == 0 then
      flag = ADMITTED
      if a > 0 then
        take(s, child, a * PERIOD)
        write(key, s, voided, 0)
      end
    end
    if stepped and (flag == DENIED or a == 0) then
      write(key, s, voided, 0)
    end
  elseif op == 1 then
    if number(ARGV[at + 4]) == voided and
      refund(s, child, a, number(ARGV[at + 5]), number(ARGV[at + 6]), number(ARGV[at + 7])) then
      write(key, s, voided, redis.call('PTTL', key) * 1000)
    end
  elseif op == 2 then
    local most = has + math.max(2 * COMMON - s.common, 0)
    take(s, child, math.min(a * PERIOD, most))
    if a > math.floor(most / PERIOD) then
      voided = voided + 1
    end
    write(key, s, voided, 0)
  end
  reply[#reply + 1] = flag
end
return reply
