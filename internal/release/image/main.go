// Image writes the image of a program, for each architecture a layer upon the base, as an OCI layout.
// The same layers and base give the same digest.
//
//	image gateway v0.1.0 gcr.io/distroless/static-debian13:nonroot FOLDER gateway-amd64.tar gateway-arm64.tar
package main

import (
	"log"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 6 {
		log.Fatal("usage: image PROGRAM VERSION BASE FOLDER LAYER...")
	}
	program, version, folder := os.Args[1], os.Args[2], os.Args[4]
	ref := must(name.ParseReference(os.Args[3]))
	base := must(remote.Get(ref))
	must(base.ImageIndex()) // one image would be taken for any architecture
	about := map[string]string{
		"org.opencontainers.image.title":       "sluice-" + program,
		"org.opencontainers.image.version":     version,
		"org.opencontainers.image.source":      "https://github.com/sluice-go/sluice",
		"org.opencontainers.image.licenses":    "MIT",
		"org.opencontainers.image.base.digest": base.Digest.String(),
	}
	index := v1.ImageIndex(empty.Index)
	for _, file := range os.Args[5:] {
		platform := v1.Platform{OS: "linux", Architecture: strings.TrimSuffix(file[strings.LastIndex(file, "-")+1:], ".tar")}
		layer := must(tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer)))
		below := must(remote.Image(ref.Context().Digest(base.Digest.String()), remote.WithPlatform(platform)))
		image := must(mutate.AppendLayers(below, layer))
		config := must(image.ConfigFile()).Config
		config.User, config.Labels = "65532:65532", about // by number: Kubernetes asks with runAsNonRoot
		config.Entrypoint, config.Cmd = []string{"/" + program, "-config", "/etc/" + program + "/" + program + ".yaml"}, nil
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: must(mutate.Config(image, config)), Descriptor: v1.Descriptor{Platform: &platform}})
	}
	index = mutate.Annotations(index, about).(v1.ImageIndex)
	named := v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": "ghcr.io/sluice-go/sluice-" + program + ":" + version}}
	must(layout.Write(folder, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index, Descriptor: named})))
	log.Print(named.Annotations["org.opencontainers.image.ref.name"], " ", must(index.Digest()), " upon ", base.Digest)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal("image: ", err)
	}
	return v
}
