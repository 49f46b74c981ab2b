import { json } from '../../http/index.ts';
import { configuredRepositories } from '../settings/index.ts';
import { apiError, notFound } from './errors.ts';
import { filterOf, parseQuery, pathValue } from './query.ts';
import { reviewRoutes } from './route-table.ts';
import type { ApiHandler, Services } from './service.ts';
import { SyncInput } from './shapes.ts';
import { wireRepository, wireWrite } from './wire.ts';

/** Handlers for repositories, sync jobs, deliveries and writes. */
export function sourceHandlers({ store, settings, actions }: Services) {
  return {
    async listSources() {
      const { current } = settings;
      const configured = new Map(configuredRepositories(current).map((each) => [each.repositoryKey, each]));
      const [repositories, counts] = await Promise.all([store.repositories(), store.openItemCounts()]);
      const rows = repositories
        .filter(({ isEnabled }) => isEnabled)
        .map((each) =>
          wireRepository(each, configured.get(each.repositoryKey), current, counts.get(each.repositoryKey) ?? 0),
        );
      return json(200, rows);
    },

    async listSyncJobs({ query }) {
      const { limit } = parseQuery(reviewRoutes.listSyncJobs, query);
      return json(200, await store.syncJobs(limit));
    },

    async startSync(context) {
      const { repositoryKey } = await context.json(SyncInput);
      if (repositoryKey !== undefined && (await store.repository(repositoryKey))?.isEnabled !== true)
        throw notFound('repository');
      return json(202, await actions.sync(repositoryKey));
    },

    async listDeliveries({ query }) {
      const filter = filterOf(parseQuery(reviewRoutes.listDeliveries, query), {
        outcome: 'outcome',
        cursor: 'cursor',
      });
      return json(200, await store.deliveries(filter));
    },

    async listWrites({ query }) {
      const filter = filterOf(parseQuery(reviewRoutes.listWrites, query), {
        runId: 'runId',
        status: 'status',
        cursor: 'cursor',
      });
      const { rows, next } = await store.writes(filter);
      return json(200, { rows: rows.map(wireWrite), next });
    },

    async retryWrite(context) {
      const writeId = pathValue(context, 'writeId');
      const write = await store.write(writeId);
      if (!write) throw notFound('write');
      if (write.status !== 'failed')
        throw apiError('invalidState', `The write is ${write.status}: only a failed write can be sent again.`, {
          writeId,
        });
      await actions.retryWrite(write);
      return json(202, wireWrite((await store.write(writeId)) ?? write));
    },
  } as const satisfies Record<string, ApiHandler>;
}
