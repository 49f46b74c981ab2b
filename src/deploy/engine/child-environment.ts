/** Variables of the caller that an engine, a composition tool and git may need. */
const allowed = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'TMPDIR',
  'DOCKER_HOST',
  'DOCKER_CONTEXT',
  'DOCKER_CONFIG',
  'DOCKER_TLS',
  'DOCKER_TLS_VERIFY',
  'DOCKER_CERT_PATH',
  'DOCKER_API_VERSION',
  'DOCKER_BUILDKIT',
  'SSH_AUTH_SOCK',
  'XDG_RUNTIME_DIR',
  'XDG_CONFIG_HOME',
  'XDG_DATA_HOME',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'ALL_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'all_proxy',
  'LANG',
] as const;

/** Variables that a child always gets, also when a stack's `.env` has the same name: they find programs and the engine. */
const needed = new Set<string>(['PATH', 'HOME', 'DOCKER_HOST', 'DOCKER_CONTEXT', 'DOCKER_CONFIG', 'XDG_RUNTIME_DIR']);

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The environment of a program that works for us: the variables named here, and no others. A variable of the stack's `.env` is
 * left out, because Compose would take the caller's value for it.
 */
export function childEnvironment(
  env: Environment,
  { without = [], extra = {} }: { readonly without?: Iterable<string>; readonly extra?: Environment } = {},
): Record<string, string> {
  const hidden = new Set([...without].filter((name) => !needed.has(name)));
  const kept = allowed.filter((name) => !hidden.has(name)).map((name) => [name, env[name]] as const);
  const entries = [...kept, ...Object.entries(extra)];
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** Variables of the caller that a composition tool started by hand would prefer to those of `.env`, sorted. */
export function overridesOf(env: Environment, values: ReadonlyMap<string, string>): string[] {
  return [...values].flatMap(([name, value]) => (env[name] !== undefined && env[name] !== value ? [name] : [])).sort();
}
