/**
 * A review backend's webhook on a SQLite store, for `review-intake.ts`. Arguments: directory, secret. Says its port in one line.
 */
import * as v from 'valibot';
import { createServer, type ServerOptions } from '../src/http/index.ts';
import { createLogger } from '../src/log/index.ts';
import { BackendSettings } from '../src/review/settings/index.ts';
import { openReviewStore } from '../src/review/store/index.ts';
import { WebhookIntake, webhookRoute } from '../src/review/webhook/index.ts';

const [directory = '', secret = ''] = process.argv.slice(2);
const logger = createLogger({ name: 'bench', level: 'error' });
const settings = v.parse(BackendSettings, { GitHub: { WebhookSecret: secret, Repositories: ['octo/hello'] } });
const store = await openReviewStore({ directory, owner: 'bench', logger });
const intake = new WebhookIntake({ settings: () => settings, store, logger });
const options: ServerOptions = {
  routes: [webhookRoute({ intake })],
  hostAllowed: () => true,
  errorBody: (error) => ({ error }),
  onBug: (error) => logger.bug(error),
  limits: { bodyBytes: 1_024, deadlineMs: 30_000, sseBufferBytes: 1_024, sseHeartbeatMs: 30_000, sseRetryMs: 2_000 },
};
// Like the review backend, so that proxies that speak HTTP/1.0 can reach it.
const server = await createServer(options, 'node');
const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
console.log(JSON.stringify({ port }));
