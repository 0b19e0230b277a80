-- A region's part of a limit that several regions share: decide.Escrow.
--
-- The value is 'e' and nine integers with a colon before each: balance, ends, since,
-- asked, demand, trip, leased, coming and next; see decide.EscrowState. 'E:end' is the end of a
-- ban. No key means that nothing is held or owed.
--
-- KEYS[i]  a key; it may occur more than once, entries run in order
-- ARGV     seven integers for each key: op, a, b, c, d, e, f
--            0 acquire  a = units (0 peeks)  b = advance  c = hold  d = memory
--                       e = patience
--            1 refund, 2 force  the same; a = units to give back, or to charge
--            3 reset
--            4 ban      a = how long
--           12 lease    a = units that it brought  b = how long it took, -1 if the
--                       shared limit did not answer  c = hold  d = memory  e = its name
--                       f = wait until the next one
-- reply    now, then five integers for each key: balance before (or the end of the
--          ban), units to lease, name of the lease, when to ask again, flag
--
-- A denial writes nothing but who leases.

local SLOT, TRIP, MAX_WAIT, MAX_DEBT = 1000000, 100000, 10000000, 1099511627776

-- read returns the state, which is aged, and the flag.
local function read(key, memory)
  local s = {balance = 0, ends = 0, since = 0, asked = 0, demand = 0, trip = TRIP, leased = 0, coming = 0, next = 0}
  local v = get(key)
  if not v then
    return s, DENIED
  end
  local ban = string.match(v, '^E:(%d+)$')
  if ban then
    if banned(-tonumber(ban)) then
      s.balance = tonumber(ban)
      return s, BANNED
    end
    return s, DENIED
  end
  local b, ends, since, asked, demand, trip, leased, coming, next =
    string.match(v, '^e:(%-?%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+)$')
  if not b then
    return s, WRONG_TYPE
  end
  s.balance, s.ends, s.since, s.asked = tonumber(b), tonumber(ends), tonumber(since), tonumber(asked)
  s.demand, s.trip, s.leased, s.next = tonumber(demand), tonumber(trip), tonumber(leased), tonumber(next)
  s.coming = tonumber(coming)
  if s.ends <= now then
    s.balance, s.ends = 0, 0
  end
  s.ends = math.min(s.ends, now + memory)
  if s.leased <= now then
    s.leased, s.coming = 0, 0
  end
  if s.next > now + MAX_WAIT then
    s.next = 0
  end
  return s, DENIED
end

local function write(key, s)
  local till = math.max(s.since + 2 * SLOT, s.leased, s.next)
  if s.balance ~= 0 then
    till = math.max(till, s.ends)
  end
  local text = 'e:' .. int(s.balance) .. ':' .. int(s.ends) .. ':' .. int(s.since) .. ':' .. int(s.asked)
    .. ':' .. int(s.demand) .. ':' .. int(s.trip) .. ':' .. int(s.leased)
    .. ':' .. int(s.coming) .. ':' .. int(s.next)
  if till > now then
    put(key, text, till - now)
  else
    redis.call('DEL', key)
  end
end

-- count begins a new slot if it is time.
local function count(s)
  local age = now - s.since
  if age >= 0 and age < SLOT then
    return
  end
  s.demand = 0
  if age >= 0 and age < 2 * SLOT then
    s.demand = s.asked
  end
  s.since, s.asked = now, 0
end

-- target is the balance that a lease should lead to.
local function target(s, n, admitted, hold)
  local low = math.floor(math.floor(math.max(s.demand, s.asked) * s.trip / SLOT) * 3 / 2)
  if not admitted then
    return math.min(math.max(2 * low, n), hold)
  elseif s.balance < math.min(low, hold) then
    return math.min(2 * low, hold)
  end
  return 0
end

-- acquire returns whether n units are admitted, and how many to lease.
local function acquire(s, n, advance, hold, memory, patience)
  local admitted, want = s.balance + advance >= n, 0
  count(s)
  s.asked = s.asked + n
  if admitted then
    s.balance = s.balance - n
    if s.balance < 0 then
      s.ends = now + memory
    end
  end
  if s.leased > now + patience then -- the clock stepped back
    s.leased, s.coming = 0, 0
  end
  if s.leased == 0 and s.next <= now then
    want = math.max(target(s, n, admitted, hold) - s.balance, 0)
    if want > 0 then
      s.leased, s.coming = now + patience, want
    end
  end
  return admitted, want
end

-- give gives back n units, or charges n more below 0.
local function give(s, n, hold, memory)
  local was = s.balance
  s.balance = math.max(was + n, -MAX_DEBT)
  if n > 0 then
    s.balance = math.max(was, math.min(s.balance, hold - s.coming))
  end
  if (s.balance < 0 and n < 0) or (s.balance > 0 and was <= 0) then
    s.ends = now + memory
  end
end

local function lease(s, name, units, trip, wait, hold, memory)
  if s.leased ~= name or name == 0 then
    return
  end
  s.leased, s.coming, s.next = 0, 0, now + math.min(wait, MAX_WAIT)
  if trip >= 0 then
    s.trip = math.max(trip, s.trip - math.floor(s.trip / 8))
  end
  s.balance = math.min(s.balance + units, hold)
  if (s.balance > 0 and units > 0) or (s.balance < 0 and trip >= 0) then
    s.ends = now + memory
  end
end

for i = 1, #KEYS do
  local key, at, words = KEYS[i], (i - 1) * 7, {}
  for j = 1, 7 do
    words[j] = number(ARGV[at + j])
  end
  local op, a, b, hold, memory, patience, wait = (table.unpack or unpack)(words)
  local s, flag = read(key, memory)
  local before, want, admitted = s.balance, 0
  if flag == WRONG_TYPE then
    before = 0
  elseif op == 3 then
    redis.call('DEL', key)
  elseif op == 4 then
    before = now + a
    if flag == BANNED then
      before = math.max(before, s.balance)
    end
    put(key, 'E:' .. int(before), before - now)
    flag = BANNED
  elseif flag == BANNED then
    want = 0
  elseif op == 0 then
    if a == 0 then
      flag = ADMITTED
    else
      admitted, want = acquire(s, a, b, hold, memory, patience)
      flag = admitted and ADMITTED or DENIED
      if admitted or want > 0 then
        write(key, s)
      end
    end
  elseif op == 12 then
    lease(s, patience, a, b, wait, hold, memory)
    write(key, s)
  else
    give(s, op == 1 and a or -a, hold, memory)
    write(key, s)
  end
  local retry = s.trip
  if s.leased == 0 then
    retry = retry + math.max(s.next - now, 0)
  end
  reply[#reply + 1] = before
  reply[#reply + 1] = want
  reply[#reply + 1] = s.leased
  reply[#reply + 1] = retry
  reply[#reply + 1] = flag
end
return reply
