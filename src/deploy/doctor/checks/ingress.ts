import { createHash, createHmac, randomBytes, X509Certificate } from 'node:crypto';
import { connect, isIP } from 'node:net';
import type { DetailedPeerCertificate } from 'node:tls';
import { isPublicAddress } from '../../../addresses/index.ts';
import { defaults } from '../../defaults.ts';
import type { ServiceState } from '../../engine/index.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok, warn, worst } from '../finding.ts';
import { askGateway, certificateOf, type GatewayAnswer, type Question } from '../gateway.ts';
import { limits } from '../limits.ts';
import type { Finding } from '../types.ts';
import { isLoopback } from './containers.ts';

/** The gateway answers for a host that GitHub can reach. */
export function publicHost({ gatewayHost }: DoctorContext): Finding {
  const hint = 'oratorio server webhook enable --public-host <name or address>';
  if (gatewayHost === null) return fail('The Caddyfile does not say for which host it is.', hint);
  return gatewayHost.ok ? ok(`It is for ${gatewayHost.host.origin}.`) : fail(gatewayHost.message, hint);
}

/** Reads a nonce and a proof, and says whether the backend's own secret makes the same proof. Prints one word. */
const compare = `
const {createHash, createHmac, timingSafeEqual} = require('node:crypto');
const [nonce, proof] = require('node:fs').readFileSync(0, 'utf8').split('\\n');
const names = ['oratorio__github__webhooksecret', 'oratorio_github_webhook_secret'];
const secret = Object.entries(process.env).find(([name, value]) => value && names.includes(name.toLowerCase()))?.[1];
const mine = secret && createHmac('sha256', nonce).update(createHash('sha256').update(secret).digest()).digest();
const theirs = Buffer.from(proof, 'hex');
console.log(!mine ? 'missing' : mine.length === theirs.length && timingSafeEqual(mine, theirs) ? 'same' : 'other');
`;

const restart = 'oratorio server restart';
const words: Readonly<Record<string, Finding>> = {
  same: ok('Configured; the backend runs with it.'),
  other: fail('Configured; the backend runs with another one.', restart),
  missing: fail('Configured; the backend was started without it.', restart),
};

/** The running backend has the secret of `.env`. Both are compared inside of its container; neither leaves where it is. */
export async function secret(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const value = context.value('ORATORIO_GITHUB_WEBHOOK_SECRET');
  if (value === '') return fail('Missing.', 'oratorio server webhook enable makes one.');
  const nonce = randomBytes(16).toString('hex');
  const proof = createHmac('sha256', nonce).update(sha256(value)).digest('hex');
  const { stdout } = await context.inside('backend', ['node', '-e', compare], {
    input: `${nonce}\n${proof}\n`,
    signal,
  });
  return (
    words[stdout.trim()] ??
    fail('The container of the backend cannot be asked.', 'oratorio server logs --service backend')
  );
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

/** A translated address (DNS64, RFC 6147) is the work of this network: GitHub cannot reach it. */
const isPublic = (address: string): boolean => isPublicAddress(address, { embedded: 'refuse' });

/** Whether the public host leads here. Behind a router it leads to an address that this host cannot know: never a failure. */
export async function dns(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const { kind, name } = context.publicHost();
  const mine = context.host.addresses().filter(isPublic);
  const isHere = (address: string): boolean => mine.includes(address);
  const here = mine.length === 0 ? 'this host has no public address of its own' : `this host has ${mine.join(', ')}`;
  const behindRouter =
    'Right when a router or load balancer forwards ports 80 and 443 to this host; otherwise change it.';
  if (kind !== 'dns')
    return isHere(name)
      ? ok(`${name} is an address of this host.`)
      : warn(`${name} is the host; ${here}.`, behindRouter);
  const found = await context.host.resolve(name, signal).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error)
    return warn(`No name server answers (${found.code ?? found.message}).`, 'See /etc/resolv.conf of this host.');
  if (found.length === 0)
    return warn(`${name} has no address yet; ${here}.`, 'Add an A or AAAA record; a certificate can be had only then.');
  const seen = `${name} has ${found.join(', ')}`;
  const inside = found.filter((address) => !isPublic(address));
  if (inside.length > 0)
    return warn(`${seen}; ${inside.join(', ')} cannot be reached from the Internet.`, 'GitHub needs a public address.');
  const elsewhere = found.filter((address) => !isHere(address));
  return elsewhere.length === 0 ? ok(`${seen}, of this host.`) : warn(`${seen}; ${here}.`, behindRouter);
}

const logs = 'The gateway says why: oratorio server logs --service webhook-gateway';

/** Checks the certificate that GitHub sees: its host, its issuer and its end. */
export async function certificate(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const { name } = context.publicHost();
  const asked = AbortSignal.any([signal, AbortSignal.timeout(limits.askMs)]);
  const shown = await certificateOf(context.gateway, name, asked).catch((error: NodeJS.ErrnoException) => error);
  if (shown instanceof Error)
    return fail(
      `No TLS connection for ${name} (${shown.code ?? shown.message}).`,
      `There may be no certificate yet. ${logs}`,
    );
  const { certificate: seen, distrust } = shown;
  if (!isFor(name, seen)) return fail(`The certificate is not for ${name}.`, logs);
  const life = lifeOf(seen, context.host.now());
  if (life.leftMs <= 0) return fail(`The certificate ended at ${life.end}.`, logs);
  const saw = `Of ${issuerOf(seen)}, until ${life.end}.`;
  if (distrust !== null)
    return fail(`${saw} It is not trusted (${distrust}).`, `GitHub delivers only to a certificate it trusts. ${logs}`);
  const isLate = life.leftMs < life.wholeMs * limits.certificateLifeLeft;
  return isLate
    ? warn(`${saw} It should have been renewed by now.`, `Ports 80 and 443 must be open. ${logs}`)
    : ok(saw);
}

