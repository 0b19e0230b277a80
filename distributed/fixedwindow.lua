-- Fixed window: a quota in each of consecutive windows.
--
-- The value is 'end:units[:voided]': the end of the window in microseconds of
-- this server's clock, the units spent of it, and how often earlier charges were
-- voided. A full window in debt has spent its period in microseconds, which is
-- more than any quota, and its debt of the next window. '-end:0[:voided]' is the
-- end of a ban.
--
-- KEYS[i]  a window; it may occur more than once, entries run in order
-- ARGV     six integers for each key: op, a, b, c, d, e
--            a = period  b = quota  c = units
--            d = how much earlier than the period's multiples windows begin
--            0 acquire, 2 force, 3 reset
--            1 refund  d = end of the window that was charged
--                      e = voided at the charge
--            4 ban     a = how long
-- reply    now, then three integers for each key: end of the window and the units
--          spent before, added up (or the end of the ban), voided, flag
--
-- A denial writes nothing. The key expires with its window, or with the next one
-- if that is in debt.

-- read returns the units that the window from begin on has spent.
local function read(key, begin, period, quota)
  local v = redis.pcall('GET', key)
  if type(v) == 'table' then
    return 0, 0, WRONG_TYPE
  end
  local e, units, voided = string.match(v or '', '^(%-?%d+):(%d+):?(%d*)$')
  e, units, voided = tonumber(e) or 0, tonumber(units) or 0, tonumber(voided) or 0
  if banned(e) then
    return -e, voided, BANNED
  elseif e == begin + period then
    return math.min(units, period + quota), voided, DENIED
  elseif e > now then -- another period, or a clock that has stepped back
    return math.min(units, quota), voided, DENIED
  elseif e == begin and units > period then
    return units - period, 0, DENIED
  end
  return 0, 0, DENIED
end

local function write(key, begin, period, spent, voided)
  if spent == 0 and voided == 0 then
    redis.call('DEL', key)
    return
  end
  local text, ttl = int(begin + period) .. ':' .. int(spent), begin + period - now
  if voided > 0 then
    text = text .. ':' .. int(voided)
  end
  if spent > period then
    ttl = ttl + period
  end
  put(key, text, ttl)
end

-- ban lasts at least as long as the key would have lived.
local function ban(key, long)
  local v = redis.pcall('GET', key)
  if type(v) == 'table' then
    return 0, 0, WRONG_TYPE
  end
  local e, voided = string.match(v or '', '^(%-?%d+):%d+:?(%d*)$')
  local ends = math.max(now + long, now + redis.call('PTTL', key) * 1000)
  if banned(tonumber(e) or 0) then
    ends = math.max(now + long, -tonumber(e))
  end
  voided = tonumber(voided) or 0
  put(key, '-' .. int(ends) .. ':0:' .. int(voided), ends - now)
  return ends, voided, BANNED
end

for i = 1, #KEYS do
  local key, at = KEYS[i], (i - 1) * 6
  local op = tonumber(ARGV[at + 1])
  local a, b, c = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local d, e = tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
  local begin = 0
  if op == 1 then
    begin = d - a
  elseif op ~= 4 then
    begin = now - (now + d) % a
  end
  local spent, voided, flag
  if op == 4 then
    spent, voided, flag = ban(key, a)
  else
    spent, voided, flag = read(key, begin, a, b)
  end
  local before = spent
  if flag == DENIED then
    before = begin + a + spent
    if op == 0 then
      if spent + c <= b or c == 0 then
        flag = ADMITTED
      end
      if flag == ADMITTED and c > 0 then
        write(key, begin, a, spent + c, voided)
      end
    elseif op == 1 then
      local left = spent - c
      if spent >= a and c >= spent - a then -- the debt first
        left = b - (c - (spent - a))
      end
      if now < begin + a and e == voided and left < spent then
        write(key, begin, a, math.max(left, 0), voided)
      end
    elseif op == 2 then
      if spent < a and spent + c > b then
        spent, c = a, c - math.max(b - spent, 0)
      end
      if spent + c > a + b then
        voided = voided + 1
      end
      write(key, begin, a, math.min(spent + c, a + b), voided)
    end
  end
  if op == 3 and (spent > 0 or voided > 0) then
    write(key, begin, a, 0, voided + 1)
  end
  reply[#reply + 1] = before
  reply[#reply + 1] = voided
  reply[#reply + 1] = flag
end
return reply
