package release

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

// TestSchema: the schema for editors accepts the files of the repository, and no unknown field.
func TestSchema(t *testing.T) {
	schema := must(jsonschema.NewCompiler().Compile("../../programs/gateway/gateway.schema.json"))
	files := must(filepath.Glob("../../programs/*/kit/compose/gateway.yaml"))
	files = append(files, "../../programs/gateway/gateway.yaml", "../../programs/rls/rls.yaml")
	for _, file := range files {
		var text any
		if err := yaml.Unmarshal(must(os.ReadFile(file)), &text); err != nil {
			t.Fatal(file, err)
		}
		if err := schema.Validate(text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if schema.Validate(map[string]any{"listen": ":80", "rotues": []any{}}) == nil {
		t.Error("the schema accepts a field that the reader refuses")
	}
}