/** Not `tls.checkServerIdentity`: it does not know an IPv6 address again. */
function isFor(name: string, { raw }: DetailedPeerCertificate): boolean {
  const certified = new X509Certificate(raw);
  const found = isIP(name) === 0 ? certified.checkHost(name, { subject: 'never' }) : certified.checkIP(name);
  return found !== undefined;
}

function lifeOf({ valid_from, valid_to }: DetailedPeerCertificate, now: number) {
  const end = Date.parse(valid_to);
  return { end: new Date(end).toISOString(), leftMs: end - now, wholeMs: end - Date.parse(valid_from) };
}

function issuerOf({ issuer }: DetailedPeerCertificate): string {
  const named = [issuer.O, issuer.CN].flatMap((each) => each ?? []);
  return named.length === 0
    ? 'an unnamed issuer'
    : named
        .join(' ')
        .replace(/[^\x20-\x7e]+/g, ' ')
        .slice(0, 100);
}

/** Ports 80 and 443 are answered on this host, and by the gateway of this stack (specification §4.4, rule 4). */
export async function listeners(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const gateway = await context.service('webhook-gateway');
  const { host, httpPort, httpsPort } = context.gateway;
  const asked = AbortSignal.any([signal, AbortSignal.timeout(limits.askMs)]);
  const findings = await Promise.all(
    [httpPort, httpsPort].map(async (port, at) => {
      const inside = defaults.gatewayPorts[at] ?? port;
      return listenerFinding(port, publishedAt(gateway, inside), await isAnswered(host, port, asked));
    }),
  );
  return worst(findings, `The gateway listens on ${httpPort} and ${httpsPort}.`);
}

/** Where others reach this port of the gateway. */
const publishedAt = (gateway: ServiceState | undefined, containerPort: number): boolean =>
  (gateway?.ports ?? []).some((each) => each.containerPort === containerPort && !isLoopback(each.host));

function listenerFinding(port: number, isOurs: boolean, isAnswered: boolean): Finding {
  if (isOurs && isAnswered) return ok(String(port));
  if (isOurs)
    return fail(`No server answers on port ${port}`, 'oratorio server restart; then check the firewall of this host.');
  return isAnswered
    ? fail(
        `Port ${port} is answered by something else than the gateway`,
        'Stop that program, then: oratorio server restart',
      )
    : fail(`No process listens on port ${port}`, 'Start the gateway: oratorio server restart');
}

function isAnswered(host: string, port: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, signal });
    const finish = (answered: boolean) => (): void => {
      socket.destroy();
      resolve(answered);
    };
    socket.once('connect', finish(true));
    socket.once('error', finish(false));
  });
}

interface Probe extends Question {
  readonly request: string;
  readonly isRight: (answer: GatewayAnswer, publicHost: string) => boolean;
  readonly expected: string;
  /** Explanation by status of the answer. */
  readonly meaning?: Readonly<Record<number, string>>;
}

const path = defaults.webhookPath;
const notFound = { isRight: ({ status }: GatewayAnswer) => status === 404, expected: '404' };
const generated = 'The gateway lets more through than it should: run oratorio server webhook enable again.';

/** Only the exact POST reaches the backend, which refuses it without a signature (specification §4.4, rule 2). */
const probes: readonly Probe[] = [
  { request: `GET ${path}`, method: 'GET', path, isTls: true, ...notFound },
  { request: 'POST /health', method: 'POST', path: '/health', isTls: true, body: '{}', ...notFound },
  {
    request: `unsigned POST ${path}`,
    method: 'POST',
    path,
    isTls: true,
    body: '{}',
    // 429: a client has sent wrong signatures for a while. The backend still works.
    isRight: ({ status }) => status === 403 || status === 429,
    expected: '403',
    meaning: {
      502: 'The gateway does not reach the backend: see that it runs, and oratorio server restart.',
      503: 'The backend has no webhook secret: oratorio server restart.',
      404: 'The gateway does not know the webhook: run oratorio server webhook enable again.',
    },
  },
  {
    request: 'http://',
    method: 'GET',
    path,
    isTls: false,
    isRight: ({ status, location }, publicHost) =>
      status === 404 || (status === 308 && location !== undefined && leadsTo(location, publicHost)),
    expected: '308 to https or 404',
  },
];

export async function probe(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const findings = await Promise.all(probes.map((each) => probeFinding(each, context, signal)));
  return worst(findings, `${probes.length} requests were answered as they should be.`);
}

async function probeFinding(each: Probe, context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const { name } = context.publicHost();
  const asked = AbortSignal.any([signal, AbortSignal.timeout(limits.askMs)]);
  const answer = await askGateway(context.gateway, name, each, asked).catch((error: NodeJS.ErrnoException) => error);
  if (answer instanceof Error)
    return fail(
      `${each.request}: no answer (${answer.code ?? answer.message})`,
      'See that the gateway runs: oratorio server status',
    );
  if (each.isRight(answer, name)) return ok(each.request);
  return fail(
    `${each.request}: ${answer.status} in place of ${each.expected}`,
    each.meaning?.[answer.status] ?? generated,
  );
}

function leadsTo(location: string, publicHost: string): boolean {
  if (!URL.canParse(location)) return false;
  const { protocol, hostname } = new URL(location);
  return protocol === 'https:' && hostname.replace(/^\[|\]$/g, '') === publicHost;
}
