/** The server proof for stand-ins of our servers. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { keyIdOf, proofOf } from '../src/http/index.ts';
import { type ProofRole, proofPaths } from '../src/protocol/index.ts';

/**
 * Answers a request for a proof with one of `tokens`, for any authority that the client requests.
 *
 * @returns whether it was such a request
 */
export function answerProof(
  request: IncomingMessage,
  response: ServerResponse,
  role: ProofRole | readonly ProofRole[],
  tokens: Iterable<string>,
): boolean {
  if (typeof role !== 'string') return role.some((each) => answerProof(request, response, each, tokens));
  const authority = request.headers.host ?? '';
  const { pathname, searchParams } = new URL(request.url ?? '/', `http://${authority}`);
  if (pathname !== proofPaths[role]) return false;
  const token = [...tokens].find((each) => keyIdOf(each) === searchParams.get('key'));
  const send = (status: number, body: unknown) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  if (token === undefined) send(401, { error: { code: 'unauthorized', message: 'Unknown key.', details: null } });
  else {
    const proof = proofOf(token, { role, nonce: searchParams.get('nonce') ?? '', authority });
    send(200, { proof, use: 'token', instance: 'stand-in' });
  }
  return true;
}
