import { outgoingFetch } from '../http/index.ts';
import { defaults } from '../protocol/index.ts';
import type { MessagePace } from './message-pace.ts';

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/**
 * `fetch` that reads no message of more than `maxBytes`: of an event stream no longer line, of any other answer no more in
 * all. The body fails when it is too long. Of event streams it reads as many lines as the pace allows; without a pace they are as any
 * other answer.
 */
export function boundedFetch(maxBytes: number, pace?: MessagePace): Fetch {
  return async (url, init) => {
    const response = await outgoingFetch(url, init);
    if (response.status > 599) throw new Error(`it answers with HTTP ${response.status}`);
    if (response.body === null) return response;
    const isStream =
      pace !== undefined && response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    const { status, statusText, headers } = response;
    const body = response.body.pipeThrough(limitBytes(maxBytes, isStream ? pace : undefined));
    const bounded = new Response(body, { status, statusText, headers });
    if (isStream) return bounded;
    const text = await bounded.text();
    checkBatch(text);
    return new Response(text, { status, statusText, headers });
  };
}

const [lineFeed, carriageReturn] = [10, 13];

function limitBytes(maxBytes: number, pace: MessagePace | undefined): TransformStream<Uint8Array, Uint8Array> {
  let seen = 0;
  return new TransformStream({
    async transform(chunk, controller) {
      const lineEnd = pace ? chunk.lastIndexOf(lineFeed) : -1;
      seen = lineEnd < 0 ? seen + chunk.length : chunk.length - lineEnd - 1;
      if (seen > maxBytes) controller.error(new Error(`the answer is longer than ${maxBytes} bytes`));
      else controller.enqueue(chunk);
      await pace?.wait(lineEnds(chunk));
    },
  });
}

function lineEnds(chunk: Uint8Array): number {
  let found = 0;
  for (const byte of chunk) if (byte === lineFeed || byte === carriageReturn) found += 1;
  return found;
}

/** An answer with many messages would be handled at once. @throws Error */
function checkBatch(text: string): void {
  if (!text.trimStart().startsWith('[')) return;
  const batch: unknown = JSON.parse(text);
  if (Array.isArray(batch) && batch.length > defaults.mcp.batchMessages) {
    throw new Error(`the answer has more than ${defaults.mcp.batchMessages} messages`);
  }
}
