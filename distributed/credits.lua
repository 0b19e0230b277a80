-- Prepaid credits.
--
-- The value is a hash. 'b' is the balance in units, which is negative if it is owed; 'r' and an id are
-- the units of a top-up, and the second in which its receipt expires; 'o' and a number from 'f' to 'l'
-- are that second and the id, oldest first. So each command takes the same time, however many receipts
-- there are: it removes at most two, more than one can add. No key means 0 and no receipt. It does not
-- expire, because a server that must evict may choose any key that does. A text of an earlier version,
-- 'p', the balance, and ' id units second' for each receipt, becomes a hash when it is first read.
--
-- KEYS[i]  a balance; for a top-up KEYS[i + 1] is the same name, a colon and the id: the receipt of a
--          still earlier version, which is only read, so a receipt is lost only with its balance
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

local first, last = 1, 0 -- of the receipts of the key that was read last

local function keep(key, id, units, ends)
  last = last + 1
  redis.call('HSET', key, 'r' .. id, units .. ' ' .. ends, 'o' .. int(last), ends .. ' ' .. id, 'f', int(first), 'l', int(last))
end

-- hashed makes a hash of a text. It returns the balance, nil for a value of another program.
local function hashed(key)
  local has, rest = string.match(get(key), '^p(%-?%d+)(.*)$')
  if has then
    redis.call('DEL', key)
    redis.call('HSET', key, 'b', has)
    for id, units, ends in string.gmatch(rest, ' (%S+) (%d+) (%d+)') do
      keep(key, id, units, ends)
    end
  end
  return tonumber(has)
end

-- balance is nil if the key holds another type.
local function balance(key)
  first, last = 1, 0
  local v = redis.pcall('HMGET', key, 'b', 'f', 'l')
  if v.err then
    return hashed(key)
  elseif v[1] then
    first, last = tonumber(v[2] or 1), tonumber(v[3] or 0)
    return tonumber(v[1])
  end
  return redis.call('EXISTS', key) == 0 and 0 or nil
end

-- trim removes the oldest receipts that have expired, at most two.
local function trim(key)
  for _ = 1, 2 do
    local ends, id = string.match(first <= last and redis.call('HGET', key, 'o' .. int(first)) or '', '^(%d+) (.*)$')
    if not ends or tonumber(ends) * 1000000 > now then
      return
    end
    redis.call('HDEL', key, 'o' .. int(first))
    if string.match(redis.call('HGET', key, 'r' .. id) or '', ' (%d+)$') == ends then -- not a later one of this id
      redis.call('HDEL', key, 'r' .. id)
    end
    first = first + 1
    redis.call('HSET', key, 'f', int(first))
  end
end

-- add changes a balance by n units.
local function add(key, was, n)
  local is = math.max(math.min(was + n, MOST), -MOST)
  trim(key)
  if is == 0 and first > last then
    redis.call('DEL', key)
  else
    redis.call('HSET', key, 'b', int(is))
  end
end

-- top_up returns the units that the receipt states, and a flag.
local function top_up(key, receipt, has, n, ttl)
  local id = string.sub(receipt, #key + 2)
  local units, ends = string.match(redis.call('HGET', key, 'r' .. id) or '', '^(%d+) (%d+)$')
  if units and tonumber(ends) * 1000000 > now then
    return tonumber(units), ADMITTED
  end
  units = tonumber(get(receipt) or nil)
  if units then
    return units, ADMITTED
  elseif math.max(has, 0) + n > MOST then
    return n, DENIED
  end
  keep(key, id, int(n), int(math.ceil((now + ttl) / 1000000)))
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
    stated, flag = top_up(key, KEYS[i + 1], has, n, ttl)
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
