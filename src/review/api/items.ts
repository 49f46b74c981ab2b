import { json, type RequestContext } from '../../http/index.ts';
import type { StoredItem } from '../store/index.ts';
import { apiError, notFound } from './errors.ts';
import { filterOf, parseQuery, pathValue } from './query.ts';
import { reviewRoutes } from './route-table.ts';
import type { ApiHandler, Services } from './service.ts';
import { DispatchInput } from './shapes.ts';
import { wireDraft, wireItem, wireRun } from './wire.ts';

/** Runs and drafts in the response of `getItem`. */
const shown = 20;

/** Handlers for pull requests and their runs. */
export function itemHandlers({ store, settings, actions }: Services) {
  async function itemOf(context: RequestContext): Promise<StoredItem> {
    const item = await store.item(pathValue(context, 'itemId'));
    if (!item) throw notFound('item');
    return item;
  }

  async function wired(item: StoredItem) {
    return wireItem(item, (await store.itemActivity([item.itemId])).get(item.itemId));
  }

  function pausing(isPaused: boolean): ApiHandler {
    return async (context) => {
      const { itemId } = await itemOf(context);
      // Resuming restarts the count for `PauseAfter`.
      await store.updateItem(itemId, isPaused ? { isPaused } : { isPaused, automaticReviews: 0 });
      await store.publish('item.changed', { itemId });
      return json(200, await wired(await itemOf(context)));
    };
  }

  return {
    async listItems({ query }) {
      const filter = filterOf(parseQuery(reviewRoutes.listItems, query), {
        repository: 'repositoryKey',
        state: 'state',
        q: 'q',
        cursor: 'cursor',
      });
      const { rows, next } = await store.items(filter);
      const activity = await store.itemActivity(rows.map(({ itemId }) => itemId));
      return json(200, { rows: rows.map((item) => wireItem(item, activity.get(item.itemId))), next });
    },

    async getItem(context) {
      const item = await itemOf(context);
      const { itemId } = item;
      const [runs, drafts] = await Promise.all([
        store.runs({ itemId, limit: shown }),
        store.drafts({ itemId, limit: shown }),
      ]);
      return json(200, {
        item: await wired(item),
        runs: runs.rows.map((run) => wireRun(run, settings.current)),
        drafts: drafts.rows.map(wireDraft),
      });
    },

    async dispatchItem(context) {
      const { scope, focus } = await context.json(DispatchInput);
      const { run, isNew } = await actions.dispatch(await itemOf(context), { scope, focus: focus ?? null });
      return json(202, { run: wireRun(run, settings.current), isNew });
    },

    pauseItem: pausing(true),
    resumeItem: pausing(false),

    async cancelItem(context) {
      const item = await itemOf(context);
      const activity = (await store.itemActivity([item.itemId])).get(item.itemId);
      for (const runId of [activity?.waitingRunId, activity?.activeRunId]) {
        if (runId !== null && runId !== undefined) await actions.cancel(runId);
      }
      return json(202, await wired(await itemOf(context)));
    },

    async listRuns({ query }) {
      const filter = filterOf(parseQuery(reviewRoutes.listRuns, query), {
        itemId: 'itemId',
        state: 'state',
        cursor: 'cursor',
      });
      const { rows, next } = await store.runs(filter);
      return json(200, { rows: rows.map((run) => wireRun(run, settings.current)), next });
    },

    async getRun(context) {
      const run = await store.run(pathValue(context, 'runId'));
      if (!run) throw notFound('run');
      return json(200, wireRun(run, settings.current));
    },

    async getRunTrace(context) {
      const run = await store.run(pathValue(context, 'runId'));
      if (!run) throw notFound('run');
      const url = await actions.traceUrl(run);
      if (url === undefined)
        throw apiError('notFound', 'No trace: the run has not started, or its agent server is not running.');
      return json(200, { url });
    },

    async cancelRun(context) {
      const run = await store.run(pathValue(context, 'runId'));
      if (!run) throw notFound('run');
      return json(202, wireRun(await actions.cancel(run.runId), settings.current));
    },
  } as const satisfies Record<string, ApiHandler>;
}
