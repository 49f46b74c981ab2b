import { outgoingFetch } from '../http/index.ts';

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/**
 * `fetch` that reads no message of more than `maxBytes`: of an event stream no longer line, of any other answer no more in
 * all. The body fails when it is too long.
 */
export function boundedFetch(maxBytes: number): Fetch {
  return async (url, init) => {
    const response = await outgoingFetch(url, init);
    if (response.body === null) return response;
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    const body = response.body.pipeThrough(limitBytes(maxBytes, isStream));
    const { status, statusText, headers } = response;
    return new Response(body, { status, statusText, headers });
  };
}

const lineFeed = 10;

function limitBytes(maxBytes: number, perLine: boolean): TransformStream<Uint8Array, Uint8Array> {
  let seen = 0;
  return new TransformStream({
    transform(chunk, controller) {
      const lineEnd = perLine ? chunk.lastIndexOf(lineFeed) : -1;
      seen = lineEnd < 0 ? seen + chunk.length : chunk.length - lineEnd - 1;
      if (seen > maxBytes) controller.error(new Error(`the answer is longer than ${maxBytes} bytes`));
      else controller.enqueue(chunk);
    },
  });
}
