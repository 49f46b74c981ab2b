/** A real Caddy with a generated file, on ports of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type CaddyfileOptions, gatewayText } from '../../../src/deploy/files/caddyfile.ts';
import type { PublicHost } from '../../../src/deploy/host/index.ts';
import { unusedPort } from '../../ports.ts';
import { sendRaw } from './clients.ts';
import { serverNameOf } from './hosts.ts';

export interface Gateway {
  readonly ports: { readonly http: number; readonly https: number };
  /** Root certificate of its internal CA, PEM. */
  readonly ca: string;
  /** All that it has printed. */
  log(): string;
  stop(): Promise<void>;
}

/** Everything Caddy keeps is in `directory`, and it gets nothing of our environment. */
export function caddyEnvironment(directory: string): NodeJS.ProcessEnv {
  return {
    PATH: '/usr/bin:/bin',
    HOME: directory,
    XDG_DATA_HOME: join(directory, 'data'),
    XDG_CONFIG_HOME: join(directory, 'config'),
  };
}

const certified = /certificate obtained successfully/;
const stopMs = 20_000;
const greetingPollMs = 20;

/** Resolves when it serves with a certificate of its own CA. */
export async function startGateway(
  program: string,
  directory: string,
  options: Pick<CaddyfileOptions, 'host' | 'upstream' | 'timeouts'>,
): Promise<Gateway> {
  const http = await unusedPort();
  let https = await unusedPort();
  while (https === http) https = await unusedPort();
  const ports = { http, https };
  const text = gatewayText({ ...options, ports, acmeEmail: null, certificates: 'internal' });
  const caddy = await startCaddy(program, directory, { text, ready: certified });
  const root = join(directory, 'data', 'caddy', 'pki', 'authorities', 'local', 'root.crt');
  const gateway = { ...caddy, ports, ca: readFileSync(root, 'utf8') };
  try {
    // Caddy reports readiness before it serves the certificate.
    while (!(await greets(gateway, options.host))) await delay(greetingPollMs);
  } catch (error) {
    await caddy.stop();
    throw error;
  }
  return gateway;
}

async function greets({ ports, ca }: Gateway, host: PublicHost): Promise<boolean> {
  const tls = { ca, identity: host.name, serverName: serverNameOf(host) };
  try {
    const { status } = await sendRaw(
      { port: ports.https, tls },
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    );
    return status === 404;
  } catch (error) {
    // The clock of a check may be some milliseconds behind the one by which the certificate was made.
    if ((error as NodeJS.ErrnoException).code === 'CERT_NOT_YET_VALID') return false;
    throw error;
  }
}

export interface CaddySettings {
  readonly text: string;
  /** Pattern of its output when it is up. */
  readonly ready: RegExp;
  readonly env?: NodeJS.ProcessEnv;
}

export async function startCaddy(
  program: string,
  directory: string,
  { text, ready, env }: CaddySettings,
): Promise<Pick<Gateway, 'log' | 'stop'>> {
  mkdirSync(directory, { recursive: true });
  const file = join(directory, 'Caddyfile');
  writeFileSync(file, text);
  const child = spawn(program, ['run', '--config', file, '--adapter', 'caddyfile'], {
    cwd: directory,
    env: { ...caddyEnvironment(directory), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    const listen = (chunk: Buffer): void => {
      printed += chunk.toString();
      if (ready.test(printed)) resolve();
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`Caddy ended with ${code}: ${printed}`)));
  });
  return { log: () => printed, stop: () => stop(child, exited) };
}

async function stop(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  child.kill('SIGTERM');
  const kept = new AbortController();
  await Promise.race([exited, delay(stopMs, undefined, { signal: kept.signal }).catch(() => {})]);
  kept.abort();
  child.kill('SIGKILL');
  await exited;
}
