#!/bin/sh
# Which addresses of a pool are taken and free, what nobody has any more, and what would be in the way of the pool's end. Nothing
# is changed but by the one cleanup in the middle, which ends the leases of pods that are gone and of nobody else.
# Run it as: sh inspect-and-cleanup.sh [POOL [NAMESPACE]]
set -eu
pool=${1:-examples}
namespace=${2:-default}

# Allocated, free, reserved and cooling addresses as ranges: of the pool, and of the pools that a namespace draws from.
kubectl bcsnet inspect pool "$pool"
kubectl bcsnet inspect namespace "$namespace"

# For a script of yours: the first free range.
kubectl bcsnet inspect pool "$pool" -o jsonpath='{.pools[0].free.ranges[0]}{"\n"}'

# A dry run counts: pods that live, that are gone, that may still run, and what claims keep.
kubectl bcsnet ip release --pool "$pool" --dry-run=client

# The same for good. It looks twice, a minute apart; what is not sure is left alone.
kubectl bcsnet ip release --pool "$pool" --yes --settle "${SETTLE:-1m}" --reason 'monthly look'

# What a deletion would meet, and what would change with it.
kubectl bcsnet pool delete "$pool" --dry-run=client
