-- The beginning of every script. now is this server's time in microseconds.
-- Only int turns numbers into text: Lua's own conversion loses digits.

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local reply = {now}

-- The last reply of every key.
local DENIED, ADMITTED, BANNED, WRONG_TYPE = 0, 1, 2, 3

local function int(x)
  return string.format('%.0f', x)
end

-- put keeps text under key for us microseconds, rounded up to milliseconds.
local function put(key, text, us)
  redis.call('SET', key, text, 'PX', int(math.max(math.ceil(us / 1000), 1)))
end

-- banned returns the end of a ban, a negative number, if it is in the future.
-- No ban is longer than 400 days.
local function banned(ends)
  return -ends > now and -ends - now <= 34560000000000
end
