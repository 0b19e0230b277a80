-- Prepaid credits, for the scripts that spend them.
--
-- The value is 'p' and the balance in units, which is negative if it is owed. No key
-- means 0. A balance does not expire.

local MOST = 9007199254740991

-- balance is nil if the key holds another type.
local function balance(key)
  local v = get(key)
  if not v then
    return 0
  end
  return tonumber(string.match(v, '^p(%-?%d+)$'))
end

-- add changes a balance by n units.
local function add(key, was, n)
  local is = math.max(math.min(was + n, MOST), -MOST)
  if is == 0 then
    redis.call('DEL', key)
  else
    redis.call('SET', key, 'p' .. int(is))
  end
end

-- from_credits is how many of n units credits pay where a plan has left units left.
local function from_credits(n, left, has)
  return math.min(math.max(n - math.max(left, 0), 0), math.max(has, 0))
end
