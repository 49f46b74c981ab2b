import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { type CheckResult, type DoctorOptions, examine } from '../../../src/deploy/doctor/index.ts';
import type { Engine, RunOptions, RunResult } from '../../../src/deploy/engine/types.ts';
import { caddyfile } from '../../../src/deploy/files/caddyfile.ts';
import { agentConfig, composeFile, newBackendConfig, newEnv, overlayFile } from '../../../src/deploy/files/index.ts';
import { classifyHost } from '../../../src/deploy/host/index.ts';
import { layoutOf, type StackLayout } from '../../../src/deploy/layout.ts';

/** Secrets of every test: none of them may turn up anywhere. */
export const canaries = {
  ORATORIO_MODEL_API_KEY: 'canary-model-key-Xb81nQ0aZ7',
  ORATORIO_AGENT_TOKEN: 'canary-agent-token-4hT9vKq2LmW8xRz1',
  ORATORIO_DASHBOARD_PASSWORD: 'canary-dashboard-7yUe3PsDf6GhJk0c',
  ORATORIO_SERVICE_TOKEN: 'canary-service-token-9oLp2WqAs5Zx',
  ORATORIO_GITHUB_WEBHOOK_SECRET: 'canary-webhook-secret-1qAz2wSx3eDc',
} as const;

let pem: string | undefined;
/** Private key of an App; made once. */
export function appKey(): string {
  pem ??= generateKeyPairSync('rsa', { modulusLength: 2_048 })
    .privateKey.export({ type: 'pkcs1', format: 'pem' })
    .toString();
  return pem;
}

export const repository = 'acme/shop';
export const checkoutPath = '/workspace/acme__shop';
export const publicName = 'hooks.example.test';

export interface StackOptions {
  readonly hasIngress?: boolean;
  readonly host?: string;
  readonly endpoint?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly key?: string;
  readonly appId?: string;
  readonly writesEnabled?: boolean;
}

/** A directory of its own, gone with the test; not below this checkout, which git would find. */
export function scratch(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-doctor-'));
  t.teardown(() => remove(directory));
  return directory;
}

/** A stack as `server init` leaves it, with one repository. */
export function makeStack(t: Test, options: StackOptions = {}): StackLayout {
  const { hasIngress = false, host = publicName, endpoint, env = {}, key = appKey(), appId = '4711' } = options;
  const layout = layoutOf(scratch(t));
  const uid = String(process.getuid?.() ?? 0);
  const ids = {
    COMPOSE_PROJECT_NAME: 'oratorio-review-test',
    ORATORIO_UID: uid,
    ORATORIO_GID: String(process.getgid?.() ?? 0),
  };
  const model = { ORATORIO_MODEL: 'm', ORATORIO_MODEL_ENDPOINT: 'https://models.example.test/v1' };
  const repositories = [{ repository, workspacePath: checkoutPath, autoReview: true }];
  const config = { appId, writesEnabled: options.writesEnabled ?? true, repositories, ...(endpoint && { endpoint }) };
  mkdirSync(join(layout.workspace, '.oratorio'), { recursive: true, mode: 0o750 });
  mkdirSync(join(layout.workspace, 'acme__shop', '.git'), { recursive: true });
  mkdirSync(layout.agentHome, { recursive: true });
  mkdirSync(layout.secrets);
  mkdirSync(layout.state);
  for (const [path, mode] of [
    [layout.workspace, 0o750],
    [layout.agent, 0o750],
    [layout.agentHome, 0o700],
    [layout.secrets, 0o700],
    [layout.state, 0o700],
  ] as const)
    chmodSync(path, mode);
  put(layout.compose, composeFile({ isSelinux: false }), 0o644);
  put(layout.env, newEnv({ ...ids, ...model, ...canaries, ...env }), 0o600);
  put(layout.config, newBackendConfig(config), 0o640);
  put(layout.agentConfig, agentConfig(), 0o640);
  put(layout.privateKey, key, 0o600);
  put(join(layout.workspace, 'acme__shop', '.git', 'config'), originConfig('https://github.com/acme/shop.git'), 0o644);
  if (hasIngress) addIngress(layout, host);
  return layout;
}

