# syntax=docker/dockerfile:1
# A static binary, the authorities' certificates, the licences, and nothing else; not root. Of any architecture Go knows:
# `docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=1.0.0 …`. `--target dev` builds the
# development engine and the samples in its place, of which the production image has nothing.
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ARG COMMIT=unknown
ARG DATE=1970-01-01T00:00:00Z
ARG TARGETARCH=amd64
ENV VERSION=$VERSION COMMIT=$COMMIT DATE=$DATE TARGETARCH=$TARGETARCH
RUN ARCHS="$TARGETARCH" scripts/release /out \
 && mv "/out/retry-worker_${VERSION}_linux_$TARGETARCH" /out/retry-worker \
 && mv "/out/retry-worker_${VERSION}_linux_$TARGETARCH.cdx.json" /out/retry-worker.cdx.json \
 && mv "/out/retry-worker_${VERSION}_linux_$TARGETARCH.licences.txt" /out/LICENCES.txt \
 && mkdir /out/data

FROM build AS build-dev
RUN PROGRAM=retry-worker-dev ARCHS="$TARGETARCH" scripts/release /out \
 && mv "/out/retry-worker-dev_${VERSION}_linux_$TARGETARCH" /out/retry-worker-dev \
 && mv "/out/retry-worker-dev_${VERSION}_linux_$TARGETARCH.cdx.json" /out/retry-worker-dev.cdx.json \
 && mv "/out/retry-worker-dev_${VERSION}_linux_$TARGETARCH.licences.txt" /out/LICENCES.txt

FROM scratch AS dev
COPY --from=build-dev /out/retry-worker-dev /out/retry-worker-dev.cdx.json /out/LICENCES.txt /
COPY --from=build-dev --chown=65532:65532 /out/data /data
USER 65532:65532
VOLUME /data
WORKDIR /data
EXPOSE 8080 9600 26500
ENTRYPOINT ["/retry-worker-dev"]

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/retry-worker /out/retry-worker.cdx.json /out/LICENCES.txt /
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
# Inside the container the probes must be reachable from outside it; the journal outlives it.
ENV RETRY_WORKER_OPS_ADDR=0.0.0.0:9095
VOLUME /data
WORKDIR /data
EXPOSE 8095 9095
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/retry-worker", "ready"]
ENTRYPOINT ["/retry-worker"]
CMD ["serve"]
