#!/bin/sh
# Makes a version: the heading in the CHANGELOG, the requirements of nested modules, a commit without
# replace directives, which go install refuses, the tags, a commit that has them again, and dist: notes,
# source, a list of what is linked (SBOM) and checksums. Pushes nothing. RELEASING.md has the steps around it.
set -eu
version=${1:?usage: release.sh v1.2.3}
cd "$(git rev-parse --show-toplevel)"
fail() { echo "release: $1" >&2; exit 1; }
section() { awk -v v="$1" '$1 == "##" {on = $2 == v; next} on' CHANGELOG.md; }

echo "$version" | grep -Eq '^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$' || fail "not a version: $version"
[ -z "$(git status --porcelain)" ] || fail "the tree is not clean: commit first"
git rev-parse -q --verify "refs/tags/$version" >/dev/null && fail "the tag $version exists"
notes=$(section Unreleased)
[ -n "$notes" ] || fail "CHANGELOG.md has nothing under \"## Unreleased\""
sbom=$(go -C internal/release tool -n cyclonedx-gomod)

before=$(git rev-parse HEAD) nested="httpmw/admin algo/telemetry/otelmetrics distributed/rueidisstore dropin examples/gateway examples/rls"
tags=$version
for m in $nested; do tags="$tags $m/$version"; done
undo() {
	for tag in $tags; do git tag -d "$tag" >/dev/null 2>&1 || true; done
	git reset -q --hard "$before"
	fail "nothing is left of $version"
}
trap undo EXIT
edit() { # edit FILE sed-script: portable, in place
	sed -E "$2" "$1" >"$1.new" && mv "$1.new" "$1"
}
edit CHANGELOG.md "s/^## Unreleased\$/&\\
\\
## $version - $(date +%Y-%m-%d)/"
for m in $(git ls-files | grep 'go\.mod$'); do
	edit "$m" "s#^(	github.com/sluice-go/sluice(/httpmw/admin|/algo/telemetry/otelmetrics|/distributed/rueidisstore|/dropin|/examples/gateway)?) v[^ ]+#\\1 $version#"
done
git commit -qam "sluice $version, for development"
for m in $nested; do
	for other in "" $nested; do go mod edit -C "$m" -dropreplace "github.com/sluice-go/sluice${other:+/$other}"; done
done
development=$(git rev-parse HEAD)
git commit -qam "sluice $version"
for tag in $tags; do git tag -a "$tag" -m "sluice $version"; done

rm -rf dist
mkdir dist
printf '%s\n' "$notes" >dist/notes.md
git archive --format=tar.gz --prefix="sluice-$version/" -o "dist/sluice-$version.tar.gz" HEAD
# CycloneDX: each module that a package of this one links, with its version and hash. The
# version of this one is the tag.
"$sbom" mod -json -type library -output "dist/sluice-$version.cdx.json" .
(cd dist && sha256sum ./* >SHA256SUMS)
git revert --no-edit HEAD >/dev/null
git commit -q --amend -m "Development after $version"
[ "$(git rev-parse HEAD:)" = "$(git rev-parse "$development:")" ] || fail "the tree differs from $development"
trap - EXIT
echo "tagged $tags; dist has:"
ls -l dist
