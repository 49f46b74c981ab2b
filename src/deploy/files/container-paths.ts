/** Where things are inside of the containers. The workspace is at the same place in both (specification §4.4 rule 8). */
export const containerPaths = {
  workspace: '/workspace',
  worktrees: '/workspace/.oratorio/worktrees',
  config: '/etc/oratorio/oratorio.config.json',
  secrets: '/secrets',
  /** The volume of a service. The image has it writable for everybody, as `ORATORIO_UID` is not known when it is built. */
  data: '/data',
  /** State of the backend: database and tokens. Below the volume, because it must belong to the user of the container. */
  backendState: '/data/backend',
  /** Oratorio's home of the agent server. */
  agentHome: '/data/agent',
  /** Settings of the agent server, a mount of their own: it cannot change its permissions. */
  agentConfig: '/data/agent/config.json',
  caddyfile: '/etc/caddy/Caddyfile',
  caddyData: '/data',
  caddyConfig: '/config',
} as const;
