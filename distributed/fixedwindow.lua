-- Fixed window: a quota in each of consecutive windows.
--
-- The value is 'fend:units:period:quota[:voided]': the end of the window in microseconds
-- of this server's clock, the units spent of it, the limit's period and quota, and how
-- often earlier charges were voided. A full window in debt has spent its period in
-- microseconds, which is more than any quota, and its debt of the next window.
-- 'f-end:0:0:0[:voided]' is the end of a ban. ';end:units:period' may follow: a longer window
-- of other parameters.
--
-- A changed limit: a window of a longer period counts as spent in the own one, at most all of
-- its quota. Limits of the longer period still see theirs: each charge counts in both.
--
-- KEYS[i]  a window; it may occur more than once, entries run in order
-- ARGV     seven integers for each key: op, a, b, c, d, e, f
--            a = period  b = quota  c = units
--            d = how much earlier than the period's multiples windows begin
--            0 acquire, 2 force, 3 reset: of a calendar (f > 0) the windows differ, and
--              d = begin of the window, of length a, that holds the client's time
--              e = length of the one before, f = length of the one after
--            1 refund  d = end of the window that was charged, a its length
--                      e = voided at the charge, f = length of the one after, or 0
--            4 ban     a = how long
--            6 acquire all  as acquire; op has 16 times the number of entries, from this one
--                           on, that are charged together or not at all
--            7 peek all     as 6, but charges nothing
--           13 give back  as acquire: of whatever charge, after a changed period too
-- reply    now, then three integers for each key: end of the window and the units
--          spent before, added up (or the end of the ban), voided (of give back: the units that
--          were given), flag
--
-- A denial writes nothing, except that units of a later window, from a clock that
-- stepped back, move to the current one. The key expires with its window, or with the next one
-- if that is in debt.

local wrote = 0 -- the quota of the limit that wrote the key
local after = 0 -- the length of the next window of a calendar, or 0

-- window returns the beginning and the length of the window that holds now. Of a
-- client whose clock is more than a window wrong all are as long as its own.
local function window(a, d, e, f)
  if f == 0 then
    return now - (now + d) % a, a
  end
  after = f
  if now >= d - e and now < d then
    after = a
    return d - e, e
  elseif now >= d + a and now < d + a + f then
    after = f + f / 8 -- not known: at least as long, and a key in debt lives longer
    return d + a, f
  end
  return now - (now - d) % a, a
end

local other -- the longer window of other parameters: its end, units and period; or nil

-- also counts n units in the longer window.
local function also(n)
  if other and other[2] < other[3] then
    other[2] = math.max(other[2] + n, 0)
  end
end

local function parse(key)
  local v = get(key)
  wrote, other = 0, nil
  if not v then
    return 0, 0, 0, 0, true
  end
  local e, units, period, quota, voided, rest = string.match(v, '^f(%-?%d+):(%d+):(%d+):(%d+):?(%d*)(;?.*)$')
  local last, held, long = string.match(rest or '', '^;(%d+):(%d+):(%d+)$')
  if last then
    other = {tonumber(last), tonumber(held), tonumber(long)}
    if other[1] <= now or other[1] > now + other[3] then
      other = nil
    end
  elseif rest ~= '' then
    e = nil -- of a later format
  end
  wrote = tonumber(quota) or 0
  return tonumber(e), tonumber(units), tonumber(period), tonumber(voided) or 0, e
end

-- read returns the units that the window has spent, voided, the flag, MIXED or 0,
-- begin and period of the window, and whether the clock has stepped back. The quota is 0
-- for a refund, which only its window concerns.
local function read(key, begin, period, quota)
  local e, units, p, voided, ok = parse(key)
  if not ok then
    return 0, 0, WRONG_TYPE, 0, begin, period
  elseif banned(e) then
    return -e, voided, BANNED, 0, begin, period
  end
  if other and p ~= period and (e <= now or other[3] == period) then
    e, units, p, other = other[1], other[2], other[3], nil -- this limit's own, or all that is left
  end
  local mixed = 0
  if e > now and (p ~= period or (quota > 0 and wrote > 0 and wrote ~= quota)) then
    mixed = MIXED
  end
  if e == begin + period and p == period then
    return math.min(units, period + math.max(quota, wrote)), voided, DENIED, mixed, begin, period
  elseif e > now then
    local back = e > now + p
    if p == period and not back and now < begin + period then
      mixed = MIXED -- a window of the same length and other edges
    end
    if p > period and not back and quota > 0 then
      other = other and other[3] > p and other or {e, units, p}
      back = true -- the own window begins with this decision
    end
    return math.min(units, quota), voided, DENIED, mixed, begin, period, back
  elseif e == begin and (p == period or after > 0) and units > p then
    return units - p, 0, DENIED, 0, begin, period
  end
  return 0, 0, DENIED, 0, begin, period
end

local function write(key, begin, period, spent, voided, quota)
  wrote = quota or wrote
  if spent == 0 and voided == 0 and not other then
    redis.call('DEL', key)
    return
  end
  local text, ttl = 'f' .. int(begin + period) .. ':' .. int(spent) .. ':' .. int(period) .. ':' .. int(wrote),
    begin + period - now
  if voided > 0 then
    text = text .. ':' .. int(voided)
  end
  if spent > period then
    ttl = ttl + (after > 0 and after or period)
  end
  if other then
    text = text .. ';' .. int(other[1]) .. ':' .. int(other[2]) .. ':' .. int(other[3])
    ttl = math.max(ttl, other[1] - now)
  end
  put(key, text, ttl)
