# The image of the server: built from the sources, then the Debian package in a small system.
#
#   docker build --build-arg COMMIT="$(git rev-parse --short=12 HEAD)" --tag hearth .
#   docker run --publish 127.0.0.1:8080:8080 --volume hearth:/var/lib/hearth --env HEARTH_EMULATOR=true hearth
FROM swift:6.3-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends make ca-certificates
WORKDIR /source
COPY . .
ARG COMMIT=
RUN make deb HEARTH_COMMIT="$COMMIT"

FROM debian:bookworm-slim
# The same number everywhere, for the owners of volumes.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/hearth --shell /usr/sbin/nologin hearth
RUN --mount=type=bind,from=build,source=/source/dist,target=/packages \
    apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates /packages/hearth_*.deb \
    && rm -rf /var/lib/apt/lists/*
# Everything that the container is reached by. Outside of a loopback address only signed tokens and credentials are
# accepted, unless HEARTH_EMULATOR says otherwise.
ENV HEARTH_HOST=*
USER hearth
# hearth.json, firebase.json, firestore.rules and what they name.
WORKDIR /etc/hearth
VOLUME /var/lib/hearth
EXPOSE 8080
# It answers within 10 seconds; a server whose disk hangs says so after 5.
HEALTHCHECK --interval=10s --timeout=15s --start-period=30s CMD ["hearth", "health"]
ENTRYPOINT ["hearth"]
CMD ["serve"]
