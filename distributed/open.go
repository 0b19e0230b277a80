package distributed

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Open makes a store and its client from a URL, such as redis://user:password@host:6379/0, rediss://
// for TLS, unix://, with a parameter addr for each further node of a cluster, or with master_name of
// Sentinels, and addr for each further one; see redis.ParseURL, redis.ParseClusterURL and
// redis.ParseFailoverURL. It pings Redis: the error says why decisions would be local, or what is
// wrong with the URL or an option. Close closes the client too. A service that must start while
// Redis is away makes its client itself and calls [New], which does not fail then.
func Open(ctx context.Context, address string, opts ...Option) (*Store, error) {
	client, err := clientOf(address)
	if err != nil {
		return nil, fmt.Errorf("distributed: %w", err)
	}
	s, err := New(client, opts...)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	s.owned = true
	if err := s.Ping(ctx); err != nil {
		_ = s.Close()
		if strings.Contains(err.Error(), "unknown command") {
			err = fmt.Errorf("%w: if this is a Sentinel, add its master to the URL: ?master_name=", err)
		}
		return nil, err
	}
	return s, nil
}

func clientOf(address string) (redis.UniversalClient, error) {
	u, err := url.Parse(address)
	switch {
	case err == nil && u.Query().Has("master_name"):
		o, err := redis.ParseFailoverURL(address)
		if err != nil {
			return nil, err
		}
		return redis.NewFailoverClient(o), nil
	case err == nil && u.Query().Has("addr"):
		o, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, err
		}
		return redis.NewClusterClient(o), nil
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(o), nil
}
