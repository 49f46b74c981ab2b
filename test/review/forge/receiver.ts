import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Forge } from './forge.ts';

export interface Received {
  readonly event: string;
  readonly guid: string;
  readonly signature: string;
  readonly body: string;
}

/** Where the forge's webhooks go: takes them, or does not. */
export interface Receiver {
  readonly seen: readonly Received[];
  /** Status of the responses. */
  status: number;
}

/** Ended with the test. */
export async function receiveHooks(
  t: { teardown(work: () => unknown): void },
  forge: Forge,
  status = 202,
): Promise<Receiver> {
  const seen: Received[] = [];
  const receiver = { seen, status };
  const server = createServer(async (request, response) => {
    const { 'x-github-event': event, 'x-github-delivery': guid, 'x-hub-signature-256': signature } = request.headers;
    const body = await text(request);
    seen.push({ event: String(event), guid: String(guid), signature: String(signature), body });
    response.writeHead(receiver.status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  forge.app.hook = { url, secret: 'hush', contentType: 'json' };
  return receiver;
}
