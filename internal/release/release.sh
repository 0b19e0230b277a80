#!/bin/sh
# Tags a version and writes dist: notes, source, modules and checksums. Pushes
# nothing. RELEASING.md has the steps around it.
set -eu
version=${1:?usage: release.sh v1.2.3}
cd "$(git rev-parse --show-toplevel)"
fail() { echo "release: $1" >&2; exit 1; }

echo "$version" | grep -Eq '^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$' || fail "not a version: $version"
[ -z "$(git status --porcelain)" ] || fail "the tree is not clean: commit first"
git rev-parse -q --verify "refs/tags/$version" >/dev/null && fail "the tag $version exists"
notes=$(awk -v v="$version" '$1 == "##" {on = $2 == v; next} on' CHANGELOG.md)
[ -n "$notes" ] || fail "CHANGELOG.md has no section \"## $version\""

rm -rf dist
mkdir dist
printf '%s\n' "$notes" >dist/notes.md
git archive --format=tar.gz --prefix="sluice-$version/" -o "dist/sluice-$version.tar.gz" HEAD
# Each module that a package of this one links, with its version and hash.
go list -deps -f '{{with .Module}}{{if .Version}}{{.Path}} {{.Version}}{{end}}{{end}}' \
  ./algo/... ./adaptive ./distributed/... ./grpcmw ./httpmw ./keyfunc/... | sort -u |
  while read -r path v; do echo "$path $v $(awk -v p="$path" -v v="$v" '$1 == p && $2 == v {print $3}' go.sum)"; done >dist/modules.txt
(cd dist && sha256sum ./* >SHA256SUMS)
git tag -a "$version" -m "sluice $version"
echo "tagged $version; dist has:"
ls -l dist
