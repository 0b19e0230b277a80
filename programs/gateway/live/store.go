package live

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

// OpenStore opens the store that the file of a program names: nil for the local one. Programs
// share a prefix only if their files say so: as instances of one they would halve each other's limits. It does
// not dial. Events of Redis go to log; hook may be nil. The second result
// closes it.
func OpenStore(program string, s config.Store, log *slog.Logger, hook func(distributed.Event)) (*distributed.Store, func() error, error) {
	if s.Kind != config.Redis {
		return nil, func() error { return nil }, nil
	}
	if _, err := s.Password.Read(); err != nil {
		return nil, nil, err
	}
	o := &redis.UniversalOptions{Addrs: s.Addresses, MasterName: s.Sentinel, CredentialsProviderContext: func(context.Context) (string, string, error) {
		password, err := s.Password.Read() // for each connection: it may have changed
		return s.Username, string(password), err
	}}
	if s.TLS {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	client := redis.NewUniversalClient(o)
	fallbacks := map[string]distributed.Fallback{
		"local": distributed.FallbackLocal, "allow": distributed.FallbackAllow, "deny": distributed.FallbackDeny,
	}
	opts := []distributed.Option{
		distributed.WithPrefix(cmp.Or(s.Prefix, "sluice-"+program)), distributed.WithTimeout(s.Timeout),
		distributed.WithFallback(fallbacks[s.Fallback]),
		distributed.WithLogger(log),
	}
	if s.Instances > 0 {
		opts = append(opts, distributed.WithInstances(s.Instances))
	}
	if s.Blocks > 0 {
		opts = append(opts, distributed.WithBlocks(s.Blocks))
	}
	if hook != nil {
		opts = append(opts, distributed.WithHook(hook))
	}
	store, err := distributed.New(client, opts...)
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return store, func() error { return errors.Join(store.Close(), client.Close()) }, nil
}
