-- Sliding window over two counters: the last window's count weighs as much as
-- the sliding window still covers of it.
--
-- The value is 'index:previous:current', index counting windows since the
-- epoch of this server's clock.
--
-- KEYS[i]  a window; it may occur more than once, entries run in order
-- ARGV     four integers for each key: op, a, b, c
--            0 acquire  a = length  b = limit  c = units
--            1 refund   a = length  b = index that was charged  c = units
--            2 owe      a = length  b = most that is counted    c = units
--            3 reset
--            4 block    a = how long
-- reply    now, then five integers for each key: index (or end of the block),
--          previous, current before, admitted, flag
--            admitted   1 or 0
--            flag       0, 1: blocked, 2: the key is of another type
--
-- previous * length stays below 2^53, so that the weighing is exact. A denial
-- writes nothing. The key expires when both counters have left the window.

local function read(key, length)
  local v, flag, ends = get(key)
  if flag == 1 then
    return ends, 0, 0, flag
  end
  local index = math.floor(now / length)
  local i, p, c = string.match(v, '^(%d+):(%d+):(%d+)$')
  i, p, c = tonumber(i or 0), tonumber(p or 0), tonumber(c or 0)
  if i >= index then -- this window, or from a clock that was ahead
    return index, p, c, flag
  elseif i == index - 1 then
    return index, c, 0, flag
  end
  return index, 0, 0, flag
end

for i = 1, #KEYS do
  local key, at = KEYS[i], (i - 1) * 4
  local op = tonumber(ARGV[at + 1])
  local a, b, c = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local length = a
  if op > 2 then
    length = 1
  end
  local index, prev, curr, flag = read(key, length)
  local before, admitted, changed = curr, 0, false
  local elapsed = now - index * length
  if flag == 2 or (flag == 1 and op < 3) then
    admitted = 0
  elseif op == 0 then
    if math.ceil(prev * (length - elapsed) / length) + curr + c <= b then
      admitted = 1
      curr = curr + c
    end
  elseif op == 1 then
    if index == b then
      curr = math.max(curr - c, 0)
    elseif index == b + 1 then
      local left = math.max(prev - c, 0)
      changed = left < prev
      prev = left
    end
  elseif op == 2 then
    curr = math.min(curr + c, b)
  elseif op == 3 then
    redis.call('DEL', key)
  elseif op == 4 then
    -- The key lives as long as its counters, or its block, mean something.
    local ends = now + math.max(a, redis.call('PTTL', key) * 1000)
    if flag == 1 then
      ends = math.max(ends, index)
    end
    index = ends
    block(key, index)
  end
  if op < 3 and (changed or curr ~= before) then
    put(key, int(index) .. ':' .. int(prev) .. ':' .. int(curr), 2 * length - elapsed)
  end
  reply[#reply + 1] = index
  reply[#reply + 1] = prev
  reply[#reply + 1] = before
  reply[#reply + 1] = admitted
  reply[#reply + 1] = flag
end
return reply
