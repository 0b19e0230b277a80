-- Fixed window: a count, and the instant at which it starts again.
--
-- The value is 'end:count', end in microseconds of this server's clock. A
-- window begins with the first unit that is charged.
--
-- KEYS[i]  a window; it may occur more than once, entries run in order
-- ARGV     four integers for each key: op, a, b, c
--            0 acquire  a = length  b = limit  c = units
--            1 refund   a = units   b = end of the window that was charged
--            2 owe      a = length  b = most that is counted  c = units
--            3 reset
--            4 block    a = how long
-- reply    now, then four integers for each key: end, count before, admitted, flag
--            admitted   1 or 0
--            flag       0, 1: blocked until end, 2: the key is of another type
--
-- A denial writes nothing and does not count. The key expires with its window.

local function read(key)
  local v, flag, ends = get(key)
  if flag == 1 then
    return ends, 0, flag
  end
  local e, count = string.match(v, '^(%d+):(%d+)$')
  e = tonumber(e or 0)
  if e <= now then
    return 0, 0, flag
  end
  return e, tonumber(count), flag
end

for i = 1, #KEYS do
  local key, at = KEYS[i], (i - 1) * 4
  local op = tonumber(ARGV[at + 1])
  local a, b, c = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local ends, count, flag = read(key)
  local before, admitted = count, 0
  if flag == 2 or (flag == 1 and op < 3) then
    admitted = 0
  elseif op == 0 or op == 2 then
    if ends == 0 or ends > now + a then -- none, or from a clock that was ahead
      ends = now + a
    end
    if op == 2 then
      count = math.min(count + c, b)
    elseif count + c <= b then
      count, admitted = count + c, 1
    end
    if count > before then
      put(key, int(ends) .. ':' .. int(count), ends - now)
    end
  elseif op == 1 then
    if ends == b and count > 0 then
      count = math.max(count - a, 0)
      put(key, int(ends) .. ':' .. int(count), ends - now)
    end
  elseif op == 3 then
    redis.call('DEL', key)
  elseif op == 4 then
    ends = math.max(ends, now + a)
    block(key, ends)
  end
  reply[#reply + 1] = ends
  reply[#reply + 1] = before
  reply[#reply + 1] = admitted
  reply[#reply + 1] = flag
end
return reply
