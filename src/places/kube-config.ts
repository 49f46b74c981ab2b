import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import * as v from 'valibot';
import { parse } from 'yaml';
import { messageOf } from '../lib/index.ts';
import { runProgram } from '../supervise/index.ts';
import { PlaceError } from './place.ts';

/** Context of a cluster in a kubeconfig file of the user. */
export interface ClusterChoice {
  /** File; empty: `KUBECONFIG`, else `~/.kube/config`. */
  readonly kubeconfig: string;
  /** Empty: the current context of the file. */
  readonly context: string;
}

/** Credentials of one request. */
export interface ClusterCredentials {
  readonly token?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

export interface ClusterAccess {
  /** Absolute path of the file. */
  readonly kubeconfig: string;
  readonly context: string;
  /** Base URL of the API server, without a slash at the end. */
  readonly server: string;
  /** Namespace of the context. */
  readonly namespace: string;
  readonly ca?: string | undefined;
  readonly serverName?: string | undefined;
  /** @throws PlaceError when a credential program fails */
  credentials(): Promise<ClusterCredentials>;
  /** Reads the file again for the next request, because the server refuses the credentials: the user may have logged in again. */
  renew(): void;
}

export interface ClusterOptions {
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Shortest time between two renewals, and between a failed run of a credential program and the next one. */
  readonly renewalMs?: number | undefined;
}

interface ProgramOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly renewalMs: number;
}

const text = v.optional(v.string());
const Plugin = v.object({
  apiVersion: v.string(),
  command: v.string(),
  args: v.nullish(v.array(v.string())),
  env: v.nullish(v.array(v.object({ name: v.string(), value: v.string() }))),
});
type Plugin = v.InferOutput<typeof Plugin>;
const User = v.object({
  ...{ token: text, tokenFile: text, exec: v.nullish(Plugin) },
  ...{ 'client-certificate': text, 'client-certificate-data': text, 'client-key': text, 'client-key-data': text },
});
type User = v.InferOutput<typeof User>;
const Cluster = v.object({
  ...{ server: v.string(), 'certificate-authority': text, 'certificate-authority-data': text },
  ...{ 'tls-server-name': text, 'insecure-skip-tls-verify': v.optional(v.boolean()), 'proxy-url': text },
});
const Kubeconfig = v.object({
  'current-context': text,
  contexts: v.array(
    v.object({ name: v.string(), context: v.object({ cluster: v.string(), user: text, namespace: text }) }),
  ),
  clusters: v.array(v.object({ name: v.string(), cluster: Cluster })),
  users: v.nullish(v.array(v.object({ name: v.string(), user: v.nullish(User) }))),
});
const ExecCredential = v.object({
  status: v.object({
    ...{ token: text, clientCertificateData: text, clientKeyData: text, expirationTimestamp: text },
  }),
});

const fileBytes = 1_048_576;
const pluginMs = 30_000;
/** Time after the exit of a credential program for which a process that it has left may hold its output open. */
const pluginLingerMs = 1_000;
/** A credential is replaced this long before it expires. */
const expiryMarginMs = 60_000;
const defaultRenewalMs = 10_000;

/** A kubeconfig file that cannot be used. A retry does not help. */
const refused = (message: string, cause?: unknown) => new PlaceError({ kind: 'placeRefused', message }, cause);

/**
 * Reads the access to a cluster from the user's kubeconfig file.
 *
 * @throws PlaceError `placeRefused` with the file and the fault
 */
export function clusterAccess(choice: ClusterChoice, options: ClusterOptions = {}): ClusterAccess {
  const { renewalMs = defaultRenewalMs } = options;
  const access = readAccess(choice, options);
  let { credentials } = access;
  let renewedAt = -Infinity;
  return {
    ...access,
    credentials: () => credentials(),
    renew() {
      if (performance.now() - renewedAt < renewalMs) return;
      renewedAt = performance.now();
      try {
        const again = readAccess(choice, options);
        // Credentials of another cluster are never sent to this one.
        if (again.server === access.server && again.ca === access.ca) ({ credentials } = again);
      } catch (error) {
        // The refusal of the server reports the problem, and a later renewal reads the file again.
        if (!(error instanceof PlaceError)) throw error;
      }
    },
  };
}

/** Path of the kubeconfig file. A list of files is not merged: the first one counts. */
export function kubeconfigFile(
  { kubeconfig }: Pick<ClusterChoice, 'kubeconfig'>,
  env: Readonly<Record<string, string | undefined>>,
): string {
  const named = kubeconfig || env['KUBECONFIG']?.split(':').find(Boolean);
  return named ?? join(env['HOME'] ?? homedir(), '.kube/config');
}

