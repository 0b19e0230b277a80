-- A rate that is learned from the answers of a server: the model of package algo/learn, line by
-- line, in microseconds of this server's clock. Constants are those of the model.
--
-- The value is 'g' and fifteen numbers, in the order of FIELDS: at is when it was written. If the clock
-- has stepped back since, all instants do.
--
-- KEYS[i]  a key
-- ARGV     seven integers for each key: op, n, start, age, wait, told, 0
--            0 start     n units, or look with n = 0
--            1 accepted  the answer to a call of n units that was sent age ago
--            2 denied    the same; wait is what the server asks for, or 0
--            5 correct   n units less
--          start = rate of a fresh key, told = rate that the server states or 0, in millionths
--          of a unit a second
-- reply    now, then three integers for each key: how long a call has to wait, the rate in force
--          in millionths of a unit a second, flag

local SECOND = 1000000
local GROWTH, GENTLY, FIRST_GROWTH, LEAST_HOLD, LONGEST_HOLD = 3, 5 * SECOND, 1, 10 * SECOND, 60 * SECOND
local HOLD_WAITS, HOLD_DENIALS, MOST_CUT, MARGIN = 20, 100, 0.8, 0.99
local LONGEST_BURST, OVERSHOOT, FIRST_OVERSHOOT, RETRY = SECOND, 1.4, 1.7, 1.02
local MEMORY, MEMORY_WAITS = 5, 5
local LONGEST_ALONE, SLACK, LONGEST_PAUSE, LEAST_RATE = SECOND, 20000, 60 * SECOND, 1 / 60
local LIFE = 86400 * SECOND -- of what is not used

local FIELDS = {'rate', 'next', 'open', 'alone', 'hold', 'since', 'accepted', 'took', 'wait', 'held', 'denied', 'row',
  'told', 'distrusts', 'at'}
local INSTANTS = {'next', 'open', 'alone', 'hold', 'since', 'distrusts'}

local function read(key, start)
  local text = get(key)
  if not text then
    return {rate = start, next = 0, open = 0, alone = 0, hold = 0, since = 0, accepted = 2, took = 2 / start, wait = 0,
      held = start, denied = 0, row = 0, told = 0, distrusts = 0, at = now}, false
  end
  local m, i = {}, 1
  for number in string.gmatch(string.match(text, '^g(.*)$') or '', '[^:]+') do
    m[FIELDS[i] or ''] = tonumber(number)
    i = i + 1
  end
  if i ~= #FIELDS + 1 then
    return nil
  end
  local back = m.at - now
  for _, name in ipairs(INSTANTS) do
    if back > 0 and m[name] > 0 then
      m[name] = m[name] - back
    end
  end
  return m, back > 0
end

local function write(key, m)
  local text = {}
  m.at = now
  for i, name in ipairs(FIELDS) do
    text[i] = string.format('%.17g', m[name])
  end
  put(key, 'g' .. table.concat(text, ':'), LIFE + math.max(m.open, m.next, now) - now)
end

local function pace(m)
  if m.told == 0 then
    return m.rate
  elseif now < m.distrusts then
    return math.min(m.rate, m.told)
  end
  return m.told
end

local function ahead(m)
  local at = math.max(m.open, m.next, now - SLACK)
  if at > now then
    return at - now
  elseif m.alone > now then
    return math.min(m.alone - now, SLACK)
  end
  return 0
end

local function growth(m)
  if m.since == 0 then
    return 1 / FIRST_GROWTH
  end
  return math.min(1, (now - m.hold) / GENTLY) / GROWTH
end

local function remember(m, units, took)
  local left = math.exp(-took / math.max(MEMORY, MEMORY_WAITS * m.wait))
  m.accepted = m.accepted * left + units
  m.took = m.took * left + took
end

local function closed(m, wait)
  local till = now + wait
  if till > m.open and wait > 0 then
    remember(m, 0, (till - math.max(now, m.open)) / SECOND)
    m.wait = wait / SECOND
    m.open = till
    m.next = math.max(m.next, till)
  end
end

local function accepted(m, sent, n)
  local rate = pace(m)
  local took = n / rate
  remember(m, n, took)
  if m.alone > 0 then
    remember(m, 0, (now - sent) / SECOND)
  end
  m.row, m.alone = 0, 0
  if sent < m.since then
    return
  end
  if m.told > 0 and now >= m.distrusts then
    m.rate = m.told
  elseif now >= m.hold and m.next >= now - 2 * SLACK then
    m.rate = m.rate + math.min(n * growth(m), m.rate)
  end
end

local function denied(m, sent, n, wait)
  local rate, held, fresh = pace(m), m.since > 0 and now < m.hold, sent >= m.since
  local lasted = math.max(now - math.max(m.since, m.open), 0)
  if fresh and not held then
    m.denied = 0
  end
  m.denied = m.denied + n
  remember(m, 0, n / rate)
  m.alone = 0
  if sent >= m.open then
    wait = math.max(wait, math.min(SECOND * 2 ^ m.row / rate, LONGEST_PAUSE))
    m.row = m.row + 1
  end
  closed(m, wait)
  if fresh then
    local estimate = math.max(m.accepted / m.took, rate * MOST_CUT, rate * (1 - LONGEST_BURST / lasted))
    if not held and m.told == 0 then
      estimate = math.max(m.held * RETRY, rate / (m.since == 0 and FIRST_OVERSHOOT or OVERSHOOT))
      m.took, m.accepted = MEMORY, estimate * MEMORY
    end
    m.rate = math.max(MARGIN * math.min(estimate, rate), LEAST_RATE)
    m.held, m.since = m.rate, now
    if m.told > 0 then
      m.distrusts = now + LEAST_HOLD
    end
  end
  local costs = SECOND * math.max(HOLD_WAITS * m.wait, HOLD_DENIALS * m.denied / m.rate)
  m.hold = m.open + math.min(math.max(LEAST_HOLD, costs), LONGEST_HOLD)
end

local function entry(key, op, n, start, age, wait, told)
  local m, stepped = read(key, start / SECOND)
  if not m then
    return 0, 0, WRONG_TYPE
  end
  if told > 0 then
    m.told = math.max(told / SECOND, LEAST_RATE)
  end
  local before, flag = ahead(m), ADMITTED
  if op == 0 then
    if before > 0 then
      flag = DENIED
    elseif n > 0 then
      m.next = math.max(m.open, m.next, now - SLACK) + n / pace(m) * SECOND
      if m.row > 0 then
        m.alone = now + LONGEST_ALONE
      end
    end
  elseif op == 1 then
    accepted(m, now - age, n)
    closed(m, wait)
  elseif op == 2 then
    denied(m, now - age, n, wait)
  else
    m.next = m.next - n / pace(m) * SECOND
  end
  if op > 0 or stepped or flag == ADMITTED and n > 0 then
    write(key, m)
  end
  return math.ceil(before), math.ceil(pace(m) * SECOND), flag
end

for i = 1, #KEYS do
  local a = {}
  for j = 1, 6 do
    a[j] = number(ARGV[(i - 1) * 7 + j])
  end
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = entry(KEYS[i], a[1], a[2], a[3], a[4], a[5], a[6])
end
return reply
