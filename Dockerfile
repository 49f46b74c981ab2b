# One image for the review backend and the agent server. With the network:
#   docker build -t oratorio:dev .
# Without, on a Debian image of this machine that has git, tini and ca-certificates: npm run image -- build --base NAME
# Plain Dockerfile syntax only: the builder of every engine since 20.10 takes it.
ARG BASE_IMAGE=node:22.23.3-trixie-slim

# --- what runs: from this checkout; left out where it was made on the host before ---
FROM ${BASE_IMAGE} AS build
ARG SOURCE_DATE_EPOCH=315532800
ARG REVISION=unknown
COPY . /source
RUN sh /source/scripts/image/build.sh

# --- the system: Debian, git, tini, certificates, and little else ---
FROM ${BASE_IMAGE} AS system
ARG SOURCE_DATE_EPOCH=315532800
COPY scripts/image/system.sh /tmp/system.sh
RUN sh /tmp/system.sh

# --- the image: copied together, so that what was removed takes no room ---
FROM scratch
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Oratorio" \
      org.opencontainers.image.description="Review backend and agent server" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=system / /
COPY --from=build /node/ /
COPY --from=build /product/ /
# The certificates of the system hold, so that those of a company can be added to them.
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 \
    HOME=/data \
    NODE_ENV=production \
    NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
USER 10001:10001
WORKDIR /workspace
# -s: also under the init of the engine (compose: init: true), when it is not the first process.
ENTRYPOINT ["tini", "-s", "--", "oratorio"]
CMD ["--help"]
