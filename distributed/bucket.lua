-- Token bucket, leaky bucket, pacer: the generic cell rate algorithm.
--
-- The state of a bucket is one integer, the instant at which it is full again
-- (TAT), in microseconds of this server's clock. No key means full.
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

local function write(key, tat)
  if tat <= now then
    redis.call('DEL', key)
  else
    put(key, int(tat), tat - now)
  end
end

-- read counts what is not a number as none, and so NaN and what is negative.
local function read(key)
  local v, flag, ends = get(key)
  if flag == 1 then
    return ends, flag
  end
  local tat = tonumber(v)
  if not tat or tat ~= tat or tat < 0 then
    tat = 0
  end
  return math.floor(tat), flag
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
    local base = math.min(math.max(tat, now), now + a + b)
    over = base + c - now - a
    if c > 0 and over <= b then
      tat = base + c
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
    block(key, tat)
  end
  reply[#reply + 1] = tat
  reply[#reply + 1] = over
  reply[#reply + 1] = flag
end
return reply
