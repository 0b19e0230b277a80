-- The functions of every script, after clock.lua.

-- The last reply of every key. MIXED is added if other parameters are in use on
-- the key. WRONG_TYPE is a value of another program, algorithm or format: it is
-- left alone.
local DENIED, ADMITTED, BANNED, WRONG_TYPE, MIXED = 0, 1, 2, 3, 4

-- Most numbers of a batch are alike. They are kept under their negatives: for a positive index
-- miniredis makes an array of that length.
local texts = {}
local function int(x)
  local text = texts[-x]
  if not text then
    text = string.format('%.0f', x)
    if x > 0 then
      texts[-x] = text
    end
  end
  return text
end

-- number is tonumber for an argument.
local numbers = {}
local function number(text)
  local x = numbers[text]
  if not x then
    x = tonumber(text)
    numbers[text] = x
  end
  return x
end

-- put keeps text under key for us microseconds, rounded up to milliseconds.
local function put(key, text, us)
  redis.call('SET', key, text, 'PX', int(math.max(math.ceil(us / 1000), 1)))
end

-- get returns the text of a key, '' if it has another type, false if there is
-- none. Any other error is one of the script: a missing right, for example.
local function get(key)
  local v = redis.pcall('GET', key)
  if type(v) ~= 'table' then
    return v
  elseif not string.find(v.err, 'WRONGTYPE', 1, true) then
    redis.call('GET', key)
  end
  return ''
end

-- banned returns the end of a ban, a negative number, if it is in the future.
-- No ban is longer than 400 days.
local function banned(ends)
  return -ends > now and -ends - now <= 34560000000000
end

-- A mark of parameters is 0 to 919. span returns the longest time that they can
-- look ahead, rounded up by less than a quarter; the rest of the mark
-- distinguishes neighboring rates. A larger mark is of a later format.
local LAST_MARK = 919
local function span(mark)
  local s = math.floor(mark / 5)
  return math.floor((4 + s % 4) * 2 ^ math.floor(s / 4)) -- a power is a float in later versions of Lua
end
