-- Fixed window: a quota in each of consecutive windows.
--
-- The state is a word, the end of the window plus one microsecond for each unit
-- spent; a full window that owes more is the end of the next one plus the rest.
-- The value is 'end:units[:voided]': the end of the window in
-- microseconds of this server's clock, its units, and how often earlier charges
-- were voided; or '-end:0[:voided]', the end of a ban.
--
-- KEYS[i]  a window; it may occur more than once, entries run in order
-- ARGV     six integers for each key: op, a, b, c, d, e
--            a = period  b = quota  c = units
--            d = how much earlier than the period's multiples windows begin
--            0 acquire, 2 force, 3 reset
--            1 refund  d = end of the window that was charged
--                      e = voided at the charge
--            4 ban     a = how long
-- reply    now, then three integers for each key: word before (or the end of the
--          ban), voided, flag
--
-- A denial writes nothing, except that a word that these parameters and this
-- clock cannot have written is clamped. The key expires with its window.

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
  elseif e <= now then -- no key, or a window or a ban that has ended
    return 0, 0, DENIED
  end
  local later = e - begin - period
  if later % period ~= 0 then -- another period: its units stay spent
    return math.min(units, quota), voided, DENIED
  elseif later + units > period + quota then
    return period + quota, voided + 1, DENIED, true
  end
  return math.max(later + units, 0), voided, DENIED
end

local function write(key, begin, period, spent, voided)
  if spent == 0 and voided == 0 then
    redis.call('DEL', key)
    return
  end
  local e = begin + period
  if spent > period then
    e, spent = e + period, spent - period
  end
  local text = int(e) .. ':' .. int(spent)
  if voided > 0 then
    text = text .. ':' .. int(voided)
  end
  put(key, text, e - now)
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
  local spent, voided, flag, clamped
  if op == 4 then
    local v = redis.pcall('GET', key)
    spent, voided, flag = 0, 0, WRONG_TYPE
    if type(v) ~= 'table' then
      local ends, old = string.match(v or '', '^%-?(%d+):%d+:?(%d*)$')
      ends = tonumber(ends) or 0
      if ends > now then
        voided = tonumber(old) or 0
      end
      spent, flag = math.max(now + a, ends), BANNED
      put(key, '-' .. int(spent) .. ':0:' .. int(voided), spent - now)
    end
  else
    spent, voided, flag, clamped = read(key, begin, a, b)
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
      elseif clamped then
        write(key, begin, a, spent, voided)
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
