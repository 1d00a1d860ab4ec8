#!/bin/sh
# Times look-ups at the simulator, whole processes: at answers that come at once beside `curl --parallel`, and at fixed
# latencies beside the ideal, which is ceil(N / K) times the simulator's own mean hold time. Prints medians.
#
#   benches/enrich.sh target/release/sift [ROUNDS]
#
# Needs curl for the first part. The store, where it is used, lies in a temporary folder (TMPDIR).
set -eu
sift=$(realpath "$1") rounds=${2:-3}
work=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null || :; rm -rf "$work"' EXIT

awk 'BEGIN {for (n = 0; n < 20000; n++) print 1 + n % 9 "." int(n / 9) % 256 "." int(n / 2304) "." 1 + n * 7 % 253}' \
    >"$work/20000"
head -10000 "$work/20000" >"$work/10000"

now() { date +%s%N; }

# Starts the simulator with every answer after $1.
serve() {
    printf '[every]\nlatency = "%s"\n[providers.abuseipdb]\nheaders = "none"\n' "$1" >"$work/scenario.toml"
    "$sift" simulate --scenario "$work/scenario.toml" --listen 127.0.0.1:0 >"$work/served" 2>&1 &
    server=$!
    until grep -q listening "$work/served"; do sleep 0.05; done
    url=$(grep -o 'http://[0-9.:]*' "$work/served")/abuseipdb
}

# Ends it, and leaves what it tells in served.
end() {
    kill -INT "$server"
    wait "$server" || :
    server=
}

# Asks about the $1 addresses with $2 in flight, and prints the milliseconds; further arguments go to sift.
ask() {
    file=$work/$1
    cat >"$work/config.toml" <<TOML
concurrency = $2
[providers.abuseipdb]
enabled = true
base_url = "$url"
quota = []
TOML
    shift 2
    rm -rf "$work/state"
    start=$(now)
    XDG_STATE_HOME=$work/state SIFT_CONFIG=$work/config.toml ABUSEIPDB_API_KEY=x \
        "$sift" enrich -q --limit 100000 "$@" "$file" >"$work/out"
    echo $((($(now) - start) / 1000000))
    test "$(grep -c '"status":"ok"' "$work/out")" = "$(wc -l <"$file")"
}

fetch() {
    start=$(now)
    sed "s|.*|url = \"$url/api/v2/check?ipAddress=&\"|" "$work/20000" | curl -s --no-progress-meter -H 'Key: x' \
        -w '\n' --parallel --parallel-immediate --parallel-max 32 -K - >"$work/out"
    echo $((($(now) - start) / 1000000))
}

median() { sort -n | awk '{t[NR] = $1} END {print t[int((NR + 1) / 2)]}'; }

several() {
    for _ in $(seq "$rounds"); do "$@"; done | median
}

serve 0ms
for how in fetch 'ask 20000 32 --no-store' 'ask 20000 32'; do
    # Words: a function and its arguments.
    # shellcheck disable=SC2086
    ms=$(several $how)
    echo "at once, 32 in flight: $how: $((20000000 / ms)) look-ups/s"
done
end

for case in '10ms 64' '50ms 32' '300ms 16' '300ms 128'; do
    latency=${case% *} slots=${case#* }
    for store in --no-store ''; do
        serve "$latency"
        # shellcheck disable=SC2086
        ms=$(ask 10000 "$slots" $store)
        end
        hold=$(sed -n 's/.*answered in \([0-9.]*\) ms (mean).*/\1/p' "$work/served")
        peak=$(sed -n 's/.*in all.*//; s/.*× 200; at most \([0-9]*\) in flight.*/\1/p' "$work/served")
        awk -v ms="$ms" -v k="$slots" -v hold="$hold" -v peak="$peak" -v what="$latency, $slots in flight ${store:-with the store}" \
            'BEGIN {ideal = int((10000 + k - 1) / k) * hold; printf "%s: %.3f of the ideal, peak %d\n", what, ms / ideal, peak}'
    done
done
