package release

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/schema"
	"go.yaml.in/yaml/v4"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/json"
	strict "sigs.k8s.io/yaml"
)

// TestManifests: Kubernetes and compose know every field of the files here.
func TestManifests(t *testing.T) {
	kinds := map[string]any{
		"v1 ConfigMap": &core.ConfigMap{}, "v1 Service": &core.Service{}, "apps/v1 Deployment": &apps.Deployment{},
		"policy/v1 PodDisruptionBudget": &policy.PodDisruptionBudget{},
	}
	objects := 0
	for _, file := range must(filepath.Glob("../../programs/*/kit/kubernetes*.yaml")) {
		for _, text := range bytes.Split(must(os.ReadFile(file)), []byte("\n---\n")) {
			var is struct{ APIVersion, Kind string }
			if err := strict.Unmarshal(text, &is); err != nil {
				t.Fatal(file, err)
			}
			object, ok := kinds[is.APIVersion+" "+is.Kind]
			if !ok {
				t.Fatal(file, is)
			}
			if unknown, err := json.UnmarshalStrict(must(strict.YAMLToJSONStrict(text)), object); err != nil || unknown != nil {
				t.Error(file, is, unknown, err)
			}
			objects++
		}
	}
	for _, file := range append(must(filepath.Glob("../../programs/*/kit/compose.yaml")), must(filepath.Glob("../../examples/*/docker-compose.yml"))...) {
		var compose map[string]any
		if err := yaml.Unmarshal(must(os.ReadFile(file)), &compose); err != nil {
			t.Fatal(file, err)
		}
		if err := schema.Validate(compose); err != nil {
			t.Error(file, err)
		}
		objects++
	}
	if objects < 9 {
		t.Errorf("%d objects", objects)
	}
}
