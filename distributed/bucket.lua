-- Token bucket, leaky bucket, pacer: the generic cell rate algorithm.
--
-- The state of a bucket is its theoretical arrival time (TAT), the instant at
-- which it is full again, in microseconds of this server's clock. No key means
-- full. The value is
--
--   TATccc                    an integer, as long as nothing was given back
--   TATccc:account:voided     account: the microseconds given back so far, which
--                             mark the charges made from now on; charges with a
--                             mark below voided cannot be refunded
--   -endccc[:account:voided]  the end of a ban
--   ...;TATccc                a later TAT, for all parameters but the ones that wrote the key
--
-- ccc is the mark of the parameters that wrote the TAT, and bounds the debt that
-- they can have written: see span in prelude.lua.
--
-- A changed limit: under parameters that meet a key of others, it owes at most what a key
-- owes that has just spent everything. Others still see the debt that was there: each charge
-- counts for both.
--
-- KEYS[i]  a bucket; it may occur more than once, entries run in order
-- ARGV     six integers for each key: op, a, b, c, d, mark of the parameters
--            0 acquire     a = depth (burst * T)  b = longest wait
--                          c = cost (n * T, 0 peeks)
--            1 refund      a = most to give back  b = when the charge has drained
--                          c = TAT after the charge  d = its mark
--            2 force       a, b, c as acquire; charges up to the largest debt
--                          d = 1 if earlier charges cannot be refunded then
--            3 reset       a, b as acquire
--            4 ban         a = how long
--            6 acquire all a, b, c as acquire; op has 16 times the number of entries, from
--                          this one on, that are charged together or not at all
--            7 peek all    as 6, but charges nothing
--           10 reserve     as acquire, d = T; the next key is the record of the charge, its
--                          entry has b = units  c = life
--           11 settle      a, b as acquire  c = units  d = T; the next key is the record
--           13 give back   a, b as acquire  c = most to give back, of whatever charge
-- reply    now, then three integers for each key: TAT before (or the end of the
--          ban), account (of give back: what was given), flag; entries that are charged together follow one
--          another; for the record of a reservation: 0 if there is none, 1 if it is open, 2 if it is
--          settled, and its units, flag
--
-- A denial writes nothing, except that a TAT that neither these parameters nor
-- those that wrote it can have written under this clock is clamped, because the
-- clock stepped back. A key lives until its TAT; with an account, until the
-- charges made before have drained.

local strict, strict_mark = 0, 0 -- the later TAT of the key that was read last; 0: none

-- read returns the mark of a bucket too.
local function read(key)
  local v = get(key)
  strict = 0
  if not v then
    return 0, 0, 0, DENIED, 0
  end
  local tat, mark, account, voided, later, of = string.match(v or '', '^(%-?%d+)(%d%d%d):?(%d*):?(%d*);?(%d-)(%d?%d?%d?)$')
  tat, mark, account, voided = tonumber(tat), tonumber(mark), tonumber(account) or 0, tonumber(voided) or 0
  if not tat or mark > LAST_MARK then
    return 0, 0, 0, WRONG_TYPE, 0
  elseif banned(tat) then
    return -tat, account, voided, BANNED, mark
  elseif tat < 0 then
    tat = 0
  end
  strict, strict_mark = tonumber(later) or 0, tonumber(of) or 0
  return tat, account, voided, DENIED, mark
end

local function write(key, tat, account, voided, longest, mark)
  local text, last = int(tat) .. string.format('%03d', mark), tat
  if account > 0 then
    text = text .. ':' .. int(account) .. ':' .. int(voided)
  end
  if strict > math.max(tat, now) then
    text, last, longest = text .. ';' .. int(strict) .. string.format('%03d', strict_mark), strict, math.huge
  end
  if account > 0 then
    local ttl = math.max(last - now, redis.call('PTTL', key) * 1000)
    put(key, text, math.min(ttl, longest))
  elseif last > now then
    put(key, text, last - now)
  else
    redis.call('DEL', key)
  end
end

-- load reads a bucket and clamps an implausible TAT, which voids the charges
-- that led to it. The debt under other parameters is at most that of a key which has just
-- spent everything.
local function load(key, depth, wait, mine)
  local tat, account, voided, flag, mark = read(key)
  local longest, mixed, clamped = 2 * depth + wait, 0, false
  local most = now + longest
  if flag == DENIED and mark ~= mine and math.max(tat, strict) > now then
    mixed = MIXED
    if strict <= tat then
      strict, strict_mark = tat, mark
    end
    longest = math.max(longest, span(strict_mark))
    strict = math.min(strict, now + longest)
    tat, most = strict, now + depth + wait
  end
  if flag == DENIED and tat > most then
    tat, account, clamped = most, account + 1, true
    voided = account
  end
  return tat, account, voided, flag, mine, mixed, longest, clamped
