#!/bin/sh
# Copies the files of the first server to PGDATA, unless an earlier start has done that.
# PGHOST and PGUSER say how to reach it, and PASSWORD_FILE has the password.
set -eu
[ ! -s "$PGDATA/PG_VERSION" ] || exit 0

as_postgres=
if [ "$(id -u)" = 0 ]; then
    install -d -o postgres -m 700 "$PGDATA"
    as_postgres="setpriv --reuid=postgres --regid=postgres --clear-groups"
fi
# libpq looks for certificates in HOME, which has to be a folder that it may read.
HOME=$PGDATA PGPASSWORD=$(cat "$PASSWORD_FILE") PGSSLMODE=require $as_postgres \
    pg_basebackup --pgdata="$PGDATA" --wal-method=stream --checkpoint=fast --write-recovery-conf