end

-- ban lasts at least as long as the key would have lived.
local function ban(key, long)
  local e, _, _, voided, ok = parse(key)
  if not ok then
    return 0, 0, WRONG_TYPE
  end
  local ends = math.max(now + long, now + redis.call('PTTL', key) * 1000)
  if banned(e) then
    ends = math.max(now + long, -e)
  end
  put(key, 'f-' .. int(ends) .. ':0:0:0:' .. int(voided), ends - now)
  return ends, voided, BANNED
end

local function answer(spent, voided, flag)
  reply[#reply + 1] = spent
  reply[#reply + 1] = voided
  reply[#reply + 1] = flag
end

local function entry(i)
  local key, at = KEYS[i], (i - 1) * 7
  local op = number(ARGV[at + 1])
  local a, b, c = number(ARGV[at + 2]), number(ARGV[at + 3]), number(ARGV[at + 4])
  local d, e = number(ARGV[at + 5]), number(ARGV[at + 6])
  local f, begin = number(ARGV[at + 7]), 0
  after = 0
  if op == 1 then
    begin, after = d - a, f
  elseif op ~= 4 then
    begin, a = window(a, d, e, f)
  end
  local own, spent, voided, flag, mixed, back, given = begin + a, 0, 0, 0, 0, false, 0
  if op == 4 then
    spent, voided, flag = ban(key, a)
  else
    spent, voided, flag, mixed, begin, a, back = read(key, begin, a, op == 1 and 0 or b)
  end
  local before = spent
  if flag == DENIED then
    before = own + spent
    if op == 0 then
      if spent + c <= b or c == 0 then
        flag = ADMITTED
      end
      if flag == ADMITTED and c > 0 then
        also(c)
        write(key, begin, a, spent + c, voided, b)
      elseif back then
        write(key, begin, a, spent, voided, b)
      end
    elseif op == 1 or op == 13 then
      local left = spent - c
      given = math.min(c, spent)
      if spent >= a and c >= spent - a then -- the debt first
        left = math.max(b, wrote) - (c - (spent - a))
        given = spent - a + math.min(c - (spent - a), math.max(b, wrote))
      end
      local counts = op == 13 or (mixed == 0 and not back and now < begin + a and e == voided)
      if counts and left < spent then
        also(-c)
        write(key, begin, a, math.max(left, 0), voided)
      end
    elseif op == 2 then
      also(c)
      if spent < a and spent + c > b then
        spent, c = a, c - math.max(b - spent, 0)
      end
      if spent + c > a + b then
        voided = voided + 1
      end
      write(key, begin, a, math.min(spent + c, a + b), voided, b)
    end
  end
  if op == 3 and flag ~= WRONG_TYPE and (spent > 0 or voided > 0 or other) then
    other = nil
    write(key, begin, a, 0, voided + 1)
  end
  answer(before, op == 13 and given or voided, flag + mixed)
end

-- look returns the content of an entry's window.
local function look(key, at)
  local a, d = number(ARGV[at + 2]), number(ARGV[at + 5])
  after = 0
  local begin, period = window(a, d, number(ARGV[at + 6]), number(ARGV[at + 7]))
  local own, quota = begin + period, number(ARGV[at + 3])
  local spent, voided, flag, mixed, back
  spent, voided, flag, mixed, begin, period, back = read(key, begin, period, quota)
  return {own = own, quota = quota, first = spent, spent = spent, voided = voided, flag = flag, mixed = mixed,
    begin = begin, period = period, back = back, wrote = wrote, after = after, other = other}
end

-- together charges the entries first to last, or none of them.
local function together(op, first, last)
  local windows, all = {}, true
  for i = first, last do
    local key, at = KEYS[i], (i - 1) * 7
    local quota, cost = number(ARGV[at + 3]), number(ARGV[at + 4])
    local s = windows[key] or look(key, at)
    windows[key] = s
    local flag, before = s.flag, s.spent
    if flag == DENIED then
      before = s.own + s.spent
      if s.spent + cost <= quota or cost == 0 then
        flag = ADMITTED
      end
      -- more than the quota would read as debt
      s.spent = s.spent < s.period and math.min(s.spent + cost, math.max(s.spent, quota)) or s.spent + cost
    end
    all = all and flag == ADMITTED
    answer(before, s.voided, flag + s.mixed)
  end
  for key, s in pairs(windows) do
    after, wrote, other = s.after, s.wrote, s.other
    if all and op == 6 and s.spent > s.first then
      also(s.spent - s.first)
      write(key, s.begin, s.period, s.spent, s.voided, s.quota)
    elseif s.back then
      write(key, s.begin, s.period, s.first, s.voided, s.quota)
    end
  end
end

local i = 1
while i <= #KEYS do
  local op = number(ARGV[(i - 1) * 7 + 1])
  if op < 16 then
    entry(i)
    i = i + 1
  else
    local last = i + math.floor(op / 16) - 1
    together(op % 16, i, last)
    i = last + 1
  end
end
return reply