end

-- charge is the algorithm: the TAT after the charge, and whether it fits.
local function charge(tat, depth, wait, cost)
  local next = math.max(tat, now) + cost
  return next, cost == 0 or next - now - depth <= wait
end

-- owe adds to the later TAT what moves a TAT.
local function owe(tat, next)
  if strict > 0 then
    strict = math.max(strict, now) + next - math.max(tat, now)
  end
end

local function answer(tat, account, flag)
  reply[#reply + 1] = tat
  reply[#reply + 1] = account
  reply[#reply + 1] = flag
end

local function acquire(key, depth, wait, cost, mine)
  local tat, account, voided, flag, mark, mixed, longest, clamped = load(key, depth, wait, mine)
  if flag == DENIED then
    local next, fits = charge(tat, depth, wait, cost)
    if fits then
      flag = ADMITTED
    end
    if fits and cost > 0 then
      owe(tat, next)
      write(key, next, account, voided, longest, mine)
    elseif clamped then
      write(key, tat, account, voided, longest, mark)
    end
  end
  answer(tat, account, flag + mixed)
end

-- refund gives back the remaining weight of a charge. A later TAT than the
-- key's is from before Redis lost the key, or before its clock stepped back.
local function refund(key, most, drained, after, marked)
  local tat, account, voided, flag, mark = read(key)
  after = after - (account - marked)
  local given = math.min(most, math.max(after, drained) - now, tat - now)
  if flag == DENIED and given > 0 and marked >= voided and marked <= account and after <= tat then
    owe(tat, tat - given)
    write(key, tat - given, account + given, voided, math.huge, mark)
  end
  return tat, account, flag
end

-- give_back gives back cost ticks as far as any charge still weighs.
local function give_back(key, depth, wait, cost, mine)
  local tat, account, voided, flag, mark, _, longest = load(key, depth, wait, mine)
  local given = flag == DENIED and math.max(math.min(cost, tat - now), 0) or 0
  if given > 0 then
    owe(tat, tat - given)
    write(key, tat - given, account + given, voided, longest, mark)
  end
  return tat, given, flag
end

-- force charges up to the largest debt of its parameters.
local function force(key, depth, wait, cost, cut, mine)
  local tat, account, voided, flag, mark, _, longest = load(key, depth, wait, mine)
  if flag == DENIED then
    local largest, next, after = math.max(now + 2 * depth + wait, tat), math.max(tat, now) + cost, account
    if next > largest or cut == 1 then
      after = account + 1
      voided = after
    end
    owe(tat, math.min(next, largest))
    write(key, math.min(next, largest), after, voided, longest, mark)
  end
  return tat, account, flag
end

-- reset keeps the account until the charges made before have drained.
local function reset(key, depth, wait)
  local tat, account, _, flag, mark = read(key)
  local ttl = math.min(redis.call('PTTL', key) * 1000, math.max(2 * depth + wait, span(mark)))
  strict = 0
  if flag == WRONG_TYPE then
    return tat, account, flag
  elseif ttl > 0 then
    write(key, now, account + 1, account + 1, ttl, mark)
  else
    redis.call('DEL', key)
  end
  return tat, account, flag
end

local function ban(key, long)
  local tat, account, _, flag, mark = read(key)
  if flag == WRONG_TYPE then
    return tat, account, flag
  end
  tat = math.max(tat, now + long)
  local text, ttl = '-' .. int(tat) .. string.format('%03d', mark), tat - now
  if account > 0 then
    text = text .. ':' .. int(account + 1) .. ':' .. int(account + 1)
    ttl = math.max(ttl, redis.call('PTTL', key) * 1000)
  end
  put(key, text, ttl)
  return tat, account, BANNED
end

-- together charges the entries first to last, or none of them.
local function together(op, first, last)
  local buckets, all = {}, true
  for i = first, last do
    local at, key = (i - 1) * 6, KEYS[i]
    local depth, wait, cost = number(ARGV[at + 2]), number(ARGV[at + 3]), number(ARGV[at + 4])
    local s = buckets[key]
    if not s then
      local mine = number(ARGV[at + 6])
      local tat, account, voided, flag, mark, mixed, longest, clamped = load(key, depth, wait, mine)
      s = {mine = mine, first = tat, tat = tat, account = account, voided = voided, flag = flag, mark = mark,
        mixed = mixed, longest = longest, clamped = clamped, strict = strict, strict_mark = strict_mark}
      buckets[key] = s
    end
    local flag, fits, before = s.flag, false, s.tat
    if flag == DENIED then
      s.tat, fits = charge(s.tat, depth, wait, cost)
      if fits then
        flag = ADMITTED
      end
    end
    all = all and fits
    answer(before, s.account, flag + s.mixed)
  end
  for key, s in pairs(buckets) do
    local tat = s.first
    strict, strict_mark = s.strict, s.strict_mark
    if all and op == 6 and s.tat > s.first then
      tat = s.tat
      owe(s.first, tat)
    end
    if s.clamped or (tat > s.first and tat > now) then
      write(key, tat, s.account, s.voided, s.longest, s.mine)
    end
  end
end

-- record returns the state of a reservation, its units, and the fields that a refund
-- needs. The value is 'r' with the units, T, when the charge has drained, the TAT after it
-- and its mark; or 'R' with its settled units.
local function record(key)
  local v = get(key)
  if not v then
    return 0, 0
  end
  local settled = string.match(v, '^R(%d+)$')
  if settled then
    return 2, tonumber(settled)
  end
  local units, unit, drained, after, marked = string.match(v, '^r(%d+):(%d+):(%d+):(%d+):(%d+)$')
  return units and 1, tonumber(units), tonumber(unit), tonumber(drained), tonumber(after), tonumber(marked)
end

local function reserve(key, kept, depth, wait, cost, unit, mine, units, life)
  local state, was = record(kept)
  if state ~= 0 then
    local tat, account, _, flag = read(key)
    answer(tat, account, flag)
    answer(state or 0, was or 0, state and ADMITTED or WRONG_TYPE)
    return
  end
  acquire(key, depth, wait, cost, mine)
  if reply[#reply] % MIXED == ADMITTED then
    local after, account = math.max(reply[#reply - 2], now) + cost, reply[#reply - 1]
    local start = math.min(now + math.max(after - now - depth, 0), after - cost)
    put(kept, 'r' .. int(units) .. ':' .. int(unit) .. ':' .. int(start + cost) .. ':' .. int(after) .. ':' .. int(account), life)
  end
  answer(0, 0, ADMITTED)
end

local function settle(key, kept, depth, wait, actual, unit, mine)
  local state, units, paid, drained, after, marked = record(kept)
  if state ~= 1 then
    answer(0, 0, DENIED)
    answer(state or 0, units or 0, state and ADMITTED or WRONG_TYPE)
    return
  end
  local tat, account, flag = 0, 0, DENIED
  if actual < units then
    tat, account, flag = refund(key, (units - actual) * paid, drained, after, marked)
  elseif actual > units then
    tat, account, flag = force(key, depth, wait, (actual - units) * unit, unit < paid and 1 or 0, mine)
  end
  if flag ~= WRONG_TYPE then
    put(kept, 'R' .. int(actual), redis.call('PTTL', kept) * 1000)
  end
  answer(tat, account, flag)
  answer(state, units, ADMITTED)
end

local i = 1
while i <= #KEYS do
  local key, at = KEYS[i], (i - 1) * 6
  local op = number(ARGV[at + 1])
  local a, b = number(ARGV[at + 2]), number(ARGV[at + 3])
  local c, d = number(ARGV[at + 4]), number(ARGV[at + 5])
  local mine = number(ARGV[at + 6])
  if op == 0 then
    acquire(key, a, b, c, mine)
  elseif op == 1 then
    answer(refund(key, a, b, c, d))
  elseif op == 2 then
    answer(force(key, a, b, c, d, mine))
  elseif op == 3 then
    answer(reset(key, a, b))
  elseif op == 4 then
    answer(ban(key, a))
  elseif op == 13 then
    answer(give_back(key, a, b, c, mine))
  elseif op == 10 then
    reserve(key, KEYS[i + 1], a, b, c, d, mine, number(ARGV[at + 8]), number(ARGV[at + 9]))
    i = i + 1
  elseif op == 11 then
    settle(key, KEYS[i + 1], a, b, c, d, mine)
    i = i + 1
  else
    local last = i + math.floor(op / 16) - 1
    together(op % 16, i, last)
    i = last
  end
  i = i + 1
end
return reply
