/** A review backend as the command line starts it. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { program, programEnvironment } from '../../programs.ts';

const main = program('src/cli/main.ts');

export interface Place {
  readonly home: string;
  readonly state: string;
  readonly config: string;
  /** Writes the settings below `Oratorio`. */
  readonly configure: (settings: object) => void;
  readonly token: () => string;
}

export function place(t: Test): Place {
  const home = mkdtempSync(join(tmpdir(), 'oratorio-backend-'));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const state = join(home, 'state');
  const config = join(home, 'oratorio.config.json');
  // A file that is named must exist.
  writeFileSync(config, '{}');
  return {
    ...{ home, state, config },
    configure: (settings) => writeFileSync(config, JSON.stringify({ Oratorio: settings })),
    token: () => readFileSync(join(state, 'service.token'), 'utf8').trim(),
  };
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts `oratorio backend`; its end is awaited with the test. */
export function start(t: Test, { home, state, config }: Place, args: readonly string[] = [], env: object = {}) {
  const argv = ['backend', '--state', state, '--config', config, '--json', ...args];
  if (!args.includes('--port')) argv.push('--port', '0');
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', main, ...argv], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: home,
    env: { ...programEnvironment, HOME: home, ORATORIO_HOME: home, ...env },
  });
  let [stdout, stderr] = ['', ''];
  const { promise: ready, resolve: serves, reject } = Promise.withResolvers<{ url: string; pid: number }>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    if (stdout.includes('\n') && stdout.includes('"url"')) serves(JSON.parse(stdout.split('\n')[0] ?? ''));
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code) => {
      reject(new Error(`It has ended: ${stderr}`));
      resolve({ code, stdout, stderr });
    });
  });
  ready.catch(() => {});
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, ready, ended, stderr: () => stderr };
}

/** A backend that was started. */
export type Backend = ReturnType<typeof start>;
