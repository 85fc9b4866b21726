# syntax=docker/dockerfile:1
# A static binary, the authorities' certificates, and nothing else; not root.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ARG COMMIT=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION} -X main.commit=${COMMIT}" \
      -o /out/retry-worker ./cmd/retry-worker && mkdir /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/retry-worker /retry-worker
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
# Inside the container the probes must be reachable from outside it; the journal outlives it.
ENV RETRY_WORKER_OPS_ADDR=0.0.0.0:9095 RETRY_WORKER_DATABASE_URL=sqlite:/data/retry-worker.db
VOLUME /data
EXPOSE 9095
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/retry-worker", "ready"]
ENTRYPOINT ["/retry-worker"]
CMD ["serve"]
