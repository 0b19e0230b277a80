#!/bin/sh
# Sees to it that there is a redis-server for the tests: installs it with the
# system's package manager where it is missing and that is possible, else says
# in one line what to do, and fails. SLUICE_REDIS_SERVER names another one.
server=${SLUICE_REDIS_SERVER:-redis-server}
command -v "$server" >/dev/null 2>&1 && exit 0
package=redis
case $server in *valkey*) package=valkey ;; esac

as_root=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null && as_root="sudo -n"
fi

install() {
	if command -v apt-get >/dev/null 2>&1; then
		$as_root apt-get update -qq &&
			DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $package-server
	elif command -v apk >/dev/null 2>&1; then
		$as_root apk add --quiet $package
	elif command -v dnf >/dev/null 2>&1; then
		$as_root dnf install -y -q $package
	elif command -v pacman >/dev/null 2>&1; then
		$as_root pacman -S --noconfirm --quiet $package
	elif command -v brew >/dev/null 2>&1; then
		brew install --quiet $package
	else
		return 1
	fi
}

if [ "$(id -u)" = 0 ] || [ -n "$as_root" ] || command -v brew >/dev/null 2>&1; then
	echo "installing $package-server for the tests" >&2
	install >/dev/null 2>&1
fi
command -v "$server" >/dev/null 2>&1 && exit 0
echo "the tests need $server: install it with your package manager (Debian: apt-get install $package-server) and run make again" >&2
exit 1
