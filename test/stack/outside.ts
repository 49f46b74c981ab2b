/** The internet of a stack: GitHub and a model provider, at `hostAddress`, with certificates that it trusts. */
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { must } from '../deploy/must.ts';
import { Reviewer } from '../e2e/review-harness/reviewer.ts';
import { faults, firstChange, onMain } from '../e2e/review-harness/shop.ts';
import { commitFiles, Forge, type ForgeRepository } from '../review/forge/index.ts';
import { authorityOf, newKey } from './images.ts';
import { hostAddress, variable } from './variables.ts';

interface Teardown {
  teardown(work: () => unknown): void;
}

export interface Outside {
  readonly forge: Forge;
  /** `acme/shop`, with a pull request that is not open yet: see `openPull`. */
  readonly shop: ForgeRepository;
  readonly reviewer: Reviewer;
  /** Address of GitHub: API and git. */
  readonly url: string;
  /** Address of the model provider. */
  readonly modelUrl: string;
  /** Opens a pull request whose change has faults that the model knows. */
  openPull(number: number): Promise<void>;
}

/** Ended with the test. */
export async function startOutside(t: Teardown): Promise<Outside> {
  const forge = await new Forge().start();
  t.teardown(() => forge.stop());
  const shop = await forge.addGitRepository('acme', 'shop', onMain);
  const reviewer = await new Reviewer(Object.values(faults)).start(t);
  const tls = await certificateFor(hostAddress);
  const api = await listen(t, createTlsServer(tls, passTo(forge.url)));
  const model = await listen(t, createTcpServer(passTo(reviewer.url)));
  const url = `https://${hostAddress}:${api}`;
  // Deliveries name repositories by the address that they are reached at.
  Object.defineProperty(forge, 'url', { get: () => url });
  return {
    ...{ forge, shop, reviewer, url },
    modelUrl: `http://${hostAddress}:${model}${new URL(reviewer.url).pathname.replace(/\/$/, '')}`,
    async openPull(number) {
      await commitFiles(shop.gitDirectory ?? '', `change-${number}`, firstChange, { from: 'main' });
      await forge.openPull(shop, { number, headRef: `change-${number}` });
    },
  };
}

/** Every byte to another server of this machine, and back. */
const passTo = (url: string) => (client: Socket) => {
  const { hostname, port } = new URL(url);
  const server = connect(Number(port), hostname);
  // The end of one connection ends the other.
  for (const [one, other] of [
    [client, server],
    [server, client],
  ] as const) {
    one.on('error', () => other.destroy()).on('close', () => other.destroy());
    one.pipe(other);
  }
};

async function listen(t: Teardown, server: Server): Promise<number> {
  const open = new Set<Socket>();
  server.on('connection', (socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, hostAddress, resolve));
  t.teardown(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Signed by the authority of the run. */
async function certificateFor(address: string): Promise<{ key: Buffer; cert: Buffer }> {
  const directory = variable('directory');
  const authority = authorityOf(directory);
  const [key, cert] = [join(directory, 'outside.key'), join(directory, 'outside.crt')];
  const words = [
    ...['req', '-x509', '-subj', `/CN=${address}`, '-addext', `subjectAltName=IP:${address}`, '-days', '2'],
    ...newKey,
    ...['-CA', authority.certificate, '-CAkey', authority.key],
    ...['-addext', 'basicConstraints=critical,CA:FALSE', '-keyout', key, '-out', cert],
  ];
  await must('openssl', words, { timeoutMs: 60_000 });
  return { key: readFileSync(key), cert: readFileSync(cert) };
}
