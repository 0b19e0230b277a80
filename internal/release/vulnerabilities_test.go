package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// database writes a copy of the database of vulnerabilities that has one in grpc's package status.
func database(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"index/db.json":      `{"modified": "2030-01-01T00:00:00Z"}`,
		"index/modules.json": `[{"path": "google.golang.org/grpc", "vulns": [{"id": "GO-2030-0001", "modified": "2030-01-01T00:00:00Z"}]}]`,
		"index/vulns.json":   `[{"id": "GO-2030-0001", "modified": "2030-01-01T00:00:00Z"}]`,
		"ID/GO-2030-0001.json": `{"schema_version": "1.3.1", "id": "GO-2030-0001", "modified": "2030-01-01T00:00:00Z",
			"published": "2030-01-01T00:00:00Z", "details": "planted", "database_specific": {"url": "https://example.org"},
			"affected": [{"package": {"name": "google.golang.org/grpc", "ecosystem": "Go"},
				"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
				"ecosystem_specific": {"imports": [{"path": "google.golang.org/grpc/status", "symbols": ["FromError"]}]}}]}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestVulnerabilitiesAreFound: one in code that is called fails the check and is named, and a
// database that cannot be read is no result.
func TestVulnerabilitiesAreFound(t *testing.T) {
	out, err := try("../..", "make", "vulnerabilities", "VULNDB=file://"+database(t))
	if err == nil || !strings.Contains(out, "GO-2030-0001") || !strings.Contains(out, "status.FromError") || strings.Contains(out, "nothing was checked") {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err = try("../..", "make", "vulnerabilities", "VULNDB=file://"+filepath.Join(t.TempDir(), "none"))
	if err == nil || !strings.Contains(out, "nothing was checked") {
		t.Fatalf("%v\n%s", err, out)
	}
}
