/** A machine to try `oratorio server` on: a fake engine, local repositories, and everything written down that a secret could leak into. */
import { execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { Writable } from 'node:stream';
import type { Test } from 'tap';
import { runCommandLine } from '../../src/cli/run.ts';
import { type FakeEngine, type FakeScenario, fakeEngine } from '../deploy/fake-engine/index.ts';
import { unusedPort } from '../ports.ts';
import { program } from '../programs.ts';

export const main = program('src/cli/main.ts');

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Secrets that every run is searched for. */
export const canaries = {
  modelKey: 'sk-canary-{HOME}%2Fmodel#key=4711',
  webhook: 'canary-webhook-secret-0815-0123456789',
} as const;

let privateKeyText: string | undefined;

/** A private key as GitHub gives one out. Made once: it takes a while. */
export function privateKey(): string {
  privateKeyText ??= generateKeyPairSync('rsa', { modulusLength: 2_048 })
    .privateKey.export({ type: 'pkcs1', format: 'pem' })
    .toString();
  return privateKeyText;
}

export interface Machine {
  /** Where commands are run. */
  readonly home: string;
  /** Directory of the stack. */
  readonly directory: string;
  /** Free port for the backend. */
  readonly port: string;
  readonly fake: FakeEngine;
  /** A repository that can be cloned; the value of `--clone-url`. */
  readonly repository: (name: string) => string;
  readonly file: (name: string, content: string) => string;
  /** Runs a command line in this process, with standard input and output that are not a terminal. */
  readonly cli: (...argv: string[]) => Promise<Ended>;
  /** Runs a command line in this process with other variables of the environment. */
  readonly cliWith: (env: Readonly<Record<string, string>>, ...argv: string[]) => Promise<Ended>;
  /** Runs a command line in a process of its own. */
  readonly start: (argv: readonly string[], options?: SpawnOptions) => ReturnType<typeof start>;
  /** `server init` with all required options; given options replace those, and repositories are added. */
  readonly init: (...argv: string[]) => Promise<Ended>;
  readonly initArguments: (...argv: string[]) => string[];
  readonly stackFile: (path: string) => string;
  /** Everything any run has printed. */
  readonly printed: () => string;
}

/** Creates a machine, removed after the test. */
export async function machine(t: Test, scenario: FakeScenario = {}): Promise<Machine> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-server-')));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const fake = fakeEngine(t, { images: [image], registry: [gatewayImage], ...scenario });
  const env = { ...fake.env, ORATORIO_HOME: home, HOME: home };
  const directory = join(home, 'stack');
  const port = String(await unusedPort());
  let printed = '';
  const note = <E extends Ended>(ended: E): E => {
    printed += `${ended.stdout}${ended.stderr}`;
    return ended;
  };
  const file = (name: string, content: string): string => {
    writeFileSync(join(home, name), content, { mode: 0o600 });
    return join(home, name);
  };
  const cliWith: Machine['cliWith'] = async (more, ...argv) =>
    note(await runInProcess(argv, home, { ...env, ...more }));
  const defaults = (): [string, string][] => [
    ['--dir', directory],
    ['--port', port],
    ['--image', image],
    ['--provider', 'openai'],
    ['--api-key-file', file('model.key', `${canaries.modelKey}\n`)],
    ['--github-app-id', '4711'],
    ['--github-app-private-key-file', file('app.pem', privateKey())],
  ];
  const initArguments = (...argv: string[]): string[] => [
    ...['server', 'init', '--yes', '--offline'],
    ...['--repo', 'octo/app', '--clone-url', `octo/app=${repository(home, 'octo/app')}`],
    ...defaults().flatMap((option) => (argv.includes(option[0]) ? [] : option)),
    ...argv,
  ];
  return {
    home,
    directory,
    port,
    fake,
    repository: (name) => repository(home, name),
    file,
    cli: (...argv) => cliWith({}, ...argv),
    cliWith,
    start: (argv, options) => {
      const running = start(argv, { cwd: home, ...options, env: { ...env, ...options?.env } });
      return { ...running, ended: running.ended.then(note) };
    },
    init: (...argv) => cliWith({}, ...initArguments(...argv)),
    initArguments,
    stackFile: (path) => readFileSync(join(directory, path), 'utf8'),
    printed: () => printed,
  };
}

