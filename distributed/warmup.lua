-- Guava's SmoothWarmingUp: permits cost more while the key is cold, and a call waits for the debt of earlier ones.
--
-- The value is 'gfree:gap:at:since:stable:warmup:cold': the instant from which there is no debt, in microseconds
-- of this server's clock; the worth of the permits that are not stored, which shrinks while there is no debt; when
-- that was written; the charges before since cannot be refunded; and the parameters. Or 'g-ends:...', the end of a
-- ban. No key means cold without debt: it expires when the key is cold.
--
-- KEYS[i]  a key; it may occur more than once, entries run in order
-- ARGV     seven integers for each: op, a, b, c, d, e, f
--            0 acquire  a = microseconds of a warm permit  b = warm-up  c = cost of a cold permit, in millionths
--                       of a warm one's  d = permits  e = longest wait
--            1 refund   a = start of the charge  b = its weight then  c = most to give back  d = the part of it that
--                       was stored, in units of 2^-31  e = when it was made
--            2 force    a, b, c, d as acquire  e = debt to which nothing is added  f = least cost
--            3 reset
--            4 ban      a = how long
-- reply    now, then three integers for each: free (or the end of the ban) and gap before, flag
--
-- A denial writes nothing, unless the clock stepped back: it takes the debt along, so no key is denied for longer.

local function write(key, free, gap, since, of, ttl)
  ttl = math.max(free + gap - now, ttl or 0)
  if ttl > 0 then
    put(key, 'g' .. int(free) .. ':' .. int(gap) .. ':' .. int(now) .. ':' .. int(since) .. ':' .. of, ttl)
  else
    redis.call('DEL', key)
  end
end

-- read returns free and gap at now, the flag, since, MIXED or 0, and the parameters of the key.
local function read(key, mine)
  local v = get(key)
  if not v then
    return 0, 0, DENIED, now, 0, mine
  end
  local free, gap, at, since, of = string.match(v, '^g(%-?%d+):(%d+):(%d+):(%d+):(%d+:%d+:%d+)$')
  free, gap, at, since = tonumber(free), tonumber(gap), tonumber(at), tonumber(since)
  if not free then
    return 0, 0, WRONG_TYPE, 0, 0
  elseif banned(free) then
    return -free, 0, BANNED, since, 0, of
  elseif free < 0 then
    return 0, 0, DENIED, since, 0, of
  end
  free = free - math.max(at - now, 0)
  local cold = free + gap
  free = math.max(free, now)
  gap = math.max(cold - free, 0)
  if at > now then
    write(key, free, gap, since, of)
  end
  return free, gap, DENIED, since, mine and of ~= mine and MIXED or 0, of
end

-- charge returns free and gap after n permits; the arithmetic is that of decide.Warmup.
local function charge(free, gap, n, stable, warmup, cold)
  local above, threshold = 2 * warmup / (stable + cold * stable), warmup / stable / 2
  local slope, cool = (cold * stable - stable) / above, warmup / (threshold + above)
  free = math.max(free, now)
  local stored = math.max(warmup - gap, 0) / cool
  local take, from = math.min(stored, n), math.max(stored - threshold, 0)
  local sloped = math.min(from, take)
  local cost = sloped * (2 * stable + slope * (2 * from - sloped)) / 2 + (n - sloped) * stable
  free = free + math.ceil(cost * (1 - 1e-14))
  return free, math.min(gap + math.floor(take * cool + 0.5), warmup)
end

-- lifetime is how long the key lives already.
local function lifetime(key)
  return math.max(redis.call('PTTL', key) * 1000, 0)
end

local function run(op, key, a, b, c, d, e, f)
  local mine = (op == 0 or op == 2) and int(a) .. ':' .. int(b) .. ':' .. int(c) or nil
  local free, gap, flag, since, mixed, of = read(key, mine)
  local debt = math.max(free - now, 0)
  if flag == WRONG_TYPE or flag == BANNED and op < 3 then
    return free, gap, flag
  elseif op == 0 then
    if d > 0 and debt > e then
      return free, gap, DENIED + mixed
    elseif d > 0 then
      local free, gap = charge(free, gap, d, a, b, c / 1000000)
      write(key, free, gap, since, mine)
    end
    return free, gap, ADMITTED + mixed
  elseif op == 1 then
    local back = math.min(b - math.max(now - a, 0), c, debt)
    if back > 0 and e >= since then
      write(key, free - back, math.max(gap - math.ceil(back * d / 2147483648), 0), since, of, lifetime(key))
    end
  elseif op == 2 and d > 0 and debt <= e then
    local after, rest = charge(free, gap, d, a, b, c / 1000000)
    write(key, math.max(after, math.max(free, now) + f), rest, since, mine)
  elseif op == 3 and of then
    write(key, 0, 0, now + 1, of, lifetime(key))
  elseif op == 4 then
    local ends = math.max(now + a, flag == BANNED and free or 0)
    put(key, 'g-' .. int(ends) .. ':0:' .. int(now) .. ':' .. int(now + 1) .. ':' .. (of or '1:1:1'), math.max(ends - now, lifetime(key)))
    return ends, 0, BANNED
  end
  return free, gap, flag + mixed
end

for i = 1, #KEYS do
  local at = (i - 1) * 7
  local free, gap, flag = run(number(ARGV[at + 1]), KEYS[i], number(ARGV[at + 2]), number(ARGV[at + 3]), number(ARGV[at + 4]),
    number(ARGV[at + 5]), number(ARGV[at + 6]), number(ARGV[at + 7]))
  reply[#reply + 1] = free
  reply[#reply + 1] = gap
  reply[#reply + 1] = flag
end
return reply
