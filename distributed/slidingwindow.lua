-- Sliding window over two counters: the count of the period before weighs by
-- the share of it that the window still covers, rounded up.
--
-- The value is 'sindex:older:newer:period:quota[:voided]': the number of the newest
-- period since the epoch of this server's clock, the counts of the period before
-- and of that one, the limit's period and quota, and how often earlier charges were
-- voided; or 's-end:0:0:0:0[:voided]', the end of a ban. ';index:older:newer:period' may
-- follow: the counts of other parameters in a longer period.
--
-- A changed limit: the weight in a longer period counts as spent in the own one, at most all
-- of its quota. Limits of the longer period still see theirs: each charge counts in both.
--
-- KEYS[i]  a window; it may occur more than once, entries run in order
-- ARGV     six integers for each key: op, a, b, c, d, e
--            0 acquire  a = period  b = quota  c = units
--            1 refund   a = period  b = index that was charged
--                       c = units, if that is the newest period
--                       d = units, otherwise
--                       e = voided at the charge
--            2 force    a, b, c as acquire
--            3 reset    a = period
--            4 ban      a = how long
-- reply    now, then five integers for each key: index (or the end of the ban),
--          older and newer count before, voided, flag
--
-- quota * period stays below 2^53. A denial writes nothing, except that a later
-- period than the next one, from a clock that stepped back, becomes the current
-- one. The key expires when both counts have left the window.

-- weigh is the units of the period before that still count, with left
-- microseconds of the window in it. They are at most two quotas: in halves, no
-- product exceeds 2^53.
local function weigh(n, left, period)
  left = math.min(left, period)
  local a, b = math.floor(n / 2) * left, math.ceil(n / 2) * left
  local ra, rb = a % period, b % period
  return (a - ra) / period + (b - rb) / period + math.ceil((ra + rb) / period)
end

-- since returns the counts of a value at period number index, and whether the clock
-- has stepped back; nothing if they have left the window.
local function since(index, i, older, newer)
  if i == index or i == index + 1 then
    return i, older, newer, false
  elseif i > index then
    return index, older, newer, true
  elseif i == index - 1 then
    return index, newer, 0, false
  end
end

-- read returns the number of the newest period and the two counts, voided, the
-- flag, MIXED or 0, the period, and whether the clock has stepped back.
local wrote = 0 -- the quota of the limit that wrote the key
local other -- the counts in the longer period of other parameters: index, older, newer, period; or nil

local function also(n)
  if other then
    other[3] = math.max(other[3] + n, 0)
  end
end

local function read(key, period, quota)
  local index, v = math.floor(now / period), get(key)
  wrote, other = 0, nil
  if not v then
    return index, 0, 0, 0, DENIED, 0, period, false
  end
  local i, older, newer, p, q, voided, rest = string.match(v, '^s(%-?%d+):(%d+):(%d+):(%d+):(%d+):?(%d*)(;?.*)$')
  local i2, older2, newer2, p2 = string.match(rest or '', '^;(%d+):(%d+):(%d+):(%d+)$')
  if i2 then
    p2 = tonumber(p2)
    i2, older2, newer2 = since(math.floor(now / p2), tonumber(i2), tonumber(older2), tonumber(newer2))
    other = i2 and {i2, older2, newer2, p2}
  elseif rest ~= '' then
    i = nil -- of a later format
  end
  wrote = tonumber(q) or 0
  i, older, newer, p, voided = tonumber(i), tonumber(older), tonumber(newer), tonumber(p), tonumber(voided) or 0
  if not i then
    return 0, 0, 0, 0, WRONG_TYPE, 0, period, false
  elseif banned(i) then
    return -i, 0, 0, voided, BANNED, 0, period, false
  end
  local found, back
  if p > 0 then
    found, older, newer, back = since(math.floor(now / p), i, older, newer)
  end
  if other and p ~= period and (not found or other[4] == period) then
    found, older, newer, p, other = other[1], other[2], other[3], other[4], nil
  end
  if not found then
    return index, 0, 0, 0, DENIED, 0, period, false
  elseif p == period then
    local mixed = 0
    if quota > 0 and wrote > 0 and wrote ~= quota then
      mixed = MIXED
    end
    return found, older, newer, voided, DENIED, mixed, period, back
  end
  local weight = weigh(older, (found + 1) * p - now, p) + newer
  if p > period and quota > 0 and not back then
    other = other and other[4] > p and other or {found, older, newer, p}
    weight, back = math.min(weight, quota), true -- the own period begins with this decision
  end
  return index, 0, weight, voided, DENIED, MIXED, period, back
