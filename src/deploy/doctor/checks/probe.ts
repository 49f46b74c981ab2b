import { defaults } from '../../defaults.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok, worst } from '../finding.ts';
import { askGateway, type GatewayAnswer, type Question } from '../gateway.ts';
import { limits } from '../limits.ts';
import type { Finding } from '../types.ts';

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
  const findings = await Promise.all(probes.map((each) => findingOf(each, context, signal)));
  return worst(findings, `${probes.length} requests were answered as they should be.`);
}

async function findingOf(each: Probe, context: DoctorContext, signal: AbortSignal): Promise<Finding> {
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
