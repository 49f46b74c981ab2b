import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import type { AnyRoute } from '../../http/index.ts';
import { createServer, knownHosts, securityHeaders } from '../../http/index.ts';
import type { Logger } from '../../log/index.ts';
import { defaults } from '../../protocol/index.ts';
import { pull } from './bookshop.ts';
import { DemoPull } from './pull.ts';
import type { DemoRepository } from './repository.ts';
import { demoRoutes } from './routes.ts';

/** The stand-in for GitHub. */
export interface DemoSource {
  /** Base of the stand-in's API. Other users of the machine cannot guess it. */
  readonly endpoint: string;
  readonly webhookSecret: string;
  readonly pull: DemoPull;
  /** Opens the pull request and sends its webhook, signed as GitHub signs it. @throws Error when it is not accepted */
  announce(backendUrl: string): Promise<void>;
  close(): Promise<void>;
}

const closeMs = 500;

/** Serves the part of GitHub's API that reviews use, for one repository with one pull request, on this machine only. */
export async function startDemoSource(
  repository: DemoRepository,
  { owner, name, logger }: { readonly owner: string; readonly name: string; readonly logger: Logger },
): Promise<DemoSource> {
  const secretPath = `/${randomBytes(24).toString('base64url')}`;
  const demo = new DemoPull(owner, name, repository);
  const routes: readonly AnyRoute[] = demoRoutes(demo).map((route) => ({
    ...route,
    path: `${secretPath}${route.path}`,
  }));
  const server = await createServer(
    {
      routes: [...routes],
      hostAllowed: knownHosts({ isPublic: false, names: [] }),
      headers: () => securityHeaders,
      errorBody: ({ message }) => ({ message }),
      onBug: (error, errorId) => logger.error('the demo source failed because of a bug', { errorId, error }),
      limits: {
        bodyBytes: 1_048_576,
        deadlineMs: 30_000,
        sseBufferBytes: defaults.sse.bufferBytes,
        sseHeartbeatMs: defaults.sse.heartbeatMs,
        sseRetryMs: defaults.sse.retryMs,
      },
    },
    'node',
  );
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  const endpoint = `http://127.0.0.1:${port}${secretPath}`;
  demo.url = `${endpoint}/${owner}/${name}/pull/${pull.number}`;
  const webhookSecret = randomBytes(24).toString('base64url');
  return {
    endpoint,
    webhookSecret,
    pull: demo,
    async announce(backendUrl) {
      // Not before: Auto Review ignores a pull request that was opened before it was switched on.
      demo.openedAt = new Date().toISOString();
      const body = JSON.stringify({ action: 'opened', ...demo.event() });
      const response = await fetch(`${backendUrl}/api/v1/sources/github/webhook`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-github-event': 'pull_request',
          'x-github-delivery': randomUUID(),
          'x-hub-signature-256': `sha256=${createHmac('sha256', webhookSecret).update(body).digest('hex')}`,
        },
        body,
      });
      if (!response.ok) throw new Error(`the webhook was answered ${response.status}: ${await response.text()}`);
    },
    close: () => server.close(closeMs),
  };
}
