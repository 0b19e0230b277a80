-- Token bucket, leaky bucket, pacer: the generic cell rate algorithm.
--
-- The state of a bucket is one integer, the instant at which it is full again
-- (TAT), in microseconds of this server's clock. No key means full. A negative
-- integer means: blocked until that instant.
--
-- KEYS[i]  a bucket; it may occur more than once, entries run in order
-- ARGV     five integers for each key: op, a, b, c, d
--            0 acquire  a = depth (burst * T)  b = longest wait  c = cost (n * T)
--            1 refund   a = most to give back  b = cost of the charge  c = when it starts
--            2 owe      a = depth              b = longest wait  c = cost
--            3 reset
--            4 block    a = how long
-- reply    now, then three integers for each key: TAT, overshoot, flag
--            overshoot  how far the charge exceeds the bucket: up to the longest
--                       wait it is admitted, beyond it is denied
--            flag       0, 1: blocked, 2: the key is of another type
--
-- A denial writes nothing. A TAT further ahead than this limit can have put
-- it, because the clock stepped back or the limit was lowered, is cut, and
-- that is written. A key lives exactly as long as it means something.

local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000000 + tonumber(t[2])
local longest = 34560000000000 -- no block is longer than 400 days
local reply = {now}

local function write(key, tat)
  if tat <= now then
    redis.call('DEL', key)
  else
    local ms = math.ceil((tat - now) / 1000)
    redis.call('SET', key, string.format('%.0f', tat), 'PX', string.format('%.0f', ms))
  end
end

-- read returns the TAT, 0 for none, or the end of a block and flag 1. What is
-- not a number counts as none, and so does NaN.
local function read(key)
  local v = redis.pcall('GET', key)
  if type(v) == 'table' and v.err then
    return 0, 2
  end
  local tat = tonumber(v or 0)
  if not tat or tat ~= tat then
    return 0, 0
  end
  tat = math.floor(tat)
  if tat < 0 then
    if -tat > now and -tat - now <= longest then
      return -tat, 1
    end
    return 0, 0
  end
  return tat, 0
end

for i = 1, #KEYS do
  local key, at = KEYS[i], (i - 1) * 5
  local op = tonumber(ARGV[at + 1])
  local a, b, c = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local tat, flag = read(key)
  local over = 0
  if flag == 2 or (flag == 1 and op < 3) then
    over = tat - now + b
  elseif op == 0 then
    local base = math.max(tat, now)
    if base > now + a + b then
      base = now + a + b
    end
    local new = base + c
    over = new - now - a
    if c > 0 and over <= b then
      tat = new
      write(key, tat)
    elseif base < tat then
      tat = base
      write(key, tat)
    end
  elseif op == 1 then
    local given = math.min(a, b - math.max(now - c, 0), tat - now)
    if given > 0 then
      tat = tat - given
      write(key, tat)
    end
  elseif op == 2 then
    tat = math.min(math.max(tat, now) + c, now + a + b)
    write(key, tat)
  elseif op == 3 then
    redis.call('DEL', key)
  elseif op == 4 then
    tat = math.max(tat, now + a)
    local ms = math.ceil((tat - now) / 1000)
    redis.call('SET', key, string.format('%.0f', -tat), 'PX', string.format('%.0f', ms))
  end
  reply[#reply + 1] = tat
  reply[#reply + 1] = over
  reply[#reply + 1] = flag
end
return reply
