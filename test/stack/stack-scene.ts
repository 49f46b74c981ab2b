/** A review server set up by the command line tool, as its owner would, and helpers to inspect it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { must } from '../deploy/must.ts';
import { type Ended, makePlace, oratorio, type Place, type Teardown } from '../e2e/harness.ts';
import { ReviewApi } from '../e2e/review-harness/api.ts';
import { issueToken } from '../review/forge/auth.ts';
import { authorityOf } from './images.ts';
import type { Outside } from './outside.ts';
import { variable } from './variables.ts';

const askMs = 60_000;

/** The owner's account on the server: git has credentials for GitHub, and the authority of the tests is trusted. */
export function ownerOf(t: Teardown, { forge, shop, url }: Outside): Place {
  const place = makePlace(t, 'oratorio-owner-');
  const { certificate } = authorityOf(variable('directory'));
  const { value } = issueToken(forge, {
    installationId: shop.installationId ?? 0,
    repositories: undefined,
    permissions: { contents: 'read' },
  });
  const credentials = join(place.root, '.git-credentials');
  writeFileSync(credentials, `${url.replace('://', `://x-access-token:${value}@`)}\n`, { mode: 0o600 });
  const config = `[http]\n\tsslCAInfo = ${certificate}\n[credential]\n\thelper = store --file=${credentials}\n`;
  writeFileSync(join(place.root, '.gitconfig'), config);
  mkdirSync(place.home, { recursive: true });
  const { DOCKER_HOST = '', DOCKER_CONFIG = '' } = process.env;
  return { ...place, env: { ...place.env, DOCKER_HOST, DOCKER_CONFIG, NODE_EXTRA_CA_CERTS: certificate } };
}

/** One stack of an owner. */
export class StackScene {
  readonly place: Place;
  readonly directory: string;
  /** All that the tool has printed. */
  readonly printed: string[] = [];

  constructor(place: Place) {
    this.place = place;
    this.directory = join(place.root, 'stack');
  }

  /** `oratorio server …` on this stack. */
  async server(...argv: readonly string[]): Promise<Ended> {
    const ended = await oratorio(this.place, ['server', ...argv, '--dir', this.directory]);
    this.printed.push(ended.stdout, ended.stderr);
    return ended;
  }

  /** Runs a command that must succeed. @returns its output */
  async done(...argv: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.server(...argv);
    if (code === 0) return stdout;
    throw new Error(
      `oratorio server ${argv.join(' ')} ended with ${code}:\n${stdout}\n${stderr}\n${await this.logs()}`,
    );
  }

  read(file: string): string {
    return readFileSync(join(this.directory, file), 'utf8');
  }

  /** A value of `.env`. */
  value(name: string): string {
    return new RegExp(`^${name}='(.*)'$`, 'm').exec(this.read('.env'))?.[1] ?? '';
  }

  /** The backend's API through its port on the loopback, as through a tunnel. */
  get api(): ReviewApi {
    return new ReviewApi(this.backendUrl, () => this.value('ORATORIO_SERVICE_TOKEN'));
  }
  get backendUrl(): string {
    return `http://127.0.0.1:${this.value('ORATORIO_BACKEND_PORT')}`;
  }

  /** Ids of the containers that run, by service. */
  async containers(): Promise<Readonly<Record<string, string>>> {
    const filter = `label=com.docker.compose.project=${this.value('COMPOSE_PROJECT_NAME')}`;
    const format = '{{.Label "com.docker.compose.service"}} {{.ID}}';
    const text = await must('docker', ['ps', '--no-trunc', '--filter', filter, '--format', format], {
      timeoutMs: askMs,
    });
    const pairs = text.trim().split('\n').filter(Boolean);
    return Object.fromEntries(pairs.map((line) => line.split(' ') as [string, string]));
  }

  /** A shell script in a service's container. */
  async inside(service: string, script: string): Promise<string> {
    const id = (await this.containers())[service] ?? service;
    return must('docker', ['exec', id, 'sh', '-ec', script], { timeoutMs: askMs });
  }

  /** The last that the containers have said. */
  async logs(): Promise<string> {
    const { stdout } = await oratorio(this.place, ['server', 'logs', '--dir', this.directory, '--tail', '40']);
    return stdout;
  }

  /** Ends all that runs, for the teardown. */
  async remove(): Promise<void> {
    const filter = ['--filter', 'label=com.docker.compose.project', '-q', '-a'];
    const ids = (await must('docker', ['ps', ...filter], { timeoutMs: askMs })).split('\n').filter(Boolean);
    if (ids.length > 0) await must('docker', ['rm', '--force', '--volumes', ...ids], { timeoutMs: askMs });
  }
}

/**
 * GitHub's way to the gateway: requests to it go to `host` on this machine, over TLS and with the certificate checked
 * against `authority`. @returns the address to send to
 */
export async function wayTo(t: Teardown, { host, authority }: { host: string; authority: string }): Promise<string> {
  const server = createServer((incoming, response) => void forward(incoming, response));
  const forward = (incoming: IncomingMessage, response: ServerResponse) => {
    const options = {
      ...{ host: '127.0.0.1', port: 443, servername: host, ca: authority, agent: false },
      ...{ method: incoming.method, path: incoming.url, headers: { ...incoming.headers, host } },
    };
    const outgoing = request(options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    incoming.pipe(outgoing);
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
