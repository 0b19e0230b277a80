package config_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/programs/gateway/config"
)

// schema is a JSON schema: the names of fields, and what holds others.
type schema map[string]any

// refused returns what the reader of files says about the field at the end of path if its value is text.
func refused(t *testing.T, path []string, text string) string {
	t.Helper()
	var field strings.Builder
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == "[]" {
			text = "[" + text + "]"
		} else {
			text = "{" + path[i] + ": " + text + "}"
		}
	}
	for _, name := range path {
		if name == "[]" {
			name = "[0]"
		} else if field.Len() > 0 {
			name = "." + name
		}
		field.WriteString(name)
	}
	_, err := config.Parse("f", []byte(text))
	var all config.Errors
	require.ErrorAs(t, err, &all)
	for _, e := range all {
		if !strings.Contains(e.Reason, "want ") {
			continue
		}
		if e.Field == field.String() || e.Field == strings.TrimPrefix(field.String()+".zzz", ".") {
			return e.Reason
		}
	}
	return ""
}

// explore asks the reader of files what path may hold. above has the fields of the mappings around it.
func explore(t *testing.T, path []string, above map[string]string) schema {
	s := schema{}
	scalar := ""
	if len(path) > 0 {
		scalar = refused(t, path, "zzz")
	}
	if _, list, ok := strings.Cut(refused(t, path, "{zzz: 1}"), "unknown field, want one of "); ok {
		if at, again := above[list]; again {
			return schema{"$ref": at}
		}
		here := "#"
		for _, name := range path {
			here += "/" + map[bool]string{true: "items", false: "properties/" + name}[name == "[]"]
		}
		above[list] = here
		fields := schema{}
		for _, name := range strings.Split(list, ", ") {
			fields[name] = explore(t, append(slices.Clone(path), name), above)
		}
		delete(above, list)
		s["properties"], s["additionalProperties"] = fields, false
		if len(path) == 0 || strings.Contains(scalar, "want a mapping") {
			s["type"] = "object"
		}
	}
	if len(path) > 0 && path[len(path)-1] != "[]" && !strings.Contains(refused(t, path, "[zzz]"), "is a list") && strings.Contains(scalar, "want a list") {
		s["type"], s["items"] = "array", explore(t, append(slices.Clone(path), "[]"), above)
	}
	return s
}

// TestSchema: the schema for editors has the fields that the reader of files knows, and no others. SLUICE_UPDATE=1 writes it.
func TestSchema(t *testing.T) {
	s := explore(t, nil, map[string]string{})
	s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", "The file of sluice's gateway and rate limit service"
	text, err := json.MarshalIndent(s, "", " ")
	require.NoError(t, err)
	text = append(text, '\n')
	if os.Getenv("SLUICE_UPDATE") != "" {
		require.NoError(t, os.WriteFile("../gateway.schema.json", text, 0o644))
	}
	have, err := os.ReadFile("../gateway.schema.json")
	require.NoError(t, err)
	require.Equal(t, string(text), string(have), "SLUICE_UPDATE=1 go test ./config -run TestSchema writes it")
}
