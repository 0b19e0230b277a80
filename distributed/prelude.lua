-- What every script begins with. now is this server's time in microseconds.
-- Numbers are turned into text by int alone: Lua's own way loses digits.

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local reply = {now}

local function int(x)
  return string.format('%.0f', x)
end

-- put keeps text under key for us microseconds, rounded up to milliseconds.
local function put(key, text, us)
  redis.call('SET', key, text, 'PX', int(math.max(math.ceil(us / 1000), 1)))
end

-- get returns the text under key, '' if there is none, and a flag: 1 and when
-- it ends if the key is blocked, 2 if it holds another type.
local function get(key)
  local v = redis.pcall('GET', key)
  if type(v) == 'table' and v.err then
    return '', 2, 0
  end
  v = v or ''
  local ends = tonumber(string.match(v, '^%-(%d+)$') or 0)
  if ends > now and ends - now <= 34560000000000 then -- no block is longer than 400 days
    return v, 1, ends
  end
  return v, 0, 0
end

-- block writes what get takes for a block.
local function block(key, ends)
  put(key, '-' .. int(ends), ends - now)
end