end

-- life is how long a key must live: until its counts have left the window, and
-- until earlier charges that were voided would have.
local function life(key, index, newer, voided, period)
  local us = (index + 1) * period - now
  if newer > 0 then
    return us + period
  elseif voided > 0 then
    return math.max(us, redis.call('PTTL', key) * 1000)
  end
  return us
end

local function write(key, index, older, newer, voided, period, quota)
  wrote = quota or wrote
  local text = 's' .. int(index) .. ':' .. int(older) .. ':' .. int(newer)
    .. ':' .. int(period) .. ':' .. int(wrote)
  if voided > 0 then
    text = text .. ':' .. int(voided)
  elseif older + newer == 0 and not other then
    redis.call('DEL', key)
    return
  end
  local us = life(key, index, newer, voided, period)
  if other then
    text = text .. ';' .. int(other[1]) .. ':' .. int(other[2]) .. ':' .. int(other[3]) .. ':' .. int(other[4])
    us = math.max(us, (other[1] + 2) * other[4] - now)
  end
  put(key, text, us)
end

-- ban lasts at least as long as the counts.
local function ban(key, long)
  local v = get(key)
  local i, voided = string.match(v or 's0:0:0:0:0', '^s(%-?%d+):%d+:%d+:%d+:%d+:?(%d*)')
  i, voided = tonumber(i), tonumber(voided) or 0
  if not i then
    return 0, 0, 0, 0, WRONG_TYPE, 0
  end
  local ends = math.max(now + long, now + redis.call('PTTL', key) * 1000)
  if banned(i) then
    ends = math.max(now + long, -i)
  end
  put(key, 's-' .. int(ends) .. ':0:0:0:0:' .. int(voided), ends - now)
  return ends, 0, 0, voided, BANNED, 0
end

for i = 1, #KEYS do
  local key, at = KEYS[i], (i - 1) * 6
  local op = number(ARGV[at + 1])
  local a, b, c = number(ARGV[at + 2]), number(ARGV[at + 3]), number(ARGV[at + 4])
  local d, e = number(ARGV[at + 5]), number(ARGV[at + 6])
  local quota = 0
  if op == 0 or op == 2 then
    quota = b
  end
  local index, older, newer, voided, flag, mixed, clamped
  if op == 4 then
    index, older, newer, voided, flag, mixed = ban(key, a)
  else
    index, older, newer, voided, flag, mixed, a, clamped = read(key, a, quota)
  end
  local before = newer
  if flag == WRONG_TYPE or (flag == BANNED and op < 3) then
    before = 0
  elseif op == 0 or op == 2 then
    local room = b - weigh(older, (index + 1) * a - now, a) - newer
    if op == 2 then
      newer = newer + math.max(math.min(c, room + b), 0)
      if c > room + b then
        voided, clamped = voided + 1, true
      end
    elseif c <= room or c == 0 then
      newer, flag = newer + c, ADMITTED
    end
    if newer > before or clamped then
      also(newer - before)
      write(key, index, older, newer, voided, a, b)
    end
  elseif op == 1 then
    local was = older + newer
    if e ~= voided or mixed > 0 then
      c, d = 0, 0
    end
    if index == b then
      newer = math.max(newer - c, 0)
    elseif index == b + 1 then
      older = math.max(older - d, 0)
    end
    if older + newer < was then
      also(older + newer - was)
      write(key, index, older, newer, voided, a)
    end
  elseif op == 3 and (older + newer + voided > 0 or other or flag == BANNED) then
    local current = math.floor(now / a)
    local us = life(key, current, newer, voided, a)
    if flag == BANNED then -- it lasts as long as the counts before it
      us = math.min(redis.call('PTTL', key) * 1000, 2 * a)
    end
    put(key, 's' .. int(current) .. ':0:0:' .. int(a) .. ':' .. int(wrote) .. ':' .. int(voided + 1), us)
  end
  reply[#reply + 1] = index
  reply[#reply + 1] = older
  reply[#reply + 1] = before
  reply[#reply + 1] = voided
  reply[#reply + 1] = flag + mixed
end
return reply
