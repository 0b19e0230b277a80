-- The operations on prepaid credits alone.
--
-- KEYS[i]  a balance; for a top-up KEYS[i + 1] is its receipt
-- ARGV     three integers for each key: op, n, ttl
--            0 read
--            1 add      n units, or charge them if n is negative
--            2 top up   n units, unless there is a receipt, which is kept for ttl
--                       microseconds; its own entry is ignored
--            3 forget
-- reply    now, then two integers for each key: balance before, flag; a top-up above the
--          largest balance is DENIED

local i = 1
while i <= #KEYS do
  local key, at = KEYS[i], (i - 1) * 3
  local op, n, ttl = number(ARGV[at + 1]), number(ARGV[at + 2]), number(ARGV[at + 3])
  local has, flag = balance(key), ADMITTED
  if not has then
    has, flag = 0, WRONG_TYPE
  elseif op == 1 then
    add(key, has, n)
  elseif op == 2 and not get(KEYS[i + 1]) then
    if math.max(has, 0) + n > MOST then
      flag = DENIED
    else
      add(key, has, n)
      put(KEYS[i + 1], int(n), ttl)
    end
  elseif op == 3 then
    redis.call('DEL', key)
  end
  for _ = 1, op == 2 and 2 or 1 do
    reply[#reply + 1] = has
    reply[#reply + 1] = flag
    i = i + 1
  end
end
return reply
