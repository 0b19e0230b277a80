-- The operations on prepaid credits alone.
--
-- KEYS[i]  a balance; for a top-up KEYS[i + 1] is the same name, a colon and the id; no such key
--          is touched, so a receipt is lost only with its balance
-- ARGV     three integers for each key: op, n, ttl
--            0 read
--            1 add      n units, or charge them if n is negative
--            2 top up   n units, unless there is a receipt, which is kept for ttl
--                       microseconds; its own entry is ignored, and its reply begins
--                       with the units that it states
--            3 forget
-- reply    now, then two integers for each key: balance before, flag; a top-up above the
--          largest balance is DENIED

-- top_up returns the units that the receipt states, and a flag.
local function top_up(key, id, has, n, ttl)
  for of, units, ends in string.gmatch(receipts[key], ' (%S+) (%d+) (%d+)') do
    if of == id and tonumber(ends) * 1000000 > now then
      return tonumber(units), ADMITTED
    end
  end
  if math.max(has, 0) + n > MOST then
    return n, DENIED
  end
  receipts[key] = receipts[key] .. ' ' .. id .. ' ' .. int(n) .. ' ' .. int(math.ceil((now + ttl) / 1000000))
  add(key, has, n)
  return n, ADMITTED
end

local function answer(value, flag)
  reply[#reply + 1] = value
  reply[#reply + 1] = flag
end

local i = 1
while i <= #KEYS do
  local key, at = KEYS[i], (i - 1) * 3
  local op, n, ttl = number(ARGV[at + 1]), number(ARGV[at + 2]), number(ARGV[at + 3])
  local has, flag, stated = balance(key), ADMITTED, n
  if not has then
    has, flag = 0, WRONG_TYPE
  elseif op == 1 then
    add(key, has, n)
  elseif op == 2 then
    stated, flag = top_up(key, string.sub(KEYS[i + 1], #key + 2), has, n, ttl)
  elseif op == 3 then
    redis.call('DEL', key)
  end
  answer(has, flag)
  if op == 2 then
    answer(stated, flag)
    i = i + 1
  end
  i = i + 1
end
return reply