export const image = 'oratorio-test:1';
export const gatewayImage = 'caddy:2.11.4-alpine';

/** Repositories by name, made once and copied for each machine. */
const originals = new Map<string, string>();

function originalOf(name: string): string {
  const made = originals.get(name);
  if (made !== undefined) return made;
  const path = mkdtempSync(join(tmpdir(), 'oratorio-original-'));
  process.once('exit', () => rmSync(path, { recursive: true, force: true }));
  const git = (...args: string[]) => execFileSync('git', ['-C', path, ...args], { stdio: 'pipe' });
  writeFileSync(join(path, 'README.md'), `# ${name}\n`);
  // Without the examples of hooks, which every copy would hold.
  git('init', '--quiet', '--template=', '--initial-branch=main');
  git('add', '.');
  git('-c', 'user.name=t', '-c', 'user.email=t@example.com', '-c', 'commit.gpgsign=false', 'commit', '-qm', 'first');
  originals.set(name, path);
  return path;
}

function repository(home: string, name: string): string {
  const path = join(home, 'remotes', name);
  if (!existsSync(path)) cpSync(originalOf(name), path, { recursive: true });
  return path;
}

class Collected extends Writable {
  text = '';
  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

async function runInProcess(argv: readonly string[], cwd: string, env: Record<string, string>): Promise<Ended> {
  const [stdout, stderr] = [new Collected(), new Collected()];
  const interruption = () => ({ signal: new AbortController().signal, exit: () => 'interrupted' as const });
  const code = await runCommandLine(argv, { stdout, stderr, env, cwd, interruption });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

function start(argv: readonly string[], options: SpawnOptions) {
  const args = ['--disable-warning=ExperimentalWarning', '--conditions=development', main, ...argv];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  let [stdout, stderr] = ['', ''];
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ended>((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
  return { child, ended };
}

/** Files of a directory, with their content; checkouts and links are left out. */
export function filesOf(directory: string): ReadonlyMap<string, string> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(files.map((path) => [relative(directory, path), readFileSync(path, 'utf8')]));
}

/** Files that may contain a secret: the configuration of the containers and its backups, readable by their owner only. */
const mayHold = (path: string): boolean =>
  path === '.env' || path.startsWith(`secrets${sep}`) || /^\.server\/backup\/[^/]+\/file-\.env(?:\.\w+)?$/.test(path);

/**
 * Checks the output of commands, the arguments of their children, and every file of the stack except `.env` and `secrets/`
 * for secrets. Each entry of `printed` permits one occurrence in the output.
 */
export function checkSecrets(t: Test, m: Machine, more: readonly string[] = [], printed: readonly string[] = []): void {
  const env = new Map(
    [...m.stackFile('.env').matchAll(/^(\w+)='(.*)'$/gm)].map(([, name = '', value = '']) => [name, value]),
  );
  const made = ['ORATORIO_AGENT_TOKEN', 'ORATORIO_DASHBOARD_PASSWORD', 'ORATORIO_SERVICE_TOKEN'].map(
    (name) => env.get(name) ?? '',
  );
  const key = privateKey().split('\n')[3] ?? '';
  const secrets = [canaries.modelKey, key, ...made, ...more].filter((secret) => secret !== '');
  t.ok(secrets.length >= 5, 'there are secrets to look for');
  for (const secret of secrets) {
    const times = printed.filter((each) => each === secret).length;
    t.equal(m.printed().split(secret).length - 1, times, `printed ${times} times`);
    t.notOk(
      m.fake.calls().some(({ args }) => args.join(' ').includes(secret)),
      'in no argument of a child',
    );
    for (const [path, content] of filesOf(m.directory))
      if (mayHold(path)) t.equal(statSync(join(m.directory, path)).mode & 0o077, 0, `${path} is its owner's`);
      else t.notOk(content.includes(secret), `not in ${path}`);
  }
}
