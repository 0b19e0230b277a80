#!/bin/sh
# The gateway, nginx and Caddy before the same upstream, under wrk on this machine, in turns.
# The gateway and nginx have a limit by address; Caddy has none without a plugin, and does
# less work. It writes two tables to stdout.
#
#	sh programs/gateway/bench/compare.sh
#	LENGTH=2s ROUNDS=1 sh programs/gateway/bench/compare.sh     # a first look
#
# It needs wrk, nginx and caddy (Debian: apt-get install wrk nginx-light caddy), curl and Go. Two cases: the limit
# admits everything, and it admits 1000 requests a second. In the second, refusals are cheap,
# and the served column shows whether the limit holds.
set -eu
LENGTH=${LENGTH:-10s} ROUNDS=${ROUNDS:-3} CONNECTIONS=${CONNECTIONS:-64} THREADS=${THREADS:-2}
here=$(cd "$(dirname "$0")" && pwd)
for tool in wrk nginx caddy curl go; do
	command -v $tool >/dev/null || { echo "compare.sh: $tool is missing" >&2; exit 1; }
done
work=$(mktemp -d)
pids=
end() {
	for p in $pids; do kill "$p" 2>/dev/null || true; done
	for p in $pids; do wait "$p" 2>/dev/null || true; done
	rm -rf "$work"
}
trap end EXIT
trap 'exit 1' INT TERM

(cd "$here/.." && go build -o "$work/gateway" .)

# The upstream: nginx, which answers from memory.
cat >"$work/upstream.conf" <<END
pid $work/upstream.pid; error_log stderr error; worker_processes auto; daemon off;
events { worker_connections 4096; }
http {
	access_log off; keepalive_requests 1000000000;
	server { listen 127.0.0.1:18000; location / { return 200 "ok\n"; } }
}
END
# await waits until something answers at a port.
await() {
	i=0
	until curl -s -o /dev/null "http://127.0.0.1:$1/"; do
		i=$((i + 1)); [ $i -lt 200 ] || { echo "compare.sh: nothing answers at $1" >&2; cat "$work/log" >&2; exit 1; }
		sleep 0.05
	done
}

nginx -p "$work" -c "$work/upstream.conf" & pids="$pids $!"
await 18000

# start NAME RATE serves at 127.0.0.1:18001.
start() {
	rate=$2
	case $1 in
	"no proxy") return ;;
	gateway*)
		overload=on; [ "$1" = gateway ] || overload=off
		cat >"$work/gateway.yaml" <<END
listen: 127.0.0.1:18001
admin: 127.0.0.1:18002
overload: $overload
timeouts: {unready: 0s}
routes:
  - {pattern: /, upstream: "http://127.0.0.1:18000", headers: none, limits: [{name: address, key: ip, limit: $rate/s}]}
END
		"$work/gateway" -config "$work/gateway.yaml" 2>"$work/log" & ;;
	nginx)
		cat >"$work/nginx.conf" <<END
pid $work/nginx.pid; error_log $work/log crit; worker_processes auto; daemon off;
events { worker_connections 4096; }
http {
	access_log off; keepalive_requests 1000000000;
	limit_req_zone \$binary_remote_addr zone=address:10m rate=${rate}r/s;
	limit_req_status 429;
	upstream up { server 127.0.0.1:18000; keepalive 256; keepalive_requests 1000000000; }
	server {
		listen 127.0.0.1:18001;
		location / {
			limit_req zone=address burst=$rate nodelay;
			proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection "";
		}
	}
}
END
		nginx -p "$work" -c "$work/nginx.conf" & ;;
	"caddy, no limit")
		cat >"$work/Caddyfile" <<END
{
	admin off
	auto_https off
}
http://127.0.0.1:18001 {
	reverse_proxy 127.0.0.1:18000 {
		transport http {
			keepalive_idle_conns_per_host 256
		}
	}
}
END
		XDG_DATA_HOME=$work XDG_CONFIG_HOME=$work caddy run --config "$work/Caddyfile" --adapter caddyfile 2>"$work/log" & ;;
	esac
	server=$!; pids="$pids $server"
	await 18001
}

# stop ends what start began.
stop() {
	[ "$1" != "no proxy" ] || return 0
	kill "$server"; wait "$server" 2>/dev/null || true
}

# measure NAME RATE adds a line of figures to the file of the contender.
measure() {
	start "$1" "$2"
	port=18001; [ "$1" != "no proxy" ] || port=18000
	wrk -t "$THREADS" -c "$CONNECTIONS" -d "$LENGTH" --latency "http://127.0.0.1:$port/" >"$work/wrk"
	stop "$1"
	awk '
		/50%/ { p50 = $2 } /99%/ { p99 = $2 }
		/requests in/ { n = $1; seconds = $4; sub(/s,/, "", seconds); if (seconds ~ /m/) { sub(/m/, "", seconds); seconds *= 60 } }
		/Non-2xx/ { refused = $NF } /Socket errors/ { broken = $4 + $6 + $8 + $10 }
		END { printf "%.0f %.0f %s %s %d\n", n / seconds, (n - refused) / seconds, p50, p99, broken }
	' "$work/wrk" >>"$work/figures-$2-$(echo "$1" | tr -c 'a-z\n' _)"
}

# table TITLE RATE NAME... measures in turns and prints the median round of each.
table() {
	title=$1 rate=$2; shift 2
	for round in $(seq "$ROUNDS"); do
		for name in "$@"; do measure "$name" "$rate"; done
	done
	printf '\n%s: wrk with %s connections, %s, the median of %s rounds in turns.\n\n' "$title" "$CONNECTIONS" "$LENGTH" "$ROUNDS"
	echo '| | answers/s | served/s | p50 | p99 | broken |'
	echo '|---|---|---|---|---|---|'
	for name in "$@"; do
		sort -n "$work/figures-$rate-$(echo "$name" | tr -c 'a-z\n' _)" | sed -n "$(((ROUNDS + 1) / 2))p" |
			while read -r all served p50 p99 broken; do echo "| $name | $all | $served | $p50 | $p99 | $broken |"; done
	done
}

table "A limit that admits everything" 1000000 "no proxy" gateway "gateway, overload off" nginx "caddy, no limit"
table "1000 requests a second for the address" 1000 gateway "gateway, overload off" nginx
