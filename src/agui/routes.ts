import type { Runtime } from '../agent/index.ts';
import {
  type AnyRoute,
  bearer,
  HttpError,
  json,
  type OwnerAccess,
  ownerOrKey,
  type RequestContext,
  sse,
} from '../http/index.ts';
import { defaults } from '../protocol/index.ts';
import { RunInput } from './input.ts';
import { ApprovalAnswer } from './interrupts.ts';
import { AguiService } from './service.ts';

export interface AguiOptions {
  readonly runtime: Runtime;
  /** `AgUi.Path`. */
  readonly path: string;
  /** `AgUi.ApiKey`. */
  readonly apiKey: string;
  /** With an empty `apiKey`: admits this user and holders of the generated key. Absent: every caller is served. */
  readonly ownerAccess?: OwnerAccess | undefined;
  /** How long a turn without a reader continues. Milliseconds. */
  readonly graceMs?: number | undefined;
  /** How long a turn of an earlier process continues without a reader, at least. Milliseconds. */
  readonly resumedGraceMs?: number | undefined;
}

/**
 * The AG-UI endpoint: `POST <path>` is a run, `GET <path>/approvals` and `POST <path>/approvals/:id` decide outside of runs.
 * Host, origin, limits and the shape of errors are the server's that serves them.
 */
export function aguiRoutes({ runtime, path, apiKey, ownerAccess, graceMs, resumedGraceMs }: AguiOptions): AnyRoute[] {
  const service = new AguiService({ runtime, graceMs, resumedGraceMs });
  const auth = authOf(apiKey, ownerAccess);
  const approvals = `${path.replace(/(?<!\/)\/+$/, '')}/approvals`;
  return [
    {
      ...auth,
      method: 'POST',
      path,
      bodyLimit: defaults.http.chatBodyBytes,
      async handler(context: RequestContext) {
        const { signal } = context;
        const stream = service.run(await context.json(RunInput));
        // The client left before the answer.
        if (signal.aborted) stream.leave();
        return sse(stream, undefined);
      },
    },
    { ...auth, method: 'GET', path: approvals, handler: () => json(200, { data: service.approvals() }) },
    {
      ...auth,
      method: 'POST',
      path: `${approvals}/:id`,
      async handler(context: RequestContext) {
        const decision = await context.json(ApprovalAnswer);
        const { id } = context.params;
        if (id === undefined) throw new HttpError(404, 'approvalNotFound', 'Approval not found.');
        service.decide(id, decision);
        return json(200, { requestId: id, decision });
      },
    },
  ];
}

function authOf(apiKey: string, ownerAccess: OwnerAccess | undefined): Pick<AnyRoute, 'auth'> {
  if (apiKey !== '') return { auth: bearer(apiKey) };
  return ownerAccess ? { auth: ownerOrKey(ownerAccess) } : {};
}
