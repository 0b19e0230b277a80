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

// UpstreamTLS says how upstreams of https:// are known, and how the gateway is known to them.
type UpstreamTLS struct {
	CA               string // file with the authorities of upstreams; empty: those of the system
	Certificate, Key string // files, for upstreams that ask for a certificate
}

func (t *UpstreamTLS) read(v value) {
	v.fields(
		field{name: "ca", read: func(v value) { t.CA = v.text() }},
		field{name: "certificate", read: func(v value) { t.Certificate = v.text() }},
		field{name: "key", read: func(v value) { t.Key = v.text() }},
	)
	if (t.Certificate == "") != (t.Key == "") {
		v.fail("wants certificate and key, or neither")
	}
}

// Config reads the files; nil if there are none. A renewed certificate is in use at most ten
// seconds later, other authorities after a restart.
func (t UpstreamTLS) Config() (*tls.Config, error) {
	if t == (UpstreamTLS{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, err
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate", t.CA)
		}
	}
	if t.Certificate != "" {
		c := &certificate{from: TLS{Certificate: t.Certificate, Key: t.Key}}
		if err := c.load(); err != nil {
			return nil, err
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.now().Certificates[0], nil }
	}
	return config, nil
}

// IsZero reports whether there is no TLS.
func (t TLS) IsZero() bool { return t == TLS{} }

// Config reads the files; nil if there is no TLS. Changed files are in use at most ten
// seconds later; if one of them cannot be read, those before stay in use.
func (t TLS) Config() (*tls.Config, error) {
	if t.IsZero() {
		return nil, nil
	}
	c := &certificate{from: t}
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.now(), nil },
	}, nil
}

// protocols are in the configuration for a client too: servers add them to their own only.
var protocols = []string{"h2", "http/1.1"}

// certificate is the contents of the files.
type certificate struct {
	from TLS

	mu     sync.Mutex
	looked time.Time
	read   string
	config *tls.Config
}

const lookEvery = 10 * time.Second

func (c *certificate) now() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) > lookEvery {
		_ = c.load()
	}
	return c.config
}

// load reads the files, and uses them if they have changed.
func (c *certificate) load() error {
	c.looked = time.Now()
	var texts [3][]byte
	var read string
	for i, path := range []string{c.from.Certificate, c.from.Key, c.from.ClientCA} {
		if path == "" {
			continue
		}
		var err error
		if texts[i], err = os.ReadFile(path); err != nil {
			return err
		}
		read += part(string(texts[i]))
	}
	if read == c.read {
		return nil
	}
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, Certificates: []tls.Certificate{pair}}
	if c.from.ClientCA != "" {
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(texts[2]) {
			return fmt.Errorf("%s has no certificate", c.from.ClientCA)
		}
	}
	c.config, c.read = config, read
	return nil
}
