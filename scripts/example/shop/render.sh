#!/bin/sh
# The transform: one set of manifests for each line of services.txt, and whatever
# lies in extra/ as it is. kubesync runs it in the work tree (INDIR) and applies
# what it leaves in OUTDIR.
set -eu
while read -r name image replicas; do
  case $name in ''|'#'*) continue ;; esac
  sed -e "s|NAME|$name|g" -e "s|IMAGE|$image|g" -e "s|REPLICAS|$replicas|g" service.yaml >"$OUTDIR/$name.yaml"
done <services.txt
cp extra/*.yaml "$OUTDIR/"
