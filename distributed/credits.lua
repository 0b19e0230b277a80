-- Prepaid credits, for the scripts that spend them.
--
-- The value is 'p' and the balance in units, which is negative if it is owed, and ' id units expiry'
-- for each receipt of a top-up, with the expiry in seconds. No key means 0. It expires with its
-- receipts, and only where the balance is 0.

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
  local is, rest, last = math.max(math.min(was + n, MOST), -MOST), '', 0
  for id, units, ends in string.gmatch(receipts[key], ' (%S+) (%d+) (%d+)') do
    if tonumber(ends) * 1000000 > now then
      rest, last = rest .. ' ' .. id .. ' ' .. units .. ' ' .. ends, math.max(last, tonumber(ends))
    end
  end
  if is ~= 0 then
    redis.call('SET', key, 'p' .. int(is) .. rest)
  elseif rest ~= '' then
    put(key, 'p0' .. rest, last * 1000000 - now)
  else
    redis.call('DEL', key)
  end
end

-- from_credits is how many of n units credits pay where a plan has left units left.
local function from_credits(n, left, has)
  return math.min(math.max(n - math.max(left, 0), 0), math.max(has, 0))
end
