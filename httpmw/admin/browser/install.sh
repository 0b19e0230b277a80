#!/bin/sh
# Sees to it that there is a Chromium for the test of the page: installs
# Debian's package where it is missing and that is possible, else says in one
# line what to do, and fails.
found() {
	command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1
}
found && exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null && as_root="sudo -n"
fi
if command -v apt-get >/dev/null 2>&1 && { [ "$(id -u)" = 0 ] || [ -n "$as_root" ]; }; then
	echo "installing chromium for the test of the page" >&2
	$as_root apt-get update -qq >/dev/null 2>&1
	DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1
fi
found && exit 0
echo "the test needs chromium: install it with your package manager (Debian: apt-get install chromium) and run make again" >&2
exit 1
