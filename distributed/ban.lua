-- Bans of keys that keep exceeding a limit. decide is the script of that limit, for
-- KEYS and ARGV that are handed to it; it appends to reply.
--
-- The record of a key is 'bcount:until:level:ends': the denials that were counted and
-- the end of their period, the level of the last ban and its end, in microseconds of
-- this server's clock. No key means none of them.
--
-- KEYS[i]  a key of the limit, and then its record
-- ARGV     ARGS integers for each: of the limit as its script says, and then
--            0 acquire  denials that cause a ban, 0 to count none, their period, first and longest ban
--            3 reset    the entry of the limit is ignored
-- reply    now, then REPLIES integers for each: of the limit as its script says, 0 if it
--          was not asked; end of the ban, 1 if the limit was asked, flag last
--
-- A key that is banned is not charged, and no ban lasts longer than the longest. Its record expires when the ban is forgotten.

-- read returns a record; nothing if it is none.
local function read(key)
  local v = get(key)
  if not v then
    return 0, 0, 0, 0
  end
  local count, till, level, ends = string.match(v, '^b(%d+):(%d+):(%d+):(%d+)$')
  return tonumber(count), tonumber(till), tonumber(level), tonumber(ends)
end

-- length is the length of the ban of a level, from 1.
local function length(level, first, longest)
  return math.floor(math.min(first * 2 ^ (level - 1), longest)) -- a power is a float in later versions of Lua
end

-- memory is how long after a ban its level is remembered: each level below for as
-- long as its ban.
local function memory(level, first, longest)
  local sum = 0
  for i = 1, level do
    sum = sum + length(i, first, longest)
  end
  return sum
end

-- remembered is the level at now of one that ended at ends.
local function remembered(level, ends, first, longest)
  local forgotten = ends + memory(level, first, longest)
  while level > 0 and forgotten - now <= memory(level - 1, first, longest) do
    level = level - 1
  end
  return level
end

-- strike counts a denial. It returns the end of the ban, if it causes one.
local function strike(key, denials, period, first, longest)
  local count, till, level, ends = read(key)
  if till <= now or till > now + period then
    count, till = 0, now + period
  end
  count = count + 1
  if count >= denials then
    level = remembered(level, ends, first, longest)
    if length(level, first, longest) < longest then
      level = level + 1
    end
    count, till, ends = 0, 0, now + length(level, first, longest)
  end
  local text = 'b' .. int(count) .. ':' .. int(till) .. ':' .. int(level) .. ':' .. int(ends)
  put(key, text, math.max(till, ends + memory(level, first, longest)) - now)
  return ends
end

-- shortened is the end of a ban. One that is later than the longest ban, from a clock that stepped
-- back, is written anew.
local function shortened(key, longest)
  local count, till, level, ends = read(key)
  if ends > now + longest then
    ends = now + longest
    put(key, 'b' .. int(count) .. ':' .. int(till) .. ':' .. int(level) .. ':' .. int(ends), redis.call('PTTL', key) * 1000)
  end
  return ends
end

local function fill(n)
  while #reply < n do
    reply[#reply + 1] = 0
  end
end

-- entry decides about the limit at i, from 0, unless its key is banned.
local function entry(i)
  local key, record, at, args = KEYS[i + 1], KEYS[i + 2], i * ARGS, {}
  local op, denials, period, first, longest = (table.unpack or unpack)(ARGV, at + ARGS + 1, at + ARGS + 5)
  local begin, ends, asked, flag = #reply, 0, 0, ADMITTED
  local count, _, _, banned = read(record)
  if not count then
    flag = WRONG_TYPE
  elseif tonumber(op) == 3 then
    redis.call('DEL', record)
  elseif banned > now then
    ends, flag = shortened(record, tonumber(longest)), BANNED
  else
    for j = 1, ARGS do
      args[j] = ARGV[at + j]
    end
    decide({key}, args)
    asked = 1
    if reply[#reply] % MIXED == DENIED then
      flag = DENIED
      if tonumber(denials) > 0 then
        ends = strike(record, tonumber(denials), tonumber(period), tonumber(first), tonumber(longest))
        flag = ends > now and BANNED or DENIED
      end
    end
  end
  fill(begin + REPLIES)
  reply[#reply + 1] = ends
  reply[#reply + 1] = asked
  fill(begin + 2 * REPLIES - 1)
  reply[#reply + 1] = flag
end

for i = 0, #KEYS - 1, 2 do
  entry(i)
end
return reply
