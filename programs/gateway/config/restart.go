package config

// Restart names the first field in which f differs from the file in force, and
// which cannot change while a process runs; nil if there is none.
func (f *File) Restart(was *File) error {
	for _, fixed := range []struct {
		field string
		same  bool
	}{
		{"listen", f.Listen == was.Listen},
		{"admin", f.Admin == was.Admin},
		{"tls", f.TLS == was.TLS},
		{"upstream_tls", f.UpstreamTLS == was.UpstreamTLS},
		{"admin_token", f.AdminToken == was.AdminToken},
		{"show_keys", f.ShowKeys == was.ShowKeys},
		{"store", f.Store.Kind == was.Store.Kind},
		{"redis", f.Store.Same(was.Store)},
		{"snapshot", f.Snapshot == was.Snapshot},
		{"access_log", f.AccessLog == was.AccessLog},
		{"grpc", f.GRPC == was.GRPC},
		{"timeouts", f.Timeouts == was.Timeouts},
	} {
		if !fixed.same {
			return f.Errorf(fixed.field, "has changed, which takes a restart")
		}
	}
	return nil
}
