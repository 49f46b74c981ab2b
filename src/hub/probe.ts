import * as v from 'valibot';

/** Loaded with the first start and not before: a Hub at rest does without its 10 MiB. */
export const loadWebSocket = () => import('ws');

const InitializeAnswer = v.object({
  id: v.literal(0),
  result: v.object({ serverInfo: v.object({ name: v.string(), version: v.string() }) }),
});

/** What a server that answers `initialize` says of itself. */
export interface Introduction {
  readonly name: string;
  readonly version: string;
}

/**
 * Opens the WebSocket and performs the handshake of specification §4.2 rule 2, as any client would.
 *
 * @param timeoutMs for the whole exchange; a server that accepts and never answers costs no more
 * @throws Error saying what did not happen. The URL, which carries a token, is never in the message.
 */
export async function introduce(
  url: string,
  clientName: string,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Introduction> {
  const { WebSocket } = await loadWebSocket();
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { handshakeTimeout: timeoutMs, perMessageDeflate: false, maxPayload: 1_048_576 });
    const timer = setTimeout(() => finish(new Error(`no answer to initialize within ${timeoutMs} ms`)), timeoutMs);
    const onAbort = () => finish(new Error('aborted'));
    signal?.addEventListener('abort', onAbort, { once: true });

    function finish(outcome: Introduction | Error): void {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      socket.removeAllListeners();
      // A socket that is torn down while connecting still reports it; nobody is interested any more.
      socket.on('error', () => undefined);
      socket.terminate();
      if (outcome instanceof Error) reject(outcome);
      else resolve(outcome);
    }

    socket.on('error', (error: NodeJS.ErrnoException) =>
      finish(new Error(`the WebSocket failed (${error.code ?? error.message})`)),
    );
    socket.on('close', (code: number) => finish(new Error(`the WebSocket was closed (${code})`)));
    socket.on('open', () => {
      const clientInfo = { name: clientName, title: 'Oratorio Hub', version: '1' };
      const capabilities = { approvalSupport: false, streamingSupport: false };
      socket.send(
        JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { clientInfo, capabilities } }),
      );
    });
    socket.on('message', (data) => {
      const answer = v.safeParse(InitializeAnswer, parseJson(String(data)));
      if (!answer.success) return finish(new Error('initialize was answered with something else'));
      const { name, version } = answer.output.result.serverInfo;
      finish({ name, version });
    });
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON is one more way of not being an answer.
    return undefined;
  }
}
