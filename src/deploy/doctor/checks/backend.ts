import * as v from 'valibot';
import { probeHttp } from '../../../lib/index.ts';
import { backendUrl, jsonOf } from '../backend.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok } from '../finding.ts';
import { limits } from '../limits.ts';
import type { Finding } from '../types.ts';

const Health = v.object({ service: v.literal('oratorio'), status: v.string() });

/** The backend serves, and it is ours. */
export async function health(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const url = `${await backendUrl(context)}/health`;
  const { status, body, error } = await probeHttp(url, {
    timeoutMs: limits.askMs,
    bodyBytes: limits.answerBytes,
    signal,
  });
  if (status === undefined)
    return fail(`${url} does not answer (${error}).`, 'oratorio server status, then: oratorio server restart');
  const parsed = v.safeParse(Health, jsonOf(body));
  if (!parsed.success) return fail(`Something else answers at ${url}.`, 'Look who listens there: ss -ltnp');
  return status === 200
    ? ok(`${url} answers.`)
    : fail(`It answers ${status}: its database cannot be reached.`, 'oratorio server logs --service backend says why.');
}

/**
 * Opens a WebSocket to the agent server as the backend does: from its container, with the address and the token that it was
 * started with. Prints one word.
 */
const handshake = `
const variable = (name) => Object.entries(process.env).find(([key]) => key.toLowerCase() === name)?.[1];
const url = variable('oratorio__agentserver__appserverurl');
const token = variable('oratorio__agentserver__appservertoken');
const say = (word) => { console.log(word); process.exit(0); };
if (!url || !token) say('unset');
const address = new URL(url);
const readyz = new URL('/readyz', address.href.replace(/^ws/, 'http'));
address.searchParams.set('token', token);
setTimeout(() => say('silent'), Number(process.argv[1]));
fetch(readyz).then(() => {
  const socket = new WebSocket(address);
  socket.onopen = () => say('open');
  socket.onerror = () => say('refused');
}, () => say('unreachable'));
`;

const words: Readonly<Record<string, Finding>> = {
  open: ok('The backend reaches it and is let in.'),
  refused: fail(
    'It answers and does not let the backend in.',
    'Both must have the same ORATORIO_AGENT_TOKEN: oratorio server restart',
  ),
  unreachable: fail(
    'The backend does not reach it.',
    'oratorio server logs --service agent says why; then: oratorio server restart',
  ),
  silent: fail(
    'It does not answer the backend.',
    'oratorio server logs --service agent says why; then: oratorio server restart',
  ),
  unset: fail('The backend was started without its address or token.', 'oratorio server restart'),
};

/** The agent server takes a connection of the backend. */
export async function agent(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const program = ['node', '-e', handshake, String(limits.handshakeMs)];
  const { stdout } = await context.inside('backend', program, { signal });
  return (
    words[stdout.trim()] ??
    fail('The container of the backend cannot be asked.', 'oratorio server logs --service backend')
  );
}
