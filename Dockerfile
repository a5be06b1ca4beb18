# Two images from one file, both static, non-root and made for a read-only root:
#
#   docker build -t kubesync .                       with the tools transform commands use
#   docker build -t kubesync:slim --target slim .    the binary and CA certificates alone
#
# VERSION is what `kubesync version` prints. The base images are arguments so
# that a mirror, another distribution or a local folder can take their place:
# GO_IMAGE needs Go and CA certificates, BASE_IMAGE needs apt-get.
ARG GO_IMAGE=golang:1.26-trixie
ARG BASE_IMAGE=debian:trixie-slim

# Go compiles for another platform as fast as for its own, so no compiler is emulated.
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS go
# Where Go modules come from; Go's own default unless given.
ARG GOPROXY
ARG TARGETARCH
ENV CGO_ENABLED=0 GOARCH=${TARGETARCH}

FROM go AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
# /rootfs is the whole of the slim image. The passwd entry gives the uid a name
# and a home that is writable; /tmp is where transforms work.
RUN scripts/build /rootfs/usr/local/bin/kubesync \
 && mkdir -p /rootfs/etc/ssl/certs /rootfs/tmp \
 && chmod 1777 /rootfs/tmp \
 && cp /etc/ssl/certs/ca-certificates.crt /rootfs/etc/ssl/certs/ \
 && echo 'root:x:0:0:root:/:/sbin/nologin' > /rootfs/etc/passwd \
 && echo 'kubesync:x:65532:65532:kubesync:/tmp:/sbin/nologin' >> /rootfs/etc/passwd \
 && echo 'root:x:0:' > /rootfs/etc/group \
 && echo 'kubesync:x:65532:' >> /rootfs/etc/group

FROM scratch AS slim
ARG VERSION=dev
LABEL org.opencontainers.image.title="kubesync" \
      org.opencontainers.image.description="Makes a Kubernetes cluster what git says (binary and CA certificates alone)" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /rootfs/ /
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/kubesync"]

FROM go AS tools
WORKDIR /src/scripts/image-tools
COPY scripts/image-tools/go.mod scripts/image-tools/go.sum ./
RUN go mod download
COPY scripts/image-tools/ ./
RUN ./build /rootfs/usr/local/bin

FROM ${BASE_IMAGE} AS default
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl gettext-base git jq \
 && rm -rf /var/lib/apt/lists/* /var/log/* /var/cache/* \
 && echo 'kubesync:x:65532:65532:kubesync:/tmp:/sbin/nologin' >> /etc/passwd \
 && echo 'kubesync:x:65532:' >> /etc/group
ARG VERSION=dev
LABEL org.opencontainers.image.title="kubesync" \
      org.opencontainers.image.description="Makes a Kubernetes cluster what git says (with sh, git, curl, jq, yq, envsubst and kubectl for transforms)" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=tools /rootfs/ /
COPY --from=build /rootfs/usr/local/bin/kubesync /usr/local/bin/kubesync
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/kubesync"]
