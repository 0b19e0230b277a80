#!/bin/sh
# Makes a version: the heading in the CHANGELOG, the requirements of nested modules, a commit with their
# checksums and without replace directives, which go install refuses, the tags, a commit that has them again, and dist: notes,
# source, a list of what is linked (SBOM) for the library and each program, archives of gateway and rls for
# PLATFORMS, images upon BASE, and checksums.
# Pushes nothing. RELEASING.md has the steps around it.
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
built=$(mktemp -d)
go -C internal/release build -o "$built" ./image ./sums

# Those that others require come first.
before=$(git rev-parse HEAD) nested="httpmw/admin algo/telemetry/otelmetrics distributed/rueidisstore dropin programs/gateway programs/rls programs/plan"
tags=$version
for m in $nested; do tags="$tags $m/$version"; done
undo() {
	rm -rf "$built"
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
	edit "$m" "s#^(	github.com/sluice-go/sluice(/httpmw/admin|/algo/telemetry/otelmetrics|/distributed/rueidisstore|/dropin|/programs/gateway)?) v[^ ]+#\\1 $version#"
done
for kit in $(git ls-files 'programs/*/kit/*.yaml'); do
	edit "$kit" "s#(ghcr.io/sluice-go/sluice-[a-z]+):v[^ ]+#\\1:$version#"
done
git commit -qam "sluice $version, for development"
for m in $nested; do
	for other in "" $nested; do go mod edit -C "$m" -dropreplace "github.com/sluice-go/sluice${other:+/$other}"; done
done
"$built/sums" "$version" $nested
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

# The programs are what go install makes of the tags, with this repository in place of the public one.
made=@$(git log -1 --format=%ct)
pack() { # pack FOLDER FILE...: a tar that depends on nothing else
	at=$1
	shift
	tar -C "$at" --sort=name --owner=0 --group=0 --numeric-owner --mode=a+rX,go-w --mtime="$made" -c "$@"
}
program() { # program NAME OS ARCHITECTURE FOLDER
	env -u GOBIN GOOS="$2" GOARCH="$3" CGO_ENABLED=0 GOWORK=off GOFLAGS=-modcacherw GOPATH="$built/go" GOMODCACHE="$built/mod" \
		GOPRIVATE='github.com/sluice-go/*' GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)" \
		GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$PWD.insteadOf" GIT_CONFIG_VALUE_0=https://github.com/sluice-go/sluice \
		go install -trimpath -ldflags='-s -w' "github.com/sluice-go/sluice/programs/$1@$version"
	find "$built/go/bin" -name "$1" -exec mv {} "$4" \;
	{
		echo "== Go"
		cat "$(go env GOROOT)/LICENSE"
		go version -m "$4/$1" | awk '$1 == "dep" {print $2 "@" $3}' | while read -r m; do
			echo "== $m"
			find "$built/mod/$(echo "$m" | sed 's/[A-Z]/!\L&/g')" -maxdepth 1 \( -iname '*LICEN[CS]E*' -o -iname 'NOTICE*' \) -print0 | sort -z | xargs -0r cat
		done
	} >"$4/LICENSES"
	# What this binary links, by the record that the compiler left in it, without the time: the same commits give the same file.
	"$sbom" bin -json -std -noserial -version "$version" "$4/$1" | sed '/"timestamp": /d' >"$4/$1.cdx.json"
}
for p in gateway rls; do
	set --
	for platform in ${PLATFORMS:-linux/amd64 linux/arm64 darwin/arm64}; do
		os=${platform%/*} architecture=${platform#*/}
		name=sluice-$p-$version-$os-$architecture
		mkdir "$built/$name"
		program "$p" "$os" "$architecture" "$built/$name"
		cp LICENSE "programs/$p/README.md" "programs/$p/$p.yaml" "$built/$name"
		cp "$built/$name/$p.cdx.json" "dist/$name.cdx.json"
		pack "$built" "$name" | gzip -9n >"dist/$name.tar.gz"
		[ "$os" = linux ] || continue
		pack "$built/$name" "$p" "$p.cdx.json" LICENSE LICENSES >"$built/$p-$architecture.tar"
		set -- "$@" "$built/$p-$architecture.tar"
	done
	[ $# = 0 ] && continue
	"$built/image" "$p" "$version" "${BASE:-gcr.io/distroless/static-debian13:nonroot}" "$built/$p" "$@"
	pack "$built/$p" . >"dist/sluice-$p-$version-image.tar"
done
rm -rf "$built"
(cd dist && sha256sum ./* >SHA256SUMS)
git revert --no-edit HEAD >/dev/null
git commit -q --amend -m "Development after $version"
[ "$(git rev-parse HEAD:)" = "$(git rev-parse "$development:")" ] || fail "the tree differs from $development"
trap - EXIT
echo "tagged $tags; dist has:"
ls -l dist
