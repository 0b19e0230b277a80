-- Token bucket, leaky bucket, pacer: the generic cell rate algorithm.
--
-- The state of a bucket is its theoretical arrival time (TAT), the instant at
-- which it is full again, in microseconds of this server's clock. No key means
-- full. The value is
--
--   TAT                    an integer, as long as nothing was given back
--   TAT:account:voided     account: the microseconds given back so far, which
--                          mark the charges made from now on; charges with a
--                          mark below voided cannot be refunded
--   -end[:account:voided]  the end of a ban
--
-- KEYS[i]  a bucket; it may occur more than once, entries run in order
-- ARGV     five integers for each key: op, a, b, c, d
--            0 acquire     a = depth (burst * T)  b = longest wait
--                          c = cost (n * T, 0 peeks)
--            1 refund      a = most to give back  b = when the charge has drained
--                          c = TAT after the charge  d = its mark
--            2 force       a, b, c as acquire; charges up to the largest debt
--                          d = 1 if earlier charges cannot be refunded then
--            3 reset       a, b as acquire
--            4 ban         a = how long
--            6 acquire all a, b, c as acquire  d = number of entries, from this
--                          one on, that are charged together or not at all
--            7 peek all    as 6, but charges nothing
-- reply    now, then three integers for each key: TAT before (or the end of the
--          ban), account, flag; entries that are charged together follow one
--          another
--
-- A denial writes nothing, except that a TAT that these parameters and this
-- clock cannot have written is clamped, because the clock stepped back or the
-- limit was lowered. A key lives until its TAT; with an account, until the
-- charges made before have drained too.

local function read(key)
  local v = redis.pcall('GET', key)
  if not v then
    return 0, 0, 0, DENIED
  elseif type(v) == 'table' then
    return 0, 0, 0, WRONG_TYPE
  end
  local tat, account, voided = tonumber(v), 0, 0
  if not tat then
    local t, a, w = string.match(v, '^(%-?%d+):(%d+):(%d+)$')
    tat, account, voided = tonumber(t or 0), tonumber(a or 0), tonumber(w or 0)
  end
  if banned(tat) then
    return -tat, account, voided, BANNED
  elseif not (tat > 0) then -- NaN too
    tat = 0
  end
  return math.floor(tat), account, voided, DENIED
end

local function write(key, tat, account, voided, longest)
  if account > 0 then
    local text = int(tat) .. ':' .. int(account) .. ':' .. int(voided)
    local ttl = math.max(tat - now, redis.call('PTTL', key) * 1000)
    put(key, text, math.min(ttl, longest))
  elseif tat > now then
    put(key, int(tat), tat - now)
  else
    redis.call('DEL', key)
  end
end

-- load reads a bucket and clamps an implausible TAT, which voids the charges
-- that led to it.
local function load(key, depth, wait)
  local tat, account, voided, flag = read(key)
  local largest = now + 2 * depth + wait
  if flag == DENIED and tat > largest then
    return largest, account + 1, account + 1, flag, true
  end
  return tat, account, voided, flag, false
end

-- charge is the algorithm: the TAT after the charge, and whether it fits.
local function charge(tat, depth, wait, cost)
  local next = math.max(tat, now) + cost
  return next, cost == 0 or next - now - depth <= wait
end

-- change runs the operations that decide nothing.
local function change(op, key, a, b, c, d)
  local tat, account, voided, flag = read(key)
  if flag == WRONG_TYPE or (flag == BANNED and op < 3) then
    return tat, account, flag
  end
  if op == 1 then
    -- A later TAT than the key's is from before Redis lost the key, or before
    -- its clock stepped back.
    local after = c - (account - d)
    local given = math.min(a, math.max(after, b) - now, tat - now)
    if given > 0 and d >= voided and d <= account and after <= tat then
      write(key, tat - given, account + given, voided, math.huge)
    end
  elseif op == 2 then
    local largest, next, after = now + 2 * a + b, math.max(tat, now) + c, account
    if next > largest or d == 1 then
      after = account + 1
      voided = after
    end
    write(key, math.min(next, largest), after, voided, largest - now)
  elseif op == 3 then
    -- The account stays until the charges made before have drained.
    local ttl = math.min(redis.call('PTTL', key) * 1000, 2 * a + b)
    if ttl > 0 then
      put(key, int(now) .. ':' .. int(account + 1) .. ':' .. int(account + 1), ttl)
    else
      redis.call('DEL', key)
    end
  elseif op == 4 then
    tat, flag = math.max(tat, now + a), BANNED
    local text, ttl = '-' .. int(tat), tat - now
    if account > 0 then
      text = text .. ':' .. int(account + 1) .. ':' .. int(account + 1)
      ttl = math.max(ttl, redis.call('PTTL', key) * 1000)
    end
    put(key, text, ttl)
  end
  return tat, account, flag
end

local function answer(tat, account, flag)
  reply[#reply + 1] = tat
  reply[#reply + 1] = account
  reply[#reply + 1] = flag
end

-- together charges the entries first to last, or none of them.
local function together(op, first, last)
  local buckets, all = {}, true
  for i = first, last do
    local at, key = (i - 1) * 5, KEYS[i]
    local depth, wait, cost = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    local s = buckets[key]
    if not s then
      s = {}
      s.tat, s.account, s.voided, s.flag, s.clamped = load(key, depth, wait)
      s.first, s.longest = s.tat, 2 * depth + wait
      buckets[key] = s
    end
    local flag, fits, before = s.flag, cost == 0, s.tat
    if flag == DENIED then
      s.tat, fits = charge(s.tat, depth, wait, cost)
      if fits then
        flag = ADMITTED
      end
    end
    all = all and fits and flag ~= WRONG_TYPE
    answer(before, s.account, flag)
  end
  for key, s in pairs(buckets) do
    local tat = s.first
    if all and op == 6 then
      tat = math.max(tat, s.tat)
    end
    if s.clamped or (tat > s.first and tat > now) then
      write(key, tat, s.account, s.voided, s.longest)
    end
  end
end

local i = 1
while i <= #KEYS do
  local key, at = KEYS[i], (i - 1) * 5
  local op = tonumber(ARGV[at + 1])
  local a, b = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local c, d = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  if op == 0 then
    local tat, account, voided, flag, clamped = load(key, a, b)
    if flag == DENIED then
      local next, fits = charge(tat, a, b, c)
      if fits then
        flag = ADMITTED
      end
      if fits and c > 0 then
        write(key, next, account, voided, 2 * a + b)
      elseif clamped then
        write(key, tat, account, voided, 2 * a + b)
      end
    end
    answer(tat, account, flag)
  elseif op < 6 then
    answer(change(op, key, a, b, c, d))
  else
    together(op, i, i + d - 1)
    i = i + d - 1
  end
  i = i + 1
end
return reply
