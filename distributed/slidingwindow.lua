-- Sliding window over two counters: the count of the period before weighs by
-- the share of it that the window still covers, rounded up.
--
-- The value is 'index:older:newer[:voided]': the number of the newest period
-- since the epoch of this server's clock, the counts of the period before and of
-- that one, and how often earlier charges were voided; or '-end:0:0[:voided]',
-- the end of a ban.
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

local function read(key, index)
  local v = redis.pcall('GET', key)
  if type(v) == 'table' then
    return 0, 0, 0, 0, WRONG_TYPE
  end
  local i, older, newer, voided = string.match(v or '', '^(%-?%d+):(%d+):(%d+):?(%d*)$')
  i, older, newer, voided = tonumber(i) or 0, tonumber(older) or 0, tonumber(newer) or 0, tonumber(voided) or 0
  if banned(i) then
    return -i, 0, 0, voided, BANNED
  elseif i == index or i == index + 1 then
    return i, older, newer, voided, DENIED
  elseif i > index then
    return index, older, newer, voided, DENIED, true
  elseif i == index - 1 then
    return index, newer, 0, voided, DENIED
  end
  return index, 0, 0, 0, DENIED
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

local function write(key, index, older, newer, voided, period)
  local text = int(index) .. ':' .. int(older) .. ':' .. int(newer)
  if voided > 0 then
    text = text .. ':' .. int(voided)
  elseif older + newer == 0 then
    redis.call('DEL', key)
    return
  end
  put(key, text, life(key, index, newer, voided, period))
end

-- weigh is the units of the period before that still count, with left
-- microseconds of the window in it. They are at most two quotas: in halves, no
-- product exceeds 2^53.
local function weigh(n, left, period)
  left = math.min(left, period)
  local a, b = math.floor(n / 2) * left, math.ceil(n / 2) * left
  local ra, rb = a % period, b % period
  return (a - ra) / period + (b - rb) / period + math.ceil((ra + rb) / period)
end

for i = 1, #KEYS do
  local key, at = KEYS[i], (i - 1) * 6
  local op = tonumber(ARGV[at + 1])
  local a, b, c = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local d, e = tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
  local current = -1
  if op ~= 4 then
    current = math.floor(now / a)
  end
  local index, older, newer, voided, flag, clamped = read(key, current)
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
      write(key, index, older, newer, voided, a)
    end
  elseif op == 1 then
    local was = older + newer
    if e ~= voided then
      c, d = 0, 0
    end
    if index == b then
      newer = math.max(newer - c, 0)
    elseif index == b + 1 then
      older = math.max(older - d, 0)
    end
    if older + newer < was then
      write(key, index, older, newer, voided, a)
    end
  elseif op == 3 and (older + newer + voided > 0 or flag == BANNED) then
    local us = life(key, current, newer, voided, a)
    if flag == BANNED then -- it lasts as long as the counts before it
      us = math.min(redis.call('PTTL', key) * 1000, 2 * a)
    end
    put(key, int(current) .. ':0:0:' .. int(voided + 1), us)
  end
  if op == 4 and flag ~= WRONG_TYPE then
    -- The ban lasts at least as long as the counts.
    local ends = math.max(now + a, now + redis.call('PTTL', key) * 1000)
    if flag == BANNED then
      ends = math.max(now + a, index)
    end
    index, flag = ends, BANNED
    put(key, '-' .. int(ends) .. ':0:0:' .. int(voided), ends - now)
  end
  reply[#reply + 1] = index
  reply[#reply + 1] = older
  reply[#reply + 1] = before
  reply[#reply + 1] = voided
  reply[#reply + 1] = flag
end
return reply