export function addIngress(layout: StackLayout, name: string): void {
  const verdict = classifyHost(name, { allowTestNames: true });
  if (!verdict.ok) throw new Error(verdict.message);
  put(layout.overlay, overlayFile({ isSelinux: false }), 0o644);
  put(layout.caddyfile, caddyfile({ host: verdict.host, acmeEmail: null, certificates: 'internal' }), 0o644);
}

/** Writes a file with a mode, under any umask. */
export function put(path: string, text: string, mode: number): void {
  writeFileSync(path, text);
  chmodSync(path, mode);
}

export const originConfig = (url: string): string => `[core]\n\tbare = false\n[remote "origin"]\n\turl = ${url}\n`;

/** A container as `inspect` describes it; only the differences. */
export interface FakeContainer {
  state?: string;
  health?: string | null;
  exitCode?: number;
  restarts?: number;
  isOutOfMemory?: boolean;
  image?: string;
  imageId?: string;
  ports?: Readonly<Record<string, readonly { HostIp: string; HostPort: string }[]>>;
  /** Where the container has `/workspace`. */
  workspace?: string;
  env?: Readonly<Record<string, string>>;
}

const image = 'sha256:1111111111111111111111111111111111111111111111111111111111111111';
const at = (port: number, host = '127.0.0.1') => [{ HostIp: host, HostPort: String(port) }];

/**
 * An engine of three containers, driven over its own command line. Commands inside of a container really run, with the
 * environment that the container would have and the stack's directory in the place of `/workspace`.
 */
export class FakeEngine implements Engine {
  readonly runtime: Engine['runtime'];
  readonly compose: Engine['compose'];
  readonly containers: Record<string, FakeContainer>;
  /** Every command that was asked for. */
  readonly commands: string[] = [];
  /** Answers in place of those here, by the beginning of the command. */
  readonly answers = new Map<string, Partial<RunResult> | (() => Promise<RunResult>)>();
  imageId = image;
  readonly #layout: StackLayout;

  constructor(layout: StackLayout, { runtime, compose }: Partial<Pick<Engine, 'runtime' | 'compose'>> = {}) {
    this.#layout = layout;
    this.runtime = runtime ?? { kind: 'docker', version: '28.2.2', isRootless: false };
    this.compose = compose ?? { version: '2.40.3' };
    const agentEnv = { ORATORIO_AGENT_TOKEN: canaries.ORATORIO_AGENT_TOKEN };
    const backendEnv = {
      Oratorio__AgentServer__AppServerToken: canaries.ORATORIO_AGENT_TOKEN,
      Oratorio__GitHub__WebhookSecret: canaries.ORATORIO_GITHUB_WEBHOOK_SECRET,
    };
    this.containers = {
      agent: { env: agentEnv, ports: { '9100/tcp': at(19_100), '8080/tcp': at(18_080) } },
      backend: { env: backendEnv, ports: { '5087/tcp': at(5_087) } },
    };
  }

  withGateway(http = 80, https = 443): this {
    this.containers['webhook-gateway'] = {
      image: 'caddy:2.11.4-alpine',
      ports: { '80/tcp': at(http, '0.0.0.0'), '443/tcp': at(https, '0.0.0.0') },
    };
    return this;
  }

  async run(args: readonly string[], options: RunOptions): Promise<RunResult> {
    const [verb = ''] = args;
    const given = this.#given(args.join(' '));
    if (given) return given();
    if (verb === 'ps') return answer(Object.keys(this.containers).join('\n'));
    if (verb === 'inspect') return answer(JSON.stringify(Object.entries(this.containers).map(described)));
    if (verb === 'run') return answer('');
    if (verb === 'image') return answer(`${this.imageId}\n`);
    if (verb === 'exec') return this.#exec(args.slice(1), options);
    throw new Error(`This engine does not know ${verb}`);
  }

  async runCompose(_stack: StackLayout, args: readonly string[]): Promise<RunResult> {
    return this.#given(`compose ${args.join(' ')}`)?.() ?? answer('');
  }

