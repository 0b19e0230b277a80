-- Prepaid credits.
--
-- The value is 'p' and the balance in units, which is negative if it is owed, and ' id units expiry'
-- for each receipt of a top-up, with the expiry in seconds. No key means 0 and no receipt. It does
-- not expire, because a server that must evict may choose any key that does.
--
-- KEYS[i]  a balance; for a top-up KEYS[i + 1] is the same name, a colon and the id; no such key
--          is touched, so a receipt is lost only with its balance
-- ARGV     three integers for each key: op, n, ttl
--            0 read
--            1 add      n units, or charge them if n is negative
--            2 top up   n units, unless there is a receipt, which is kept for ttl
--                       microseconds; its own entry is ignored, and its reply begins
--                       with the units that it states
--            3 spend    n units if the balance has them
-- reply    now, then two integers for each key: balance before, flag; a top-up above the
--          largest balance and units that the balance has not are DENIED

local MOST = 9007199254740991

local receipts = {} -- by key

-- balance is nil if the key holds another type.
local function balance(key)
  local v = get(key)
  if not v then
    receipts[key] = ''
    return 0
  end
  local has, rest = string.match(v, '^p(%-?%d+)(.*)$')
  receipts[key] = rest
  return tonumber(has)
end

-- add changes a balance by n units.
local function add(key, was, n)
  local is, rest = math.max(math.min(was + n, MOST), -MOST), ''
  for id, units, ends in string.gmatch(receipts[key], ' (%S+) (%d+) (%d+)') do
    if tonumber(ends) * 1000000 > now then
      rest = rest .. ' ' .. id .. ' ' .. units .. ' ' .. ends
    end
  end
  if is == 0 and rest == '' then
    redis.call('DEL', key)
  else
    redis.call('SET', key, 'p' .. int(is) .. rest)
  end
end

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
  elseif op == 3 and n > math.max(has, 0) then
    flag = DENIED
  elseif op == 3 and n > 0 then
    add(key, has, -n)
  end
  answer(has, flag)
  if op == 2 then
    answer(stated, flag)
    i = i + 1
  end
  i = i + 1
end
return reply
