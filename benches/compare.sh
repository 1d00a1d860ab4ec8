#!/bin/sh
# Times extraction beside `wc -l` and whatever other readers are installed (ripgrep, jq, Python's duckdb and simdjson), on one file, one after another in turns, so
# that what disturbs the machine disturbs all alike. Prints the median wall time of each and its ratio to `wc -l`.
#
#   benches/compare.sh target/release/sift EVE.json [ROUNDS]
#
# EVE.json should be large (1 GiB) and fit the page cache. EVE.json.gz and EVE.json.zst are timed too where they exist.
set -eu
sift=$1 file=$2 rounds=${3:-5}
times=$(mktemp -d)
trap 'rm -rf "$times"' EXIT

# The unique addresses by DuckDB, on two threads, and by pysimdjson: print nothing but them, as sift does.
cat >"$times/by-duckdb.py" <<'PY'
import sys, duckdb
con = duckdb.connect()
con.execute("set threads=2")
rows = con.execute(
    """with e as (select src_ip, dest_ip from read_ndjson(?, columns={src_ip:'VARCHAR',dest_ip:'VARCHAR'},
                  ignore_errors=true, maximum_object_size=67108864))
       select distinct ip from (select src_ip ip from e union all select dest_ip from e) where ip is not null""",
    [sys.argv[1]]).fetchall()
sys.stdout.write("\n".join(row[0] for row in rows) + "\n")
PY
cat >"$times/by-simdjson.py" <<'PY'
import sys, simdjson
parser, seen = simdjson.Parser(), set()
for line in open(sys.argv[1], "rb"):
    try:
        event = parser.parse(line)
    except ValueError:
        continue
    seen.update((event.get("src_ip"), event.get("dest_ip")))
    del event
sys.stdout.write("\n".join(ip for ip in seen if ip) + "\n")
PY

run() {
    name=$1
    shift
    start=$(date +%s%N)
    if "$@" >"$times/out" 2>/dev/null; then
        echo $((($(date +%s%N) - start) / 1000000)) >>"$times/$name.ms"
    else
        echo "$name failed" >&2
    fi
}

cat "$file" >/dev/null
for _ in $(seq "$rounds"); do
    run 'wc -l' wc -l "$file"
    if command -v rg >/dev/null; then
        run 'memchr pass: rg -c' rg -c --no-mmap '^' "$file"
    fi
    run 'sift, bare, 1 thread' "$sift" extract -q --no-context --threads 1 "$file"
    run 'sift, bare, 2 threads' "$sift" extract -q --no-context --threads 2 "$file"
    run 'sift, alerts, 1 thread' "$sift" extract -q --no-context --alerts --threads 1 "$file"
    run 'sift, context, 1 thread' "$sift" extract -q --threads 1 "$file"
    run 'sift, context, 2 threads' "$sift" extract -q --threads 2 "$file"
    for reader in duckdb simdjson; do
        if python3 -c "import $reader" 2>/dev/null; then
            run "$reader" python3 "$times/by-$reader.py" "$file"
        fi
    done
    if [ -e "$file.gz" ] && command -v gzip >/dev/null; then
        run 'gzip -dc' gzip -dc "$file.gz"
        run 'sift, gz' "$sift" extract -q --no-context "$file.gz"
    fi
    if [ -e "$file.zst" ] && command -v zstd >/dev/null; then
        run 'zstd -dc' zstd -dc "$file.zst"
        run 'sift, zst' "$sift" extract -q --no-context "$file.zst"
    fi
done
if command -v jq >/dev/null; then
    run 'jq' sh -c 'jq -r ".src_ip // empty, .dest_ip // empty" "$1" | sort -u' jq "$file"
fi

base=$(sort -n "$times/wc -l.ms" | awk '{t[NR] = $1} END {print t[int((NR + 1) / 2)]}')
for result in "$times"/*.ms; do
    sort -n "$result" | awk -v name="$(basename "$result" .ms)" -v base="$base" \
        '{t[NR] = $1} END {m = t[int((NR + 1) / 2)]; printf "%-26s %6d ms %6.2f x wc -l\n", name, m, m / base}'
done