  #given(command: string): (() => Promise<RunResult>) | undefined {
    this.commands.push(command);
    const found = [...this.answers].find(([begin]) => command.startsWith(begin))?.[1];
    if (!found) return undefined;
    return typeof found === 'function' ? found : async () => ({ exitCode: 0, stdout: '', stderr: '', ...found });
  }

  #exec(args: readonly string[], { input, signal }: RunOptions): Promise<RunResult> {
    const [container = '', program = '', ...rest] = args.filter((each) => each !== '--interactive');
    const { env = {}, workspace = this.#layout.workspace } =
      this.containers[container.replace(/^test-|-1$/g, '')] ?? {};
    const inside = rest.map((each) => each.replace(/(^|=)\/workspace/, `$1${workspace}`));
    const own = { PATH: process.env['PATH'] ?? '', ...env };
    return new Promise((resolve, reject) => {
      const child = execFile(
        program === 'node' ? process.execPath : program,
        inside,
        { env: own, timeout: 60_000, ...(signal && { signal }) },
        (error, stdout, stderr) => {
          if (error && typeof error.code !== 'number') reject(error);
          else resolve({ exitCode: Number(error?.code ?? 0), stdout, stderr });
        },
      );
      // A script that does not read may have ended before.
      child.stdin?.on('error', () => {});
      child.stdin?.end(input ?? '');
    });
  }
}

const answer = (stdout: string): RunResult => ({ exitCode: 0, stdout, stderr: '' });

function described([service, own]: readonly [string, FakeContainer]) {
  const { state = 'running', health = 'healthy', exitCode = 0, restarts = 0, isOutOfMemory = false, ports = {} } = own;
  return {
    Id: service,
    Name: `/test-${service}-1`,
    Image: own.imageId ?? image,
    RestartCount: restarts,
    Config: {
      Image: own.image ?? 'oratorio',
      Labels: { 'com.docker.compose.project': 'oratorio-review-test', 'com.docker.compose.service': service },
    },
    State: {
      Status: state,
      ExitCode: exitCode,
      OOMKilled: isOutOfMemory,
      StartedAt: '2026-01-02T03:04:05Z',
      ...(health !== null && { Health: { Status: health } }),
    },
    HostConfig: { PortBindings: ports },
    NetworkSettings: { Ports: ports },
  };
}

/** Asks the doctor, and sees to it that he gives nothing away. */
export async function ask(
  t: Test,
  layout: StackLayout,
  options: Partial<DoctorOptions> & Pick<DoctorOptions, 'engine'>,
): Promise<ReadonlyMap<string, CheckResult>> {
  const results: CheckResult[] = [];
  for await (const result of examine({ directory: layout.directory, env: {}, isOffline: true, ...options }))
    results.push(result);
  givesNothingAway(t, results);
  return new Map(results.map((result) => [result.id, result]));
}

/** One check of all. */
export async function askFor(
  t: Test,
  id: string,
  layout: StackLayout,
  options: Partial<DoctorOptions> & Pick<DoctorOptions, 'engine'>,
): Promise<CheckResult> {
  const found = (await ask(t, layout, { ...options, only: [id] })).get(id);
  if (!found) throw new Error(`The doctor did not tell of ${id}`);
  return found;
}

/** No secret, in no spelling, nor a beginning of one. */
export function givesNothingAway(t: Test, shown: unknown): void {
  const text = JSON.stringify(shown);
  for (const secret of Object.values(canaries)) {
    for (const form of [
      secret,
      Buffer.from(secret).toString('base64'),
      encodeURIComponent(secret),
      secret.slice(0, 12),
    ])
      if (text.includes(form)) t.fail(`A secret is shown: ${text}`);
  }
  for (const line of appKey()
    .split('\n')
    .filter((each) => each.length > 20 && !each.startsWith('-')))
    if (text.includes(line)) t.fail(`The key is shown: ${text}`);
}

export const remove = (path: string): void => rmSync(path, { recursive: true, force: true });