function readAccess(
  choice: ClusterChoice,
  { env = process.env, renewalMs = defaultRenewalMs }: ClusterOptions,
): Omit<ClusterAccess, 'renew'> {
  const file = kubeconfigFile(choice, env);
  const fail = (why: string, cause?: unknown) =>
    refused(`The kubeconfig file ${file} cannot be used: ${why}. Correct it, or set Place.Pod.Kubeconfig.`, cause);
  if (!isAbsolute(file)) throw fail('its path is not absolute');
  const config = readConfig(file, fail);
  const name = choice.context || config['current-context'] || '';
  const context = config.contexts.find((each) => each.name === name)?.context;
  if (!context) throw fail(name === '' ? 'it has no current context' : `it has no context ${name}`);
  const cluster = config.clusters.find((each) => each.name === context.cluster)?.cluster;
  if (!cluster) throw fail(`it has no cluster ${context.cluster}`);
  const user = config.users?.find((each) => each.name === context.user)?.user ?? undefined;
  if (URL.parse(cluster.server)?.protocol !== 'https:') throw fail('the server is not an https address');
  if (cluster['insecure-skip-tls-verify'] === true)
    throw fail('insecure-skip-tls-verify would send the credentials to any server');
  if (cluster['proxy-url']) throw fail('proxy-url is not supported: the cluster must be reached directly');
  const from = (data: string | undefined, path: string | undefined) => textOf(dirname(file), data, path, fail);
  return {
    ...{ kubeconfig: file, context: name, server: cluster.server.replace(/(?<!\/)\/+$/, '') },
    namespace: context.namespace || 'default',
    ca: from(cluster['certificate-authority-data'], cluster['certificate-authority']),
    serverName: cluster['tls-server-name'],
    credentials: credentialsOf(user, dirname(file), from, { env, renewalMs }),
  };
}

function readConfig(file: string, fail: (why: string, cause?: unknown) => PlaceError) {
  let content: unknown;
  try {
    const source = readFileSync(file, 'utf8');
    if (source.length > fileBytes) throw new Error('it exceeds 1 MiB');
    content = parse(source, { maxAliasCount: 0 });
  } catch (error) {
    throw fail(messageOf(error).split('\n')[0] ?? '', error);
  }
  const read = v.safeParse(Kubeconfig, content);
  if (!read.success) throw fail(`${v.getDotPath(read.issues[0]) ?? 'the file'} is invalid`);
  return read.output;
}

/** Text of a field that holds Base64 data, or of a file that another field names. */
function textOf(
  directory: string,
  data: string | undefined,
  path: string | undefined,
  fail: (why: string, cause?: unknown) => PlaceError,
): string | undefined {
  if (data) return Buffer.from(data, 'base64').toString('utf8');
  if (!path) return undefined;
  try {
    return readFileSync(resolve(directory, path), 'utf8');
  } catch (error) {
    throw fail(messageOf(error), error);
  }
}

function credentialsOf(
  user: User | undefined,
  directory: string,
  from: (data: string | undefined, path: string | undefined) => string | undefined,
  options: ProgramOptions,
): ClusterAccess['credentials'] {
  const plugin = user?.exec;
  if (plugin) return pluginCredentials(plugin, directory, options);
  return async () => ({
    // A file with a token is renewed by its owner, so it is read for each request.
    token: user?.token || from(undefined, user?.tokenFile)?.trim(),
    cert: from(user?.['client-certificate-data'], user?.['client-certificate']),
    key: from(user?.['client-key-data'], user?.['client-key']),
  });
}

/** Runs the credential program of the user's file, and again when its credential expires. */
function pluginCredentials(
  plugin: Plugin,
  directory: string,
  { env, renewalMs }: ProgramOptions,
): ClusterAccess['credentials'] {
  const { command, args, apiVersion } = plugin;
  const program = command.includes('/') ? resolve(directory, command) : command;
  let known: { readonly until: number; readonly credentials: Promise<ClusterCredentials> } | undefined;
  async function ask(): Promise<ClusterCredentials> {
    const added = Object.fromEntries((plugin.env ?? []).map(({ name, value }) => [name, value]));
    const asked = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } };
    try {
      const stdout = await outputOf(program, args ?? [], {
        ...{ cwd: directory, env: { ...env, ...added, KUBERNETES_EXEC_INFO: JSON.stringify(asked) } },
      });
      const { status } = v.parse(v.pipe(v.string(), v.parseJson(), ExecCredential), stdout);
      const expires = status.expirationTimestamp === undefined ? Infinity : Date.parse(status.expirationTimestamp);
      if (known) known = { ...known, until: expires - expiryMarginMs };
      return { token: status.token, cert: status.clientCertificateData, key: status.clientKeyData };
    } catch {
      // Requests are repeated more often than a program may run that fails.
      if (known) known = { ...known, until: Date.now() + renewalMs };
      // The output of the program may hold a credential.
      throw new PlaceError({
        kind: 'placeUnavailable',
        message: `The credential program ${command} of the kubeconfig file failed. Run it in a terminal, e.g. with kubectl get pods.`,
      });
    }
  }
  return () => {
    if (known && Date.now() < known.until) return known.credentials;
    const credentials = Promise.resolve().then(ask);
    known = { until: Infinity, credentials };
    return credentials;
  };
}

/** Standard output of a program, which has no input. @throws Error unless it ends in time with exit code 0 */
async function outputOf(
  program: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string | undefined>> },
): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const { cause, exitCode } = await runProgram({
    ...{ program, args, ...options, timeoutMs: pluginMs, lingerMs: pluginLingerMs },
    stdout(chunk) {
      bytes += chunk.length;
      if (bytes <= fileBytes) chunks.push(chunk);
    },
  });
  if (cause !== 'exited' || exitCode !== 0 || bytes > fileBytes) throw new Error(`${program} has failed`);
  return Buffer.concat(chunks).toString('utf8');
}
