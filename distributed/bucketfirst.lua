-- Most calls: one bucket, to which nothing was given back, under the parameters that wrote it. They are
-- decided here, as acquire does below, because making the functions takes as long as a decision.
if #KEYS == 1 and ARGV[1] == '0' then
  local key, depth, wait, cost, mine = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[6])
  local v, tat, mark = redis.pcall('GET', key), 0, mine
  if v then
    tat, mark = string.match(type(v) == 'string' and v or '', '^(%d+)(%d%d%d)$')
    tat, mark = tonumber(tat), tonumber(mark)
  end
  if tat and mark == mine and tat <= now + 2 * depth + wait then
    local next, flag = math.max(tat, now) + cost, 1
    if cost > 0 and next - now - depth > wait then
      flag = 0
    elseif cost > 0 then
      redis.call('SET', key, string.format('%.0f%03d', next, mine), 'PX', string.format('%.0f', math.ceil((next - now) / 1000)))
    end
    return {now, tat, 0, flag}
  end
end

