import { join } from 'node:path';
import * as v from 'valibot';
import type { AnyRoute } from '../../http/index.ts';
import { json, text } from '../../http/index.ts';
import { redact } from '../../lib/index.ts';
import { logFiles, readTail } from '../../supervise/index.ts';
import { hubError } from '../errors.ts';
import type { Registry } from '../registry.ts';
import { hubRoutes } from '../route-table.ts';
import type { Bind } from './bind.ts';

const Query = v.object({
  stream: v.optional(v.picklist(['stdout', 'stderr']), 'stderr'),
  bytes: v.optional(
    v.pipe(v.string(), v.transform(Number), v.integer(), v.minValue(1), v.maxValue(1_048_576)),
    '65536',
  ),
  process: v.optional(v.picklist(['server', 'sidecar']), 'server'),
});

/** `GET /v1/appservers/exits`: the last ends of a workspace's agent servers. */
export function exitsRoute(bind: Bind, registry: Registry): AnyRoute {
  return bind(hubRoutes.listExits, ({ query }) =>
    json(200, registry.find(query.get('path') ?? undefined)?.facts.exits.all ?? []),
  );
}

/** `GET /v1/appservers/logs`: the tail of a log as plain text, tokens removed (design §5). */
export function logRoute(bind: Bind, registry: Registry): AnyRoute {
  return bind(hubRoutes.readLogs, ({ query }) => {
    const parsed = v.safeParse(Query, Object.fromEntries(query));
    if (!parsed.success) {
      const [issue] = parsed.issues;
      throw hubError('invalidRequest', `Query parameter ${v.getDotPath(issue) ?? ''}: ${issue.message}`);
    }
    const { stream, bytes, process } = parsed.output;
    const workspace = registry.find(query.get('path') ?? undefined);
    if (!workspace) return text(200, '');
    const { facts } = workspace;
    const directory = process === 'sidecar' ? join(facts.logDirectory, 'sidecar') : facts.logDirectory;
    return text(200, redact(readTail(logFiles(directory)[stream], bytes), [...facts.secrets]));
  });
}
