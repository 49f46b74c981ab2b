import type { IncomingHttpHeaders } from 'node:http';
import type { ModelEvent } from '../../model.ts';

/** Headers with the id of a request: OpenAI and most compatible services, Anthropic, Azure. */
const names = ['x-request-id', 'request-id', 'apim-request-id'] as const;

/** Ids are shown: only a short word is one. */
const word = /^[\w.:/+=-]{1,128}$/;

/** Emits the id that a service has given a request. Support of a service asks for it. */
export function emitRequestId(headers: IncomingHttpHeaders, emit: (event: ModelEvent) => void): void {
  for (const name of names) {
    const id = headers[name];
    if (typeof id !== 'string' || !word.test(id)) continue;
    emit({ type: 'received', requestId: id });
    return;
  }
}
