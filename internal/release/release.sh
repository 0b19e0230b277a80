#!/bin/sh
# Tags a version and writes dist: notes, source, a list of what is linked (SBOM) and
# checksums. Pushes nothing. RELEASING.md has the steps around it.
set -eu
version=${1:?usage: release.sh v1.2.3}
cd "$(git rev-parse --show-toplevel)"
fail() { echo "release: $1" >&2; exit 1; }

echo "$version" | grep -Eq '^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$' || fail "not a version: $version"
[ -z "$(git status --porcelain)" ] || fail "the tree is not clean: commit first"
git rev-parse -q --verify "refs/tags/$version" >/dev/null && fail "the tag $version exists"
notes=$(awk -v v="$version" '$1 == "##" {on = $2 == v; next} on' CHANGELOG.md)
[ -n "$notes" ] || fail "CHANGELOG.md has no section \"## $version\""
sbom=$(go -C internal/release tool -n cyclonedx-gomod)

rm -rf dist
mkdir dist
printf '%s\n' "$notes" >dist/notes.md
git archive --format=tar.gz --prefix="sluice-$version/" -o "dist/sluice-$version.tar.gz" HEAD
git tag -a "$version" -m "sluice $version"
trap 'git tag -d "$version" >/dev/null; fail "the tag is taken back"' EXIT
# CycloneDX: each module that a package of this one links, with its version and hash. The
# version of this one is the tag.
"$sbom" mod -json -type library -output "dist/sluice-$version.cdx.json" .
(cd dist && sha256sum ./* >SHA256SUMS)
trap - EXIT
echo "tagged $version; dist has:"
ls -l dist
