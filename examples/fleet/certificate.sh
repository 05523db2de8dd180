#!/bin/sh
# Makes an authority (ca.crt, ca.key) and a certificate of the server for this name (server.crt,
# server.key), all in the current folder. The machines need ca.crt.
#
#   sh certificate.sh db.example.com
set -eu
name=$1
umask 077
new="openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650"
$new -subj "/CN=authority of $name" -keyout ca.key -out ca.crt \
    -addext "keyUsage=critical,keyCertSign" 2>/dev/null
$new -subj "/CN=$name" -keyout server.key -out server.crt -CA ca.crt -CAkey ca.key \
    -addext "subjectAltName=DNS:$name" -addext "basicConstraints=critical,CA:FALSE" \
    -addext "extendedKeyUsage=serverAuth"
