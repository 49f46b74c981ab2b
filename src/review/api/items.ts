import { json, type RequestContext } from '../../http/index.ts';
import type { StoredItem } from '../store/index.ts';
import { apiError, noSuch } from './errors.ts';
import type { ApiHandler, Services } from './handlers.ts';
import { filterOf, parseQuery, pathValue } from './query.ts';
import { reviewRoutes } from './route-table.ts';
import { DispatchInput } from './shapes.ts';
import { wireDraft, wireItem, wireRun } from './wire.ts';

/** Runs and drafts that the page of an item shows. */
const shown = 20;

/** Pull requests and their runs. */
export function itemHandlers({ store, settings, actions }: Services) {
  async function itemOf(context: RequestContext): Promise<StoredItem> {
    const item = await store.item(pathValue(context, 'itemId'));
    if (!item) throw noSuch('item');
    return item;
  }

  async function wired(item: StoredItem) {
    return wireItem(item, (await store.itemGlances([item.itemId])).get(item.itemId));
  }

  function pausing(isPaused: boolean): ApiHandler {
    return async (context) => {
      const { itemId } = await itemOf(context);
      // Whoever goes on by hand begins to count anew.
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
      const glances = await store.itemGlances(rows.map(({ itemId }) => itemId));
      return json(200, { rows: rows.map((item) => wireItem(item, glances.get(item.itemId))), next });
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
      const glance = (await store.itemGlances([item.itemId])).get(item.itemId);
      for (const runId of [glance?.waitingRunId, glance?.activeRunId]) {
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
      if (!run) throw noSuch('run');
      return json(200, wireRun(run, settings.current));
    },

    async getRunTrace(context) {
      const run = await store.run(pathValue(context, 'runId'));
      if (!run) throw noSuch('run');
      const url = await actions.traceUrl(run);
      if (url === undefined)
        throw apiError('notFound', 'Nobody shows it now: it has not been begun, or its agent server does not run.');
      return json(200, { url });
    },

    async cancelRun(context) {
      const run = await store.run(pathValue(context, 'runId'));
      if (!run) throw noSuch('run');
      return json(202, wireRun(await actions.cancel(run.runId), settings.current));
    },
  } as const satisfies Record<string, ApiHandler>;
}
