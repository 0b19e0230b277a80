-- Several buckets in one step: all are charged, or none.
--
-- KEYS[i]  a bucket as in bucket.lua; one that occurs again is answered for its
--          own cost and those before it together
-- ARGV     four integers for each key: op, a, b, c
--            a = depth (burst * T)  b = longest wait  c = cost (n * T)
--            op is the same for all: 0 to charge, 6 to ask only
-- reply    now, then three integers for each key: TAT, overshoot, flag
--            as in bucket.lua; the TAT after the charge if all are admitted,
--            before it otherwise
--
-- A denial writes nothing.

local buckets, results, admitted = {}, {}, true

local function bucket(key)
  if not buckets[key] then
    local v, flag, ends = get(key)
    local tat = tonumber(v)
    if flag == 1 then
      tat = ends
    elseif not tat or tat ~= tat or tat < 0 then
      tat = 0
    end
    tat = math.floor(tat)
    buckets[key] = {first = tat, tat = tat, flag = flag}
  end
  return buckets[key]
end

for i = 1, #KEYS do
  local at = (i - 1) * 4
  local a, b, c = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local s = bucket(KEYS[i])
  local over
  if s.flag > 0 then
    over = s.tat - now + b
    admitted = admitted and s.flag == 1 and c == 0
  else
    local base = math.min(math.max(s.tat, now), now + a + b)
    over = base + c - now - a
    s.tat = base + c
    admitted = admitted and (c == 0 or over <= b)
  end
  results[i] = {tat = s.tat, over = over, bucket = s}
end

for i = 1, #KEYS do
  local r = results[i]
  local tat = r.tat
  if not admitted then
    tat = r.bucket.first
  end
  reply[#reply + 1] = tat
  reply[#reply + 1] = r.over
  reply[#reply + 1] = r.bucket.flag
end

if admitted and tonumber(ARGV[1]) == 0 then
  for i = 1, #KEYS do
    local s = buckets[KEYS[i]]
    if s.flag == 0 and s.tat > now and s.tat ~= s.first then
      put(KEYS[i], int(s.tat), s.tat - now)
      s.first = s.tat
    end
  end
end
return reply
