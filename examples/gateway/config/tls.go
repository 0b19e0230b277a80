package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"
)

// TLS says with which certificate a server answers. The zero value is no TLS.
type TLS struct {
	Certificate, Key string // files
	ClientCA         string // file: clients must have a certificate of one of these authorities
}

func (t *TLS) read(v value) {
	v.fields(
		field{name: "certificate", required: true, read: func(v value) { t.Certificate = v.text() }},
		field{name: "key", required: true, read: func(v value) { t.Key = v.text() }},
		field{name: "client_ca", read: func(v value) { t.ClientCA = v.text() }},
	)
}

// IsZero reports whether there is no TLS.
func (t TLS) IsZero() bool { return t == TLS{} }

// Config reads the files; nil if there is no TLS. A renewed certificate is in use at
// most ten seconds after it was written; one that cannot be read leaves the one before.
func (t TLS) Config() (*tls.Config, error) {
	if t.IsZero() {
		return nil, nil
	}
	c := &certificate{from: t}
	if err := c.load(); err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
	if t.ClientCA != "" {
		authorities, err := os.ReadFile(t.ClientCA)
		if err != nil {
			return nil, err
		}
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("%s has no certificate", t.ClientCA)
		}
	}
	return config, nil
}

// certificate is a pair of files.
type certificate struct {
	from TLS

	mu      sync.Mutex
	looked  time.Time
	written [2]time.Time
	pair    *tls.Certificate
}

const lookEvery = 10 * time.Second

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) > lookEvery {
		_ = c.load()
	}
	return c.pair, nil
}

// load reads the files if they were written since.
func (c *certificate) load() error {
	c.looked = time.Now()
	var written [2]time.Time
	for i, path := range []string{c.from.Certificate, c.from.Key} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		written[i] = info.ModTime()
	}
	if written == c.written {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.from.Certificate, c.from.Key)
	if err != nil {
		return err
	}
	c.pair, c.written = &pair, written
	return nil
}
