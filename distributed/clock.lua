-- The beginning of every script. now is this server's time in microseconds.
-- Only int turns numbers into text: Lua's own conversion loses digits.

local clock = redis.pcall('TIME')
if clock.err then
  error('TIME: -' .. clock.err, 0)
end
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local reply = {now}

-- A command that is executed after its callers have gone charges nothing: its last argument is
-- 'd' with the instant at which their patience ends, or an integer as all others.
local deadline = string.match(ARGV[#ARGV] or '', '^d(%d+)$')
if deadline and now > tonumber(deadline) then
  return reply
end

