-- Stores a rule and counts its versions.
--
-- KEYS[1]  hash: name of the rule -> 'version document'
-- ARGV     the name, the document
-- reply    the version: unchanged if the document is the same
--
-- The hash is the only key that does not expire.

local old = redis.call('HGET', KEYS[1], ARGV[1]) or '0 '
local version, document = string.match(old, '^(%d+) (.*)$')
version = tonumber(version or 0)
if document == ARGV[2] and version > 0 then
  return version
end
version = version + 1
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', version) .. ' ' .. ARGV[2])
return version
