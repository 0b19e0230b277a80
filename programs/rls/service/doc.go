// Package service answers envoy.service.ratelimit.v3: descriptors become keys,
// and a request is charged to the limits of all of its descriptors or of none.
//
// # How descriptors find their limit
//
// As in envoyproxy/ratelimit: the entries of a descriptor are looked up one by
// one, each in the level below the last. At a level the entry with this value
// comes first, then the longest prefix (a value that ends in an asterisk), then
// the key without a value. The limit is the one at the level of the last entry;
// a descriptor that ends elsewhere is not limited. Each combination of values
// has a bucket of its own.
//
// # Where it differs
//
// The limits are from package algo, by default token buckets, not fixed
// windows. A denied request is charged to none of its descriptors. A limit that
// would admit with a delay denies, because the service cannot hold a request
// back.
package service
