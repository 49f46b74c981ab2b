/** Names, numbers and limits of a stack that the user did not choose otherwise. The one table of the room. */
export const defaults = {
  directory: 'oratorio-review',
  /** Ports on the host's loopback (specification §8; the first free one from there on). */
  ports: { backend: 5087, agent: 19_100, dashboard: 18_080 },
  /** Ports inside of the containers. */
  containerPorts: { backend: 5087, agent: 9100, dashboard: 8080 },
  gatewayPorts: [80, 443],
  webhookPath: '/api/v1/sources/github/webhook',
  /** Largest body of a delivery (design §5). */
  webhookBodyBytes: 25 * 1024 * 1024,
  /** Bytes of every secret made here. */
  secretBytes: 32,
  secretLength: { min: 16, max: 256 },
  /** User id of the containers when root sets the stack up. */
  user: 10_001,
  image: 'oratorio',
  gatewayImage: 'caddy:2.11.4-alpine',
  privateKeyPath: '/secrets/github-app.pem',
  directoryModes: { stack: 0o750, workspace: 0o750, agent: 0o750, agentHome: 0o700, secrets: 0o700, state: 0o700 },
  fileModes: { secret: 0o600, config: 0o640, public: 0o644 },
  timeouts: {
    /** Deadline of a question to the engine. */
    askMs: 15_000,
    /** Deadline of `compose config` and of the gateway's check of its file. */
    checkMs: 120_000,
    pullMs: 1_800_000,
    buildMs: 1_800_000,
    upMs: 300_000,
    stopMs: 120_000,
    cloneMs: 3_600_000,
    healthyMs: 120_000,
    healthPollMs: 1_000,
    httpMs: 10_000,
  },
  /** Output of a program that is stored for an error. */
  outputBytes: 1_048_576,
  keptBackups: 5,
  logLines: 200,
} as const;
