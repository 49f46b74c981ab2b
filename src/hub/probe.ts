import * as v from 'valibot';
import { askOnce } from './web-socket.ts';

const InitializeAnswer = v.object({
  id: v.literal(0),
  result: v.object({ serverInfo: v.object({ name: v.string(), version: v.string() }) }),
});

/** Self-description of a server in its answer to `initialize`. */
export interface Introduction {
  readonly name: string;
  readonly version: string;
}

/**
 * Opens the WebSocket and performs the handshake of specification §4.2 rule 2, as any client would.
 *
 * @param timeoutMs for the whole exchange; a server that accepts and never answers costs no more
 * @throws Error naming the step that failed. The URL, which carries a token, is never in the message.
 */
export async function introduce(
  url: string,
  clientName: string,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Introduction> {
  const ending = new AbortController();
  const end = () => ending.abort();
  const timer = setTimeout(end, timeoutMs);
  signal?.addEventListener('abort', end, { once: true });
  if (signal?.aborted) end();
  const clientInfo = { name: clientName, title: 'Oratorio Hub', version: '1' };
  const capabilities = { approvalSupport: false, streamingSupport: false };
  const request = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { clientInfo, capabilities } };
  try {
    const answer = v.safeParse(InitializeAnswer, parseJson(await askOnce(url, JSON.stringify(request), ending.signal)));
    if (!answer.success) throw new Error('the answer to initialize has an unexpected form');
    const { name, version } = answer.output.result.serverInfo;
    return { name, version };
  } catch (error) {
    const isLate = ending.signal.aborted && !signal?.aborted;
    throw isLate ? new Error(`no answer to initialize within ${timeoutMs} ms`) : error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', end);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON is one more way of not being an answer.
    return undefined;
  }
}
